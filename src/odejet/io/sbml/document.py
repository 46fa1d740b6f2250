"""Documents: SBML files, checked before anything is believed of them.

A file is scanned first: no document types, hence no entities, and no nesting that a parser recurses on.  Notes,
annotations and drawings are left out, which nobody simulates.  libsbml then reads it, flattens submodels (`comp`) and
upgrades models of Level 1 and those with computed stoichiometries.  What is no ordinary differential equation is
refused by the name of the feature.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit
from xml.parsers import expat

from odejet.errors import ModelError, clipped
from odejet.extras import needed
from odejet.io.files import read_bytes
from odejet.io.sbml.conversion import EXPAND, FLATTEN, converted

MAX_BYTES = 20_000_000
MAX_NESTING = 200
"""Elements inside elements: formulas of people stay below 50."""

MAX_FORMULA = 100_000
"""Nodes of a formula once functions and rules are written out."""

_PLAIN_PACKAGES = ("comp", "layout", "render", "groups", "fbc", "l3v2extendedmath")
"""Packages that are flattened, or that say nothing about a time course; `fbc` only if it has no objective."""


def lib() -> Any:
    """libsbml, or the sentence that says how to get it."""
    return sys.modules.get("libsbml") or needed("libsbml")  # asked for at every node of a formula


def read_document(path: str | os.PathLike[str]) -> Any:
    """The document in a file, as libsbml's, ready to be understood."""
    data = read_bytes(path, MAX_BYTES)
    return understood(data, str(path), Path(path))


def understood(data: bytes, where: str, path: Path | None = None) -> Any:
    """The document in the bytes of a file; `path` is where other files that it names are looked for."""
    data = scan(data, where)
    document = lib().readSBMLFromString(data.decode("utf-8", errors="replace"))
    _check_errors(document, where)
    if document.getModel() is None:
        raise ModelError(f"{where}: there is no model in this document")
    _check_packages(document, where)
    if document.getPlugin("comp") is not None:
        _check_externals(document.getPlugin("comp"), where, path, seen=set())
        data = converted(data, FLATTEN, where, path)
        document = _reread(data, where)
    _check_features(document.getModel(), where)
    _check_functions(document.getModel(), where)
    return document if _is_plain(document) else _reread(converted(data, EXPAND, where, path), where)


def _reread(data: bytes, where: str) -> Any:
    document = lib().readSBMLFromString(data.decode("utf-8", errors="replace"))
    _check_errors(document, where)
    if document.getModel() is None:
        raise ModelError(f"{where}: there is no model in this document once it is converted")
    return document


def _is_plain(document: Any) -> bool:
    """Whether nothing is to be upgraded."""
    if document.getLevel() != 2:
        return bool(document.getLevel() > 2)
    return not any(
        reference.isSetStoichiometryMath()
        for reaction in document.getModel().getListOfReactions()
        for reference in (*reaction.getListOfReactants(), *reaction.getListOfProducts())
    )


# --- before parsing ---------------------------------------------------------------------------------------------------


class _Refused(Exception):
    pass


_IDLE = re.compile(r"(?:http://www\.sbml\.org/sbml/[^ ]* (?:annotation|notes)|[^ ]*/(?:layout|render)/[^ ]* .*)")
"""Elements that say nothing about a time course, by their namespace and name: those of SBML, and drawings."""

_TAG = re.compile(rb"<(?:[^>\"']|\"[^\"]*\"|'[^']*')*>")


def scan(data: bytes, where: str) -> bytes:
    """Refuse what is not well formed, has a document type or is nested beyond reason; notes, annotations and drawings
    are left out, with as many lines in their place."""
    if b"\0" in data:
        raise ModelError(f"{where}: the file is not UTF-8 text; save it as SBML in UTF-8")
    depth, idle, begun = 0, 0, 0
    kept: list[bytes] = []
    place = 0

    def begin(name: str, attributes: dict[str, str]) -> None:
        nonlocal depth, idle, begun
        depth += 1
        if depth > MAX_NESTING:
            raise _Refused(f"elements are nested more than {MAX_NESTING} deep")
        if not idle and _IDLE.fullmatch(name):
            idle, begun = depth, parser.CurrentByteIndex

    def end(name: str) -> None:
        nonlocal depth, idle, place
        if idle == depth:
            tag = _TAG.match(data, parser.CurrentByteIndex)
            assert tag is not None
            kept.append(data[place:begun])
            kept.append(b"\n" * data.count(b"\n", begun, tag.end()))
            idle, place = 0, tag.end()
        depth -= 1

    def declared(*_: Any) -> None:
        raise _Refused("the file declares a document type or entities, which SBML has no use for; remove them")

    def encoding(version: str, name: str | None, standalone: int) -> None:
        if name and name.lower() not in ("utf-8", "us-ascii", "ascii"):
            raise _Refused(f"the file is in {clipped(name)}; save it as UTF-8")

    parser = expat.ParserCreate(namespace_separator=" ")
    parser.StartElementHandler, parser.EndElementHandler = begin, end
    parser.StartDoctypeDeclHandler = parser.EntityDeclHandler = declared
    parser.XmlDeclHandler = encoding
    try:
        parser.Parse(data, True)
    except _Refused as error:
        raise ModelError(f"{where}: line {parser.CurrentLineNumber}: {error}") from None
    except expat.ExpatError as error:
        raise ModelError(f"{where}: line {error.lineno}: this is not XML ({expat.ErrorString(error.code)})") from None
    return b"".join([*kept, data[place:]])


# --- what it is -------------------------------------------------------------------------------------------------------


