"""Flattening: submodels written out by libsbml, in a process of its own.

libsbml ends the whole process on some documents whose parts do not fit together, and submodels inside submodels may
come to any size; a child with limits of time and memory can end without harm.  The document goes to its stdin, the
address of the file is its argument, and the flat document comes from its stdout.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from odejet.errors import ModelError

SECONDS = 30
MEMORY = 2_000_000_000

_CHILD = f"""
import sys
try:
    import resource
    resource.setrlimit(resource.RLIMIT_AS, ({MEMORY}, {MEMORY}))
except (ImportError, ValueError, OSError):
    pass
import libsbml
document = libsbml.readSBMLFromString(sys.stdin.buffer.read().decode("utf-8", errors="replace"))
if len(sys.argv) > 1:
    document.setLocationURI(sys.argv[1])
properties = libsbml.ConversionProperties()
for option, value in (("flatten comp", True), ("performValidation", False), ("leavePorts", False)):
    properties.addOption(option, value)
if document.convert(properties) != libsbml.LIBSBML_OPERATION_SUCCESS:
    sys.exit(1)
sys.stdout.buffer.write(libsbml.writeSBMLToString(document).encode())
"""


def flattened(data: bytes, where: str, path: Path | None) -> str:
    """The text of a document without submodels."""
    address = [] if path is None else [path.resolve().as_uri()]
    command = [sys.executable, "-I", "-c", _CHILD, *address]
    try:
        done = subprocess.run(command, input=data, capture_output=True, timeout=SECONDS, check=False)
    except subprocess.TimeoutExpired:
        raise ModelError(f"{where}: the submodels (package 'comp') take more than {SECONDS} s to flatten") from None
    if done.returncode or not done.stdout:
        raise ModelError(f"{where}: libsbml cannot flatten the submodels (package 'comp'); check what they refer to")
    return done.stdout.decode()
