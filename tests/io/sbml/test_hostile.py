"""Files that mean harm, or are broken: one sentence each."""

from __future__ import annotations

import pytest

pytest.importorskip("libsbml", reason="the reader of SBML is not installed")

import odejet as oj
from tests.io.sbml.documents import apply, assignment_rule, ci, cn, document, math, parameter, rate_rule

LAUGHS = (
    '<?xml version="1.0"?><!DOCTYPE sbml [<!ENTITY a0 "ha">'
    + "".join(f'<!ENTITY a{i + 1} "{f"&a{i};" * 10}">' for i in range(9))
    + "]><sbml>&a9;</sbml>"
)
OUTSIDE = '<?xml version="1.0"?><!DOCTYPE sbml [<!ENTITY x SYSTEM "file:///etc/passwd">]><sbml>&x;</sbml>'


def doubling_rules(count: int) -> str:
    names = [f"x{i}" for i in range(count)]
    rules = [
        assignment_rule(name, apply("plus", ci(other), ci(other)))
        for name, other in zip(names[1:], names, strict=False)
    ]
    parameters = "".join(parameter(name, constant=False) for name in names[1:]) + parameter("x0", 1)
    return document(parameters=parameters, rules="".join(rules))


def doubling_functions(count: int) -> str:
    def body(i: int) -> str:
        inner = ci("x") if i == 0 else f"<apply>{ci(f'f{i - 1}')}{ci('x')}</apply>"
        return math(f"<lambda><bvar>{ci('x')}</bvar>{apply('plus', inner, inner)}</lambda>")

    functions = "".join(f'<functionDefinition id="f{i}">{body(i)}</functionDefinition>' for i in range(count))
    call = f"<apply>{ci(f'f{count - 1}')}{cn(1)}</apply>"
    return document(functions=functions, parameters=parameter("x", constant=False), rules=assignment_rule("x", call))


def chained_rules(count: int) -> str:
    parameters = "".join(parameter(f"x{i + 1}", constant=False) for i in range(count)) + parameter("x0", 1)
    rules = "".join(assignment_rule(f"x{i + 1}", apply("sin", apply("plus", ci(f"x{i}"), cn(1)))) for i in range(count))
    return document(parameters=parameters, rules=rules)


def large(states: int) -> str:
    parameters = "".join(parameter(f"a_rather_long_name_for_a_state_{i}", 1, False) for i in range(states))
    rules = "".join(
        rate_rule(f"a_rather_long_name_for_a_state_{i}", apply("minus", ci(f"a_rather_long_name_for_a_state_{i}")))
        for i in range(states)
    )
    return document(parameters=parameters, rules=rules)


COMP = "http://www.sbml.org/sbml/level3/version1/comp/version1"


def external(source: str) -> str:
    definition = f'<comp:externalModelDefinition comp:id="there" comp:source="{source}"/>'
    submodel = '<comp:submodel comp:id="s" comp:modelRef="there"/>'
    return (
        f'<sbml xmlns="http://www.sbml.org/sbml/level3/version1/core" xmlns:comp="{COMP}" level="3" version="1" '
        f'comp:required="true"><model id="m"><comp:listOfSubmodels>{submodel}</comp:listOfSubmodels></model>'
        f"<comp:listOfExternalModelDefinitions>{definition}</comp:listOfExternalModelDefinitions></sbml>"
    )


DANGLING = external("there.xml").replace("there", "nowhere", 1)
"""A submodel of a model that is not defined, on which libsbml ends its process."""

HOSTILE = {
    "laughs": (LAUGHS, "line 1: the file declares a document type"),
    "outside entity": (OUTSIDE, "line 1: the file declares a document type"),
    "doubling rules": (doubling_rules(60), "terms with all rules written out"),
    "doubling functions": (doubling_functions(60), "terms once functions are written out"),
    "chained rules": (chained_rules(1000), "more deeply than can be followed"),
    "deep": (document(rules=assignment_rule("x", "<apply><minus/>" * 5000 + cn(1) + "</apply>" * 5000)), "nested more"),
    "large": (large(30_000), "30000 states, and 2000 is the limit"),
    "empty": ("", "this is not XML"),
    "cut off": (document()[:-20], "this is not XML"),
    "no model": ('<sbml xmlns="http://www.sbml.org/sbml/level3/version2/core" level="3" version="2"/>', "no model"),
    "other XML": ("<html><body/></html>", "this is not SBML"),
    "other encoding": ('<?xml version="1.0" encoding="UTF-7"?><sbml/>', "save it as UTF-8|not XML"),
    "bytes": (document().encode("utf-16"), "not UTF-8 text"),
    "outside": (external("../../elsewhere.xml"), "must be a file in the folder of this one"),
    "network": (external("http://127.0.0.1:9/model.xml"), "must be a file in the folder of this one"),
    "absolute": (external("/etc/passwd"), "must be a file in the folder of this one"),
    "dangling": (
        DANGLING.partition("<comp:listOfExternal")[0] + "</sbml>",
        "libsbml cannot write out the submodels",
    ),
    "not there": (external("there.xml"), "there is no such file"),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_one_sentence(kind, tmp_path):
    text, reason = HOSTILE[kind]
    path = tmp_path / "model.xml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(oj.ModelError, match=reason) as refusal:
        oj.read_sbml(path)
    assert str(path.parent) in str(refusal.value)
    assert "\n" not in str(refusal.value) and len(str(refusal.value)) < 500


def test_the_large_one_is_large():
    assert 5_000_000 < len(HOSTILE["large"][0]) < 20_000_000


def test_files_that_are_not_there(tmp_path):
    with pytest.raises(oj.ModelError, match="no such file"):
        oj.read_sbml(tmp_path / "nothing.xml")
    with pytest.raises(oj.ModelError, match="a directory"):
        oj.read_sbml(tmp_path)


def test_without_libsbml(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "libsbml", None)
    (tmp_path / "model.xml").write_text(document())
    with pytest.raises(oj.ModelError, match=r"pip install 'odejet\[petab\]'"):
        oj.read_sbml(tmp_path / "model.xml")