def _check_errors(document: Any, where: str) -> None:
    for i in range(document.getNumErrors()):
        error = document.getError(i)
        if error.getSeverity() >= lib().LIBSBML_SEV_ERROR:
            message = " ".join((error.getMessage() or error.getShortMessage()).split())
            line = f"line {error.getLine()}: " if error.getLine() else ""
            raise ModelError(f"{where}: {line}this is not SBML: {_first_sentence(message)}")


def _first_sentence(message: str) -> str:
    return re.split(r"(?<=[a-z)'\"])\. ", message)[0][:300]


def _check_packages(document: Any, where: str) -> None:
    for i in range(document.getNumPlugins()):
        package = document.getPlugin(i).getPackageName()
        if package not in _PLAIN_PACKAGES and document.getPackageRequired(package):
            raise ModelError(f"{where}: the package '{package}' changes what the model means, and is not supported")
    for i in range(document.getNumUnknownPackages()):
        if document.getUnknownPackage(i) and document.getPackageRequired(document.getUnknownPackagePrefix(i)):
            package = document.getUnknownPackagePrefix(i)
            raise ModelError(f"{where}: the package '{package}' changes what the model means, and is not supported")
    fluxes = document.getModel().getPlugin("fbc")
    if fluxes is not None and fluxes.getNumObjectives():
        name = fluxes.getObjective(0).getId()
        raise ModelError(f"{where}: flux balance (objective '{name}') is not supported, being no differential equation")


def _check_features(model: Any, where: str) -> None:
    for reaction in model.getListOfReactions():
        if reaction.isSetFast() and reaction.getFast():
            raise ModelError(f"{where}: reaction '{reaction.getId()}' is fast, and fast reactions are not supported")


# --- submodels --------------------------------------------------------------------------------------------------------


def _check_externals(plugin: Any, where: str, path: Path | None, seen: set[Path]) -> None:
    """Models in other files must stand beside this one, and are scanned like it before libsbml opens them."""
    for name, source in _externals(plugin):
        if path is None:
            raise ModelError(f"{where}: the external model '{name}' is in another file; read this one from a file")
        parts = urlsplit(source)
        folder = path.resolve().parent
        target = (folder / unquote(parts.path)).resolve()
        if parts.scheme or parts.netloc or not target.is_relative_to(folder):
            reason = "it must be a file in the folder of this one"
            raise ModelError(f"{where}: the external model '{name}' is {clipped(source)}; {reason}")
        if target in seen:
            continue
        seen.add(target)
        data = read_bytes(target, MAX_BYTES)
        scan(data, str(target))
        inner = lib().readSBMLFromString(data.decode("utf-8", errors="replace"))
        _check_errors(inner, str(target))
        if inner.getPlugin("comp") is not None:
            _check_externals(inner.getPlugin("comp"), str(target), target, seen)


def _externals(plugin: Any) -> Iterator[tuple[str, str]]:
    for i in range(plugin.getNumExternalModelDefinitions()):
        definition = plugin.getExternalModelDefinition(i)
        yield definition.getId(), definition.getSource()


# --- functions, local parameters, level -------------------------------------------------------------------------------


def _check_functions(model: Any, where: str) -> None:
    """Functions may call each other, but not in a circle, and what they come to must stay of a size to work with."""
    bodies = {function.getId(): function.getBody() for function in model.getListOfFunctionDefinitions()}
    if not bodies:
        return
    counts = {function.getId(): function.getNumArguments() for function in model.getListOfFunctionDefinitions()}
    for function in model.getListOfFunctionDefinitions():
        arguments = [function.getArgument(i) for i in range(function.getNumArguments())]
        if any(one is None or not one.getName() for one in arguments):
            raise ModelError(f"{where}: function '{function.getId()}' has an argument without a name")
    sizes: dict[str, int] = {}
    open_: list[str] = []

    def size(name: str) -> int:
        if name in open_:
            raise ModelError(f"{where}: function '{name}' calls itself")
        if name not in sizes:
            open_.append(name)
            sizes[name] = expanded(bodies[name])
            open_.pop()
        return sizes[name]

    def expanded(node: Any) -> int:
        """Nodes once all calls are written out, counting arguments as often as a body has nodes."""
        if node is None:
            return 0
        inner = sum(expanded(node.getChild(i)) for i in range(node.getNumChildren()))
        total = 1 + inner
        if node.getType() == lib().AST_FUNCTION and node.getName() in bodies:
            # libsbml trusts the number of arguments, and would end the process.
            if node.getNumChildren() != counts[node.getName()]:
                given = f"called with {node.getNumChildren()} arguments"
                raise ModelError(f"{where}: function '{node.getName()}' is {given}, but has {counts[node.getName()]}")
            total = 1 + size(node.getName()) * max(inner, 1)
        if total > MAX_FORMULA:
            raise ModelError(f"{where}: a formula has more than {MAX_FORMULA} terms once functions are written out")
        return total

    try:
        for name in bodies:
            size(name)
        for node in formulas(model):
            expanded(node)
    except RecursionError:
        raise ModelError(f"{where}: functions call each other more deeply than can be followed") from None


def formulas(model: Any) -> Iterator[Any]:
    """Every formula of a model that may call functions."""
    for element in (*model.getListOfRules(), *model.getListOfInitialAssignments(), *model.getListOfConstraints()):
        yield element.getMath()
    for reaction in model.getListOfReactions():
        if reaction.isSetKineticLaw():
            yield reaction.getKineticLaw().getMath()
        for reference in (*reaction.getListOfReactants(), *reaction.getListOfProducts()):
            if reference.isSetStoichiometryMath():
                yield reference.getStoichiometryMath().getMath()
    for event in model.getListOfEvents():
        for part in (event.getTrigger(), event.getDelay(), event.getPriority(), *event.getListOfEventAssignments()):
            if part is not None:
                yield part.getMath()
