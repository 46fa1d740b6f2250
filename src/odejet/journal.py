"""Journal: what a long computation has found so far, in a file from which it goes on should it be ended.

A computation that does the same again when it is started again asks for every result before it works it out.  What
stands in the journal is taken from there, and the clock is put to where it was when it was written: a computation that
was killed comes back to where it was, and its limits of time count what it took before.

A file begins with a line of JSON that says what it belongs to.  Records follow, each with its length and a checksum, so
that one which was not written to its end is left out.  They hold numbers and text; nothing in them is executed.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
import struct
import sys
import time
import warnings
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, BinaryIO, Protocol

import numpy as np

from odejet import clock
from odejet.errors import DataError

KIND = "odejet checkpoint"
FORM = 1
"""Of the file; others are refused."""

MOST_TITLE = 100_000
"""Bytes of the first line."""

SYNC = 10.0
"""Seconds after which records are written to the disk itself; those of a process that is killed are safe at once."""

LONGEST = 1e9
"""Seconds that a computation may have taken so far, about thirty years."""

MISSES = 50
"""Results that are not there, one after the other, after which a computation has come to the end of its journal."""

_HEAD = struct.Struct("<IId16s")  # length and checksum of the content, seconds since the beginning, key


class Keeper(Protocol):
    """Keeps results by key."""

    def recall(self, key: bytes) -> bytes | None: ...

    def keep(self, key: bytes, content: bytes) -> None: ...


class Journal:
    """The results of a computation in a file."""

    def __init__(self, path: str, title: Mapping[str, Any]) -> None:
        """Open the journal of what the title says, or begin one; `DataError` if the file is that of something else."""
        self.path = path
        self.found: dict[bytes, tuple[int, int, float]] = {}  # place, length and time of results not yet asked for
        self.misses = 0
        self.began, self.synced = clock.worked(), time.monotonic()
        self.file: BinaryIO | None = None
        try:
            if not os.path.exists(path):
                _begin(path, title)
            if not os.path.isfile(path):
                raise DataError(f"{path}: this is no file; name one that may be written")
            self.file = open(path, "r+b", buffering=0)  # noqa: SIM115  # until `close`
            _lock(self.file, path)
            self._read(title)
        except OSError as reason:
            self.close(keep=True)
            raise DataError(f"{path}: the checkpoint cannot be written ({(reason.strerror or '').lower()})") from None
        except DataError:
            self.close(keep=True)
            raise

    @property
    def is_replaying(self) -> bool:
        """Whether the computation is still where it was before."""
        return bool(self.found) and self.misses < MISSES

    def recall(self, key: bytes) -> bytes | None:
        """Return a result of before, with the clock where it was then; None where there is none."""
        if self.file is None or (place := self.found.pop(key, None)) is None:
            self.misses += 1
            return None
        offset, length, when = place
        self.misses = 0
        content = os.pread(self.file.fileno(), length, offset) if hasattr(os, "pread") else self._content(place)
        clock.skip(max(when - (clock.worked() - self.began), 0.0))
        return content

    def keep(self, key: bytes, content: bytes) -> None:
        """Write a result; should that fail, the computation goes on without a journal."""
        if self.file is None:
            return
        head = _HEAD.pack(len(content), zlib.crc32(key + content), clock.worked() - self.began, key)
        try:
            self.file.seek(0, os.SEEK_END)
            self.file.write(head + content)
            if time.monotonic() - self.synced > SYNC:
                os.fsync(self.file.fileno())
                self.synced = time.monotonic()
        except OSError as reason:
            why = (reason.strerror or "it cannot be written").lower()
            warnings.warn(f"{self.path}: {why}; the fit goes on without a checkpoint", stacklevel=2)
            self.close(keep=True)

    def close(self, keep: bool) -> None:
        """End the journal; a computation that has come to its end needs it no more."""
        if self.file is not None:
            with contextlib.suppress(OSError):
                self.file.close()
            self.file = None
            if not keep:
                with contextlib.suppress(OSError):
                    os.remove(self.path)

    def _content(self, place: tuple[int, int, float]) -> bytes:
        assert self.file is not None
        self.file.seek(place[0])
        return self.file.read(place[1])

    def _read(self, title: Mapping[str, Any]) -> None:
        """Find what stands in the file; what was not written to its end is cut off."""
        assert self.file is not None
        with open(self.path, "rb") as file:
            _check_title(file.readline(MOST_TITLE), title, self.path)
            end = file.tell()
            while len(head := file.read(_HEAD.size)) == _HEAD.size:
                length, checksum, when, key = _HEAD.unpack(head)
                content = file.read(length) if length <= os.fstat(file.fileno()).st_size else b""
                if len(content) < length or zlib.crc32(key + content) != checksum or not 0 <= when < LONGEST:
                    break
                self.found[key] = end + _HEAD.size, length, when
                end = file.tell()
        self.file.truncate(end)


def _begin(path: str, title: Mapping[str, Any]) -> None:
    """Write the first line, whole or not at all."""
    beside = f"{path}.{secrets.token_hex(4)}"
    try:
        with open(beside, "xb") as file:
            file.write(json.dumps({"kind": KIND, "form": FORM, **title}).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
    except OSError:
        with contextlib.suppress(OSError):
            os.remove(beside)
        raise


def _check_title(line: bytes, title: Mapping[str, Any], path: str) -> None:
    """Refuse a file that is no journal, or that of something else."""
    try:
        told = json.loads(line)
    except (ValueError, RecursionError):
        told = None
    if not isinstance(told, dict) or told.get("kind") != KIND:
        raise DataError(f"{path}: this is no checkpoint of odejet, and is left as it is; name another file")
    if told.get("form") != FORM:
        raise DataError(f"{path}: the checkpoint is of another version of odejet; go on with that, or delete the file")
    for name, value in title.items():
        if told.get(name) != value:
            raise DataError(
                f"{path}: the checkpoint is of another fit: its {name} differs; name another file, or delete this one"
            )


def _lock(file: BinaryIO, path: str) -> None:
    """Refuse a file that another process is writing to, where the system can tell."""
    if sys.platform != "win32":
        import fcntl

        try:
            fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            told = f"{path}: another fit is writing this checkpoint; wait for it, or name another file"
            raise DataError(told) from None


# --- where a computation looks ---

_KEEPER: ContextVar[Keeper | None] = ContextVar("keeper", default=None)


def keeper() -> Keeper | None:
    """Return whoever keeps results here; None where nobody does."""
    return _KEEPER.get()


def is_replaying() -> bool:
    """Return whether results still come from a journal."""
    own = keeper()
    return isinstance(own, Journal) and own.is_replaying


@contextmanager
def kept_by(own: Keeper | None) -> Iterator[None]:
    """Have results kept."""
    before = _KEEPER.set(own)
    try:
        yield
    finally:
        _KEEPER.reset(before)


class Notes:
    """Results that are sent to somebody else's journal."""

    def __init__(self) -> None:
        self.kept: list[tuple[bytes, bytes]] = []

    def recall(self, key: bytes) -> None:
        return None

    def keep(self, key: bytes, content: bytes) -> None:
        self.kept.append((key, content))


