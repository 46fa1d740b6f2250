"""Guard: who may ask the server at all, and what the browser may do with its pages.

The server listens on the loopback address only.  Every address begins with a token that was drawn when the program
started, so that other users of the machine and other pages in the browser cannot ask for anything; the name in `Host`
must be that of this machine, so that no page elsewhere becomes one of ours by renaming itself; whatever changes
something must come from a page of ours, by its `Origin`.  Bodies are limited, and pages may load nothing from
elsewhere and run nothing but our own scripts.
"""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from odejet.report.script import POLICY

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

LARGEST = 64_000_000
"""Bytes of a body."""

OWN = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "frame-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""What a page of the program may load: its own parts."""

REPORT = f"{POLICY}; base-uri 'none'; form-action 'none'; frame-ancestors 'self'; sandbox allow-scripts allow-downloads"
"""What a report may, which has everything inside; within its sandbox it is a stranger to the program."""

_ALWAYS = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), microphone=(), geolocation=()"),
    (b"cache-control", b"no-store"),
)

SAFE = ("GET", "HEAD")


class Guard:
    """The server behind its door."""

    def __init__(self, inside: App, token: str, port: int) -> None:
        self._inside, self._token = inside, token
        self._hosts = {f"{name}:{port}" for name in ("127.0.0.1", "localhost")}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._inside(scope, receive, send)
            return
        if scope["type"] != "http":
            return
        refusal = self._refusal(scope)
        if refusal is not None:
            await _refuse(send, *refusal)
            return
        prefix = f"/{self._token}"
        inner = {**scope, "path": scope["path"][len(prefix) :], "root_path": "", "raw_path": b""}
        await self._inside(inner, _limited(receive), _sealed(send))

    def _refusal(self, scope: Scope) -> tuple[int, str] | None:
        """Why somebody is not let in."""
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        host = headers.get("host", "")
        if host not in self._hosts:
            return 403, "This address is not one of this machine's own."
        token = scope["path"].split("/")[1] if scope["path"].startswith("/") else ""
        if not secrets.compare_digest(token.encode(), self._token.encode()):
            return 403, "Open the address that odejet app has printed: it has a token that is new with every start."
        if not scope["path"].startswith(f"/{self._token}/"):
            return 404, "Open the address that odejet app has printed, with the stroke at its end."
        if headers.get("sec-fetch-site", "none") not in ("same-origin", "none"):
            return 403, "Another page has asked for this, and it may not."
        origin = headers.get("origin")
        if origin != f"http://{host}" and (origin is not None or scope["method"] not in SAFE):
            return 403, "Another page has asked for this, and it may not."
        length = headers.get("content-length", "0")
        if not length.isdecimal() or int(length) > LARGEST:
            return 413, f"This is larger than {LARGEST // 1_000_000} MB, which is the most that can be dropped here."
        return None


class TooLarge(Exception):
    """A body that goes on beyond what it may have."""


def _limited(receive: Receive) -> Receive:
    """Bodies that tell no length are counted as they come."""
    seen = 0

    async def limited() -> MutableMapping[str, Any]:
        nonlocal seen
        message = await receive()
        seen += len(message.get("body", b""))
        if seen > LARGEST:
            raise TooLarge
        return message

    return limited


def _sealed(send: Send) -> Send:
    """Answers with what the browser must know of them; a policy that is there already stays."""

    async def sealed(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            given = {name for name, _ in message["headers"]}
            own = (*_ALWAYS, (b"content-security-policy", OWN.encode()))
            message["headers"] = [*message["headers"], *((name, value) for name, value in own if name not in given)]
        await send(message)

    return sealed


async def _refuse(send: Send, status: int, sentence: str) -> None:
    headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"connection", b"close"), *_ALWAYS]
    headers.append((b"content-security-policy", b"default-src 'none'"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": sentence.encode()})
