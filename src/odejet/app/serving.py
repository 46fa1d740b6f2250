"""Serving: the program from its start to its end: a port of this machine, a token, the browser."""

from __future__ import annotations

import secrets
import socket
import sys
import threading
import webbrowser
from pathlib import Path

import uvicorn

from odejet.app.server import application
from odejet.app.studies import Folder
from odejet.errors import DataError

LOOPBACK = "127.0.0.1"
CLOSING = 3
"""Seconds that open connections have when the program ends."""


def serve(folder: Path, port: int = 0, browser: bool = True) -> None:
    """Serve the page until somebody ends the program; a port of zero is any that is free."""
    studies = Folder(folder)
    listening = _listening(port)
    port = listening.getsockname()[1]
    token = secrets.token_urlsafe(24)
    config = uvicorn.Config(
        application(studies, token, port),
        log_level="warning",
        access_log=False,  # addresses have the token
        server_header=False,
        timeout_graceful_shutdown=CLOSING,
        ws="none",
    )
    address = f"http://{LOOPBACK}:{port}/{token}/"
    print(f"odejet: the page is at {address}", file=sys.stderr)
    print(f"odejet: studies are kept in {folder}; Ctrl-C ends the program", file=sys.stderr, flush=True)
    if browser:
        threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()
    uvicorn.Server(config).run(sockets=[listening])


def _listening(port: int) -> socket.socket:
    """A socket that nobody but this machine reaches."""
    found = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    if sys.platform != "win32":  # there it would share the port with another program
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind((LOOPBACK, port))
    except (OSError, OverflowError):
        found.close()
        raise DataError(f"port {port} is taken or not allowed; leave out --port, or name another") from None
    found.listen(128)
    return found