# --- what is written ---


def digest(*parts: Any) -> bytes:
    """Return a key of numbers, texts and arrays."""
    found = hashlib.blake2b(digest_size=16)
    for part in parts:
        content = part.tobytes() if isinstance(part, np.ndarray) else part
        content = content if isinstance(content, bytes) else repr(content).encode()
        found.update(struct.pack("<q", len(content)) + content)
    return found.digest()


def packed(values: Mapping[str, Any]) -> bytes:
    """Return numbers, texts and arrays as bytes: a line of JSON, and the arrays after it."""
    line, arrays = dict[str, Any](), list[np.ndarray]()
    for name, value in values.items():
        if isinstance(value, np.ndarray):
            line[name] = {"kind": _KINDS[value.dtype.kind], "shape": value.shape}
            arrays.append(np.ascontiguousarray(value, dtype=_KINDS[value.dtype.kind]))
        else:
            line[name] = value
    return b"".join([json.dumps(line, default=_scalar).encode(), b"\n", *(array.tobytes() for array in arrays)])


def unpacked(content: bytes) -> dict[str, Any]:
    """Return what was packed; `ValueError` or `KeyError` where it was something else."""
    line, _, rest = content.partition(b"\n")
    values, place = dict[str, Any](json.loads(line)), 0
    for name, value in values.items():
        if isinstance(value, dict):
            if value["kind"] not in _KINDS.values():
                raise ValueError("an array is neither of numbers nor of truth values")
            kind, shape = np.dtype(value["kind"]), tuple(map(int, value["shape"]))
            count = int(np.prod(shape, dtype=np.int64))
            values[name] = np.frombuffer(rest, kind, count, place).reshape(shape).copy()
            place += count * kind.itemsize
    return values


def _scalar(value: Any) -> Any:
    """A number of NumPy as one of Python."""
    return value.item()


_KINDS = {"f": "<f8", "i": "<i8", "b": "|b1"}
