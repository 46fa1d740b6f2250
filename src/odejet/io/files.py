"""Files: what is read stays within limits, and all files written whole or not at all.

Everything is first written beside its destination under another name, and moved into place only when all of it is
there.  A run that fails leaves no file behind and an older one untouched.
"""

from __future__ import annotations

import errno
import os
import secrets
import select
import shutil
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import BinaryIO

from odejet.errors import ModelError, nearest

MANY_FILES = 1000
"""Files of a folder among whose names one is looked for."""

WAITED = 10
"""Seconds in which something must come through a pipe that is read in place of a file."""

Writer = Callable[[BinaryIO], object]
"""Writes the content of a file into it."""


def missing(path: str | os.PathLike[str]) -> str:
    """That there is no such file; with one beside it that has nearly its name."""
    wanted = Path(path)
    try:
        with os.scandir(wanted.parent) as beside:
            names = [one.name for one in beside if Path(one.name).suffix == wanted.suffix and one.is_file()]
    except OSError:
        names = []
    return f"{path}: there is no such file{nearest(wanted.name, names[:MANY_FILES], cutoff=0.75)}"


def read_bytes(
    path: str | os.PathLike[str], limit: int, what: str = "model", error: type[ValueError] = ModelError
) -> bytes:
    """What is in a file, or one sentence on why there is nothing."""
    try:
        with open(path, "rb", opener=_opener) as file:
            data = file.read(limit + 1) if _is_regular(file) else _arrived(file, limit)
    except FileNotFoundError:
        raise error(missing(path)) from None
    except IsADirectoryError:
        raise error(f"{path}: this is a directory; name the {what} file inside it") from None
    except TimeoutError:
        raise error(f"{path}: this is no file but a pipe, and nothing came through it in {WAITED} s") from None
    except OSError as reason:
        raise error(f"{path}: the file cannot be read ({(reason.strerror or 'unknown reason').lower()})") from None
    except ValueError:
        raise error(f"{str(path)!r} is not a file name") from None
    if len(data) > limit:
        size = f"{limit // 10**9} GB" if limit >= 10**9 else f"{limit // 10**6} MB"
        raise error(f"{path}: the file is larger than {size}, which no {what} needs")
    return data


def _opener(path: str, flags: int) -> int:
    """Open a file without waiting for somebody to write into it, should it be a pipe."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def _is_regular(file: BinaryIO) -> bool:
    return not hasattr(select, "poll") or stat.S_ISREG(os.fstat(file.fileno()).st_mode)


def _arrived(file: BinaryIO, limit: int) -> bytes:
    """What comes through a pipe, as long as something does."""
    ready = select.poll()
    ready.register(file, select.POLLIN)
    parts, length = [], 0
    while length <= limit:
        if not ready.poll(1000 * WAITED):
            raise TimeoutError
        part = os.read(file.fileno(), 1 << 16)
        if not part:
            break
        parts.append(part)
        length += len(part)
    return b"".join(parts)


def read_text(path: str | os.PathLike[str], limit: int) -> str:
    """The text in a model file."""
    data = read_bytes(path, limit)
    try:
        # Editors on Windows may put a byte order mark first.
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise ModelError(f"{path}: line {line} is not UTF-8 text; save the file as UTF-8") from None


def check_writable(path: str) -> None:
    """Refuse a file that could not be written, before the work whose result it is to hold."""
    if "\0" in path:
        raise ModelError(f"{path!r} is not a file name")
    with _told_of(path):
        target = Path(path).resolve()
        if target.is_dir():
            raise ModelError(f"{path}: this is a directory; name a file inside it")
        if not target.parent.is_dir():
            raise FileNotFoundError
        if not os.access(target if target.exists() and not target.is_file() else target.parent, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))


def write_all(contents: Mapping[str, Writer]) -> None:
    """Write every file, or none of them if one cannot be written."""
    with ExitStack() as drafts:
        ready = [drafts.enter_context(_draft(path, writer)) for path, writer in contents.items()]
        for publish in ready:
            publish()


@contextmanager
def _draft(path: str, writer: Writer) -> Iterator[Callable[[], None]]:
    """The content of a file to be, and what moves it into place; a draft that is not moved is removed."""

    def publish() -> None:
        with _told_of(path):
            # Devices and pipes cannot be replaced, only written to.
            if draft is None:
                _write(Path(path), writer)
                return
            if target.exists():
                shutil.copymode(target, draft)
            os.replace(draft, target)

    draft = None
    try:
        if "\0" in path:
            raise ModelError(f"{path!r} is not a file name")
        with _told_of(path):
            target = Path(path).resolve()  # behind a link, the file itself is replaced
            if target.is_dir():
                raise ModelError(f"{path}: this is a directory; name a file inside it")
            if target.is_file() or not os.path.exists(path):
                draft = target.with_name(f".odejet-{secrets.token_hex(8)}")
                _write(draft, writer)
        yield publish
    finally:
        if draft is not None:
            draft.unlink(missing_ok=True)


def _write(path: Path, writer: Writer) -> None:
    with open(path, "wb") as file:
        writer(file)


@contextmanager
def _told_of(path: str) -> Iterator[None]:
    """What the operating system says of a file, as a sentence about `path`."""
    try:
        yield
    except BrokenPipeError:
        raise
    except FileNotFoundError:
        raise ModelError(f"{path}: there is no such directory to write to") from None
    except OSError as error:
        reason = (error.strerror or "unknown reason").lower()
        raise ModelError(f"{path}: the file cannot be written ({reason})") from None
