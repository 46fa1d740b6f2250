"""Antimony: models as people write reaction networks by hand, read and written by way of SBML.

libantimony runs in a process of its own: submodels inside submodels may come to any size, and its `import` opens
whatever file a model names, with no switch to turn that off.  The child has limits of time and memory, and once the
library is loaded it may open no file at all.  The text goes to its stdin, what it becomes comes from its stdout.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from odejet.errors import ModelError
from odejet.extras import needed
from odejet.io.files import read_text, write_all
from odejet.io.sbml import network_of_text
from odejet.io.sbml.building import model_of
from odejet.model import Model

MAX_BYTES = 2_000_000
MAX_NESTING = 200
SECONDS = 30
MEMORY = 2_000_000_000

_TOKEN = re.compile(
    r"""(?P<skipped>//[^\r\n]*|\#[^\r\n]*|/\*.*?(?:\*/|\Z)|\"{3}.*?(?:\"{3}|\Z)|`{3}.*?(?:`{3}|\Z)|"[^"\r\n]*"?)"""
    r"""|(?P<word>\w+)|(?P<mark>[()])""",
    re.DOTALL,
)
"""What is skipped (comments and quoted text), words and parentheses."""

_CHILD = f"""
import sys
import antimony
text = sys.stdin.buffer.read().decode("utf-8", errors="replace")
try:
    import resource
    resource.setrlimit(resource.RLIMIT_AS, ({MEMORY}, {MEMORY}))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, 0))
except (ImportError, ValueError, OSError):
    pass
reading = sys.argv[1] == "read"
done = (antimony.loadAntimonyString if reading else antimony.loadSBMLString)(text)
if done >= 0:
    name = antimony.getMainModuleName()
    result = antimony.getSBMLString(name) if reading else antimony.getAntimonyString(name)
else:
    result = antimony.getLastError()
sys.stdout.buffer.write((result or "").encode("utf-8", errors="replace"))
sys.stdout.flush()
sys.exit(0 if done >= 0 else 1)
"""


def read_antimony(path: str | os.PathLike[str], free: Iterable[str] = ()) -> Model:
    """The model in an Antimony file, as `read_sbml` reads it."""
    name = "".join(c for c in Path(path).stem if c.isprintable())[:100]
    return parse(read_text(path, MAX_BYTES), str(path), free, name or None)


def parse(text: str, where: str = "model", free: Iterable[str] = (), name: str | None = None) -> Model:
    """The model in a text."""
    return model_of(network_of_text(sbml_of(text, where), where).replaced({}, free), name=name)


def write_antimony(model: Model, path: str | os.PathLike[str] | None = None) -> str:
    """The model as Antimony, also written to `path` if one is given."""
    done, text = _child(model.to_sbml(), "write", model.name)
    if not done:
        raise ModelError(f"{model.name} cannot be written as Antimony ({_reason(text)})")
    if path is not None:
        write_all({os.fspath(path): lambda file: file.write(text.encode())})
    return text


def sbml_of(text: str, where: str) -> str:
    """The SBML of a text in Antimony."""
    if "\0" in text:
        raise ModelError(f"{where}: the file holds a NUL character, and is no text")
    _check_tokens(text, where)
    done, sbml = _child(text, "read", where)
    if not done:
        raise ModelError(f"{where}: this is not Antimony: {_reason(sbml)}")
    return sbml


def _check_tokens(text: str, where: str) -> None:
    """Refuse imports and deep nesting, outside of comments and quoted text."""
    depth = 0
    for token in _TOKEN.finditer(text):
        if token["word"] == "import":
            raise ModelError(f"{where}: import reads other files and is not supported; put everything into one file")
        if token["mark"]:
            depth += 1 if token["mark"] == "(" else -1
        if depth > MAX_NESTING:
            raise ModelError(f"{where}: parentheses are nested more than {MAX_NESTING} deep")


def _child(text: str, task: str, where: str) -> tuple[bool, str]:
    """Whether libantimony could do its task with a text, and what that becomes, or the reason."""
    needed("antimony")
    # An empty folder: where the system has no limits, an import finds nothing beside it.
    with tempfile.TemporaryDirectory() as empty:
        try:
            done = subprocess.run(
                [sys.executable, "-I", "-c", _CHILD, task],
                input=text.encode(),
                capture_output=True,
                timeout=SECONDS,
                check=False,
                cwd=empty,
            )
        except subprocess.TimeoutExpired:
            raise ModelError(f"{where}: libantimony takes more than {SECONDS} s; make the model smaller") from None
    if done.returncode not in (0, 1) or not done.stdout:
        reason = f"libantimony cannot work on it within {MEMORY // 10**9} GB of memory; make the model smaller"
        raise ModelError(f"{where}: {reason}")
    return done.returncode == 0, done.stdout.decode("utf-8", errors="replace")


def _reason(told: str) -> str:
    return " ".join(told.split())[:300]
