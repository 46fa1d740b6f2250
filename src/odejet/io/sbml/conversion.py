"""Conversion: libsbml's converters, in a process of their own.

libsbml ends the whole process on some documents whose parts do not fit together, and submodels inside submodels may
come to any size; a child with limits of time and memory can end without harm.  The document goes to its stdin, what is
to be done and the address of the file are its arguments, and the converted document comes from its stdout.
"""

from __future__ import annotations

import sys
from pathlib import Path

from odejet import processes
from odejet.errors import ModelError

SECONDS = 30
MEMORY = 2_000_000_000

FLATTEN = ("flatten comp",)
EXPAND = ("expandFunctionDefinitions", "promoteLocalParameters", "upgrade")

_CHILD = """
import sys
import libsbml
document = libsbml.readSBMLFromString(sys.stdin.buffer.read().decode("utf-8", errors="replace"))
document.setLocationURI(sys.argv[1])
for option in sys.argv[2:]:
    if option == "upgrade":
        done = (document.getLevel(), document.getVersion()) == (3, 2) or document.setLevelAndVersion(3, 2, False)
    else:
        properties = libsbml.ConversionProperties()
        properties.addOption(option, True)
        properties.addOption("performValidation", False)
        properties.addOption("leavePorts", False)
        done = document.convert(properties) == libsbml.LIBSBML_OPERATION_SUCCESS
    if not done:
        sys.exit(1)
sys.stdout.buffer.write(libsbml.writeSBMLToString(document).encode())
sys.stdout.flush()
"""


def converted(data: bytes, options: tuple[str, ...], where: str, path: Path | None) -> bytes:
    """The text of a document after conversions."""
    address = "" if path is None else path.resolve().as_uri()
    command = [sys.executable, "-I", "-c", _CHILD, address, *options]
    what = "the submodels (package 'comp')" if options == FLATTEN else "its functions and local parameters"
    try:
        done = processes.completed(command, data, seconds=SECONDS, memory=MEMORY)
    except processes.TimedOut:
        raise ModelError(f"{where}: {what} take libsbml more than {SECONDS} s to write out") from None
    if done.status or not done.output:
        raise ModelError(f"{where}: libsbml cannot write out {what}; check what they refer to")
    return done.output
