"""Work: processes that answer questions, within limits of time, and can be ended at any moment.

A `Worker` is one process.  If it dies, or takes longer than it may, whoever asked gets a sentence, and the next
question gets a new process.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import Callable, Mapping
from typing import Any

LARGEST = 256 * 1024 * 1024
"""Bytes of an answer."""

COMPILING = 600.0
"""Seconds that the first question of a process may take: on a new installation the kernels are compiled then."""

DIED = "The process that worked on this has ended by itself ({}); the model may be too large for this machine's memory."


class Refused(Exception):
    """The question cannot be answered; the message is a sentence for people."""


class Worker:
    """A process of `odejet.app.child` that has been, or will be, started."""

    def __init__(self) -> None:
        self._process: asyncio.subprocess.Process | None = None
        self._turn = asyncio.Lock()
        self._warming: asyncio.Task[Any] | None = None
        self.ready = False

    async def start(self) -> None:
        """Start the process, and let it load what it needs."""
        if self._process is not None and self._process.returncode is None:
            return
        self.ready = False
        self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "odejet.app.child",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            limit=LARGEST,
            start_new_session=True,  # Ctrl-C in the terminal is for the server, which ends its children
            env={**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
        )
        self._warming = asyncio.ensure_future(self._exchange({"do": "warm"}, None))
        # What went wrong is told to whoever asks, and to nobody if nobody does.
        self._warming.add_done_callback(lambda task: task.cancelled() or task.exception())

    async def ask(
        self, question: Mapping[str, Any], seconds: float, tell: Callable[[Mapping[str, Any]], None] | None = None
    ) -> dict[str, Any]:
        """The answer to a question, when those before it are answered; `tell` hears how it goes."""
        async with self._turn:
            await self.start()
            assert self._warming is not None
            try:
                await asyncio.wait_for(asyncio.shield(self._warming), COMPILING)
                self.ready = True
                return await asyncio.wait_for(self._exchange(question, tell), seconds)
            except TimeoutError:
                await self.end()
                raise Refused(f"This took longer than {seconds:g} s, and was given up.") from None
            except asyncio.CancelledError:
                await self.end()
                raise

    async def warm(self) -> None:
        """Wait until the process can answer at once."""
        with contextlib.suppress(Refused):
            await self.ask({"do": "warm"}, COMPILING)

    async def _exchange(
        self, question: Mapping[str, Any], tell: Callable[[Mapping[str, Any]], None] | None
    ) -> dict[str, Any]:
        process = self._process
        assert process is not None and process.stdin is not None and process.stdout is not None
        try:
            process.stdin.write(json.dumps(question).encode() + b"\n")
            await process.stdin.drain()
            while line := await process.stdout.readline():
                said = json.loads(line)
                if "told" not in said:
                    break
                if tell is not None:
                    tell(said["told"])
            else:
                raise Refused(DIED.format(await self._reason()))
        except (ConnectionError, ValueError):
            await self.end()
            raise Refused(DIED.format("its answer cannot be read")) from None
        if "refused" in said:
            raise Refused(said["refused"])
        answer: dict[str, Any] = said["answer"]
        return answer

    async def _reason(self) -> str:
        """What the operating system says of the end of the process."""
        assert self._process is not None
        code = await self._process.wait()
        if code < 0:
            with contextlib.suppress(ValueError):
                return signal.Signals(-code).name
        return f"status {code}"

    async def end(self) -> None:
        """End the process, whatever it is doing."""
        process, self._process, self.ready = self._process, None, False
        if self._warming is not None and not self._warming.done():
            self._warming.cancel()
        if process is not None and process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
