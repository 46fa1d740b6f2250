"""Run: a study that the page has exported, from its zip to its files."""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Any

from odejet.cli.console import Status, put, told
from odejet.errors import DataError
from odejet.progress import Progress


def describe(commands: Any) -> None:
    parser = commands.add_parser(
        "run",
        help="do what a study of the page asks for, from its zip",
        description="Do what a study asks for that `odejet app` has exported as a zip: a fit, draws from the "
        "posterior, a population fit or a comparison of models. Model, data, script, results and report are written "
        "into a folder.",
        epilog="Exit status: 0 certified (draws: chains agree; models: confirmed), 1 not, 2 bad input, 3 no fit.",
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("study", metavar="STUDY", help="the zip of a study")
    add("-o", "--output", metavar="FOLDER", help="where files are written (default: beside the zip, called like it)")
    add("-q", "--quiet", action="store_true", help="no table on stdout, no progress")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    from odejet.app import tasks
    from odejet.app.archives import LARGEST, unpacked
    from odejet.interruption import termination
    from odejet.io.files import read_bytes

    path = Path(arguments.study)
    study = unpacked(read_bytes(path, LARGEST, "study", DataError), str(path))
    into = Path(arguments.output) if arguments.output else path.with_suffix("")
    if into.exists() and not into.is_dir():
        raise DataError(f"{into}: this is a file; name a folder with -o")
    with tempfile.TemporaryDirectory() as place:
        for name, content in study.files.items():
            (Path(place) / name).write_bytes(content)
        _made(into)
        tasks.prepare(study.draft, Path(place), study.name, into)
        with Progress(not arguments.quiet) as shown:
            with termination():
                done = tasks.done(study.draft, Path(place), study.name, shown.stage)
            done.save(into)
            shown.stage("writing the report")
            done.report(into / tasks.REPORT)
    if not arguments.quiet:
        put(f"{done.summary}\n".encode())
        told(str(into / tasks.REPORT))
    return Status.DONE if done.certified else Status.UNCERTIFIED


def _made(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = (error.strerror or "unknown reason").lower()
        raise DataError(f"{folder}: this folder cannot be made ({reason}); name another with -o") from None
