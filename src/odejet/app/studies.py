"""Studies: a folder on disk with all that somebody has put together and found, a folder for each.

    FOLDER/NAME/study.json         the draft, its name and its revision
    FOLDER/NAME/files/             what was dropped: data, doses, models
    FOLDER/NAME/fits/1/fit.json    a fit with its report, its script and what became of it

Every file is written whole or not at all, so that nothing is lost when the program or the machine stops at any moment;
what a save that was killed leaves is swept away at the next start.  A file that something else has damaged is kept
beside the one that takes its place.  A study that is removed goes to `removed`, where it can be found again.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import time
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from odejet.app.drafts import Draft
from odejet.errors import DataError, clipped

STUDY, FILES, FITS, STATE, REMOVED, LOCK = "study.json", "files", "fits", "state.json", "removed", ".lock"
MOST_STUDIES, MOST_FITS, MOST_FILES = 1000, 500, 200
LONGEST_NAME = 80
TIMES = ("began", "found", "ended", "limit")
"""Of a fit, in seconds."""

_ID = re.compile(r"[a-z0-9][a-z0-9-]{0,79}")
_FILE = re.compile(r"[\w][\w .()+-]{0,99}")
_NUMBER = re.compile(r"[1-9][0-9]{0,8}")
_LEFT = re.compile(r"\..+-[0-9a-f]{8}|\.odejet-[0-9a-f]{16}")
"""Names of files that were not finished."""


class Changed(Exception):
    """Another tab has changed the study meanwhile."""


class Missing(Exception):
    """There is no such study, fit or file."""


def write(path: Path, content: bytes) -> None:
    """A file, whole or not at all, and on disk before anybody relies on it."""
    draft = path.with_name(f".{path.name}-{secrets.token_hex(4)}")
    try:
        with open(draft, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, path)
    finally:
        draft.unlink(missing_ok=True)


def table_of(content: bytes) -> dict[str, Any] | None:
    """The table in JSON that somebody may have written; None for anything that could not be written again."""
    try:
        told = json.loads(content)
        # Infinite numbers and halves of characters are read by Python, and nobody else.
        json.dumps(told, ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, RecursionError):
        return None
    return told if isinstance(told, dict) else None


def _read(path: Path) -> dict[str, Any]:
    """What a file of ours holds; nothing if it was damaged."""
    try:
        return table_of(path.read_bytes()) or {}
    except OSError:
        return {}


def _keep_damaged(path: Path, is_whole: Callable[[dict[str, Any]], bool] = bool) -> None:
    """Keep a file that cannot be read, before another takes its place."""
    with suppress(OSError):
        told = table_of(path.read_bytes())
        if told is None or not is_whole(told):
            os.replace(path, path.with_name(f"{path.stem}-damaged-{secrets.token_hex(3)}{path.suffix}"))


def _has_draft(told: Mapping[str, Any]) -> bool:
    """Whether what a study was put together of can be read."""
    try:
        Draft.read(told.get("draft"))
    except DataError:
        return False
    return isinstance(told.get("name"), str)


def _real(value: Any) -> float | None:
    """A number that means something, or nothing."""
    return (
        float(value) if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300 else None
    )


def checked_file(name: str) -> str:
    """The name of a file that may be kept, which is a plain one."""
    name = unicodedata.normalize("NFC", name)
    if not _FILE.fullmatch(name) or name.endswith((".", " ")):
        raise DataError(
            f"{clipped(name)} is no name for a file here; rename it with letters and digits, and drop it again"
        )
    return name


def checked_name(name: object) -> str:
    """The name of a study: one line."""
    if not isinstance(name, str) or not name.strip() or not name.isprintable() or len(name) > LONGEST_NAME:
        raise DataError(f"a study needs a name of one line, of at most {LONGEST_NAME} characters")
    return name.strip()


@dataclass(frozen=True)
class Study:
    """One study on disk."""

    path: Path

    @property
    def id(self) -> str:
        return self.path.name

    @property
    def files(self) -> Path:
        return self.path / FILES

    def read(self) -> dict[str, Any]:
        """Its name, its draft and the revision of both."""
        told = _read(self.path / STUDY)
        revision, draft, name = told.get("revision"), told.get("draft"), told.get("name")
        return {
            "id": self.id,
            "name": name if isinstance(name, str) and name.strip() else self.id,
            "revision": revision if isinstance(revision, int) else 0,
            "draft": draft if isinstance(draft, dict) else {},
            "changed": _real(told.get("changed")) or 0.0,
        }

    def save(self, name: str, draft: Mapping[str, Any], revision: int | None, author: str = "", turn: int = 0) -> int:
        """The next revision, unless somebody else has written one since this was read.

        An author need not wait for the answer to go on: of what one author sends, the highest turn counts, in
        whatever order it comes.
        """
        now: int = self.read()["revision"]
        last = _read(self.path / STUDY)
        own = bool(author) and author == last.get("author")
        if revision is not None and revision != now and not own:
            raise Changed
        if own and turn <= (_real(last.get("turn")) or 0):
            return now
        told = {"name": checked_name(name), "revision": now + 1, "changed": time.time(), "draft": draft}
        told |= {"author": author, "turn": turn}
        content = json.dumps(told, ensure_ascii=False, indent=1).encode()
        _keep_damaged(self.path / STUDY, _has_draft)
        write(self.path / STUDY, content)
        return now + 1

    def keep(self, name: str, content: bytes) -> str:
        """A file that was dropped."""
        name = checked_file(name)
        self.files.mkdir(exist_ok=True)
        if len(list(self.files.iterdir())) >= MOST_FILES and not (self.files / name).exists():
            raise DataError(f"this study has {MOST_FILES} files already; start a new one")
        write(self.files / name, content)
        return name

    # --- fits ---

    def new_fit(self, told: Mapping[str, Any]) -> int:
        """A folder for a further fit, and its number."""
        numbers = self.fits()
        if len(numbers) >= MOST_FITS:
            raise DataError(f"this study has {MOST_FITS} fits already; remove some of them")
        number = max(numbers, default=0) + 1
        (self.path / FITS / str(number)).mkdir(parents=True)
        self.note(number, told)
        return number

    def fits(self) -> list[int]:
        """The numbers of its fits, in order."""
        with suppress(OSError):
            found = [one for one in (self.path / FITS).iterdir() if _NUMBER.fullmatch(one.name) and one.is_dir()]
            return sorted(int(one.name) for one in found)
        return []

    def fit(self, number: int) -> Path:
        path = self.path / FITS / str(number)
        if not path.is_dir():
            raise Missing
        return path

    def state(self, number: int) -> dict[str, Any]:
        """What became of a fit; times that are no numbers are left out."""
        told = _read(self.fit(number) / STATE)
        times = {name: time for name in TIMES if (time := _real(told.get(name))) is not None}
        word = told.get("state")
        words = {"state": word} if isinstance(word, str) else {}
        return {name: value for name, value in told.items() if name not in (*TIMES, "state")} | times | words

    def note(self, number: int, told: Mapping[str, Any]) -> None:
        _keep_damaged(self.path / FITS / str(number) / STATE)
        write(self.path / FITS / str(number) / STATE, json.dumps(told).encode())

    def remove_fit(self, number: int) -> None:
        shutil.rmtree(self.fit(number))


class Folder:
    """All studies, in the folder that the user has chosen; one program at a time has it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            path.mkdir(parents=True, exist_ok=True)
            self._lock = _locked(path / LOCK)
            _sweep(path)
        except OSError as error:
            reason = (error.strerror or "unknown reason").lower()
            raise DataError(f"{path}: studies cannot be kept in this folder ({reason}); name another") from None

    def close(self) -> None:
        self._lock.close()

    def __iter__(self) -> Iterator[Study]:
        """Studies, the one that changed last first."""
        found = [Study(one) for one in self.path.iterdir() if _ID.fullmatch(one.name) and (one / STUDY).is_file()]
        yield from sorted(found, key=lambda study: -(study.path / STUDY).stat().st_mtime)

    def study(self, id: str) -> Study:
        found = Study(self.path / id)
        if not _ID.fullmatch(id) or id == REMOVED or not (found.path / STUDY).is_file():
            raise Missing
        return found

    def create(self, name: str, draft: Mapping[str, Any], files: Mapping[str, bytes]) -> Study:
        """A new study with its files."""
        if sum(1 for _ in self) >= MOST_STUDIES:
            raise DataError(f"there are {MOST_STUDIES} studies already; remove some of them")
        plain = re.sub(r"[^a-z0-9]+", "-", unicodedata.normalize("NFKD", checked_name(name)).lower()).strip("-")
        study = Study(self.path / f"{(plain or 'study')[:60]}-{secrets.token_hex(3)}")
        (study.path / FILES).mkdir(parents=True)
        for title, content in files.items():
            study.keep(title, content)
        study.save(name, draft, None)
        return study

    def remove(self, study: Study) -> None:
        """Out of the list, and still on disk."""
        (self.path / REMOVED).mkdir(exist_ok=True)
        os.replace(study.path, self.path / REMOVED / f"{study.id}-{secrets.token_hex(3)}")


def _sweep(path: Path) -> None:
    """Remove what saves that were killed have left; nobody else writes here."""
    studies = [one for one in path.iterdir() if _ID.fullmatch(one.name) and one.is_dir() and not one.is_symlink()]
    for folder in [folder for one in studies for folder in (one, one / FILES, *(one / FITS).glob("*"))]:
        with suppress(OSError):
            for one in folder.iterdir():
                if _LEFT.fullmatch(one.name) and one.is_file():
                    one.unlink()


def _locked(path: Path) -> Any:
    """A file that stays open as long as the program runs; another program cannot have it meanwhile."""
    file = open(path, "a+b")  # noqa: SIM115 - it is to stay open
    try:
        import fcntl
    except ImportError:  # systems without it trust their user
        return file
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.close()
        raise DataError(
            f"{path.parent}: another odejet app works in this folder; use that one, or name another folder"
        ) from None
    return file
