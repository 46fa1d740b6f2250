"""Guard: nobody gets in but this machine's own page with the token."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from odejet.app import guard
from odejet.app.guard import LARGEST, Guard, TooLarge

TOKEN, PORT = "s3cret", 4711
HOST = f"127.0.0.1:{PORT}"


async def inside(scope: Any, receive: Any, send: Any) -> None:
    size = 0
    while True:
        message = await receive()
        size += len(message.get("body", b""))
        if not message.get("more_body"):
            break
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": f"{scope['path']} {size}".encode()})


def ask(path: str, method: str = "GET", bodies: tuple[bytes, ...] = (b"",), **headers: str) -> tuple[int, str, dict]:
    given = {"host": HOST, **{name.replace("_", "-"): value for name, value in headers.items()}}
    messages = [{"type": "http.request", "body": one, "more_body": i < len(bodies) - 1} for i, one in enumerate(bodies)]
    said: list[dict] = []

    async def receive() -> Any:
        return messages.pop(0)

    async def send(message: Any) -> None:
        said.append(message)

    encoded = [(name.encode(), value.encode()) for name, value in given.items() if value]
    scope = {"type": "http", "path": path, "method": method, "headers": encoded}
    with ThreadPoolExecutor(1) as thread:  # the browser of other tests has a loop of its own in this one
        thread.submit(asyncio.run, Guard(inside, TOKEN, PORT)(scope, receive, send)).result()
    found = {name.decode(): value.decode() for name, value in said[0]["headers"]}
    return said[0]["status"], said[1]["body"].decode(), found


def test_the_page_gets_in() -> None:
    status, body, headers = ask(f"/{TOKEN}/api/start")
    assert (status, body) == (200, "/api/start 0")
    assert "script-src 'self'" in headers["content-security-policy"]
    assert "default-src 'none'" in headers["content-security-policy"]
    assert "unsafe" not in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff" and headers["referrer-policy"] == "no-referrer"
    own = {"origin": f"http://{HOST}", "sec_fetch_site": "same-origin"}
    assert ask(f"/{TOKEN}/x", "POST", (b"abc",), **own)[:2] == (200, "/x 3")


@pytest.mark.parametrize(
    ("path", "method", "headers"),
    [
        ("/", "GET", {}),
        ("/wrong/", "GET", {}),
        (f"/{TOKEN[:-1]}/", "GET", {}),
        (f"//{TOKEN}/", "GET", {}),
        (f"/{TOKEN}/", "GET", {"host": "evil.example:4711"}),
        (f"/{TOKEN}/", "GET", {"host": "127.0.0.1"}),
        (f"/{TOKEN}/", "GET", {"host": ""}),
        (f"/{TOKEN}/", "GET", {"origin": "http://evil.example"}),
        (f"/{TOKEN}/", "GET", {"sec_fetch_site": "cross-site"}),
        (f"/{TOKEN}/", "POST", {}),
        (f"/{TOKEN}/", "POST", {"origin": "null"}),
        (f"/{TOKEN}/", "PUT", {"origin": "https://" + HOST}),
        (f"/{TOKEN}/", "DELETE", {"origin": f"http://127.0.0.1:{PORT + 1}"}),
    ],
)
def test_others_do_not(path: str, method: str, headers: dict[str, str]) -> None:
    status, body, found = ask(path, method, **headers)
    assert status == 403 and body.endswith(".")
    assert found["content-security-policy"] == "default-src 'none'"


def test_bodies_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    own = {"origin": f"http://{HOST}"}
    assert ask(f"/{TOKEN}/", "POST", content_length=str(LARGEST + 1), **own)[0] == 413
    assert ask(f"/{TOKEN}/", "POST", content_length="-1", **own)[0] == 413
    monkeypatch.setattr(guard, "LARGEST", 5)
    with pytest.raises(TooLarge):
        ask(f"/{TOKEN}/", "POST", (b"abc", b"def"), **own)
