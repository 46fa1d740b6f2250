"""Archives: a study as one zip that can be sent to somebody, dropped on another page, or run by `odejet run`.

    study.json     the name and the draft
    files/         the files that it was made of

An archive is data that somebody else may have written: names of files are plain ones, and sizes have limits.
"""

from __future__ import annotations

import io
import json
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from odejet.app.drafts import Draft
from odejet.app.studies import FILES, MOST_FILES, STUDY, Study, checked_file, checked_name, table_of
from odejet.errors import DataError, clipped

LARGEST = 256_000_000
"""Bytes of all files of an archive together, unpacked."""

_PART = 1 << 20

_PACKINGS = zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED
"""How files may be packed: of other ways, Python unpacks all that a kilobyte may hold before anybody can stop it."""

_BROKEN = (zipfile.BadZipFile, zipfile.LargeZipFile, zlib.error, RuntimeError, NotImplementedError, EOFError, OSError)


@dataclass(frozen=True)
class Archive:
    """A study as it travels."""

    name: str
    draft: Draft
    files: Mapping[str, bytes]


def packed(study: Study) -> bytes:
    """The zip of a study: what was put together, with its files and without its fits."""
    told = study.read()
    kept = sorted(one for one in study.files.iterdir() if one.is_file()) if study.files.is_dir() else []
    document = {"odejet": 1, "name": told["name"], "draft": Draft.read(told["draft"]).to_dict()}
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(STUDY, json.dumps(document, ensure_ascii=False, indent=1))
        for one in kept:
            if not one.name.startswith("."):
                archive.write(one, f"{FILES}/{one.name}")
    return buffer.getvalue()


def is_archive(content: bytes) -> bool:
    """Whether a file is a zip with a study inside."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            return STUDY in archive.namelist()
    except (zipfile.BadZipFile, ValueError, OSError, NotImplementedError):
        return False


def unpacked(content: bytes, where: str) -> Archive:
    """The study in a zip; whatever does not belong there is refused."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            listed = [one for one in archive.infolist() if not one.is_dir()]
            if len(listed) > MOST_FILES + 1:
                raise DataError(f"{where}: an archive of a study has at most {MOST_FILES} files")
            contents = _read(archive, listed, where)
    except _BROKEN as error:
        raise DataError(f"{where}: this zip cannot be read ({error}); export the study again") from None
    told = table_of(contents.pop(STUDY, b""))
    if told is None:
        raise DataError(f"{where}: there is no {STUDY} in this zip; export a study from the page of odejet app")
    files = {checked_file(name.removeprefix(f"{FILES}/")): data for name, data in contents.items()}
    return Archive(checked_name(told.get("name")), _draft(told, files, where), files)


def _draft(told: Mapping[str, Any], files: Mapping[str, bytes], where: str) -> Draft:
    draft = Draft.read(told.get("draft"))
    for name in (draft.data, draft.file):
        if name and name not in files:
            raise DataError(f"{where}: the file {name} of the study is missing in this zip; export the study again")
    return draft


def _read(archive: zipfile.ZipFile, listed: list[zipfile.ZipInfo], where: str) -> dict[str, bytes]:
    """What the files hold; what a header says of their sizes is not believed."""
    found: dict[str, bytes] = {}
    left = LARGEST
    for one in listed:
        if one.compress_type not in _PACKINGS:
            raise DataError(f"{where}: {clipped(one.filename)} is packed in an unusual way; export the study again")
        parts = []
        with archive.open(one) as file:
            while part := file.read(_PART):
                left -= len(part)
                if left < 0:
                    raise DataError(f"{where}: the files of this zip are larger than {LARGEST // 1_000_000} MB")
                parts.append(part)
        found[one.filename] = b"".join(parts)
    return found
