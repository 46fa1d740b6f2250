"""Fits: those under way, each in a process of its own, and what is told of all.

What becomes of a fit is written into its folder as it happens, so that a page that is loaded again, a second tab and
the next start of the program all tell the same.  A fit that was under way when the program stopped was interrupted.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Mapping
from typing import Any

from odejet.app.drafts import Draft
from odejet.app.studies import Folder, Study, table_of
from odejet.app.work import COMPILING, Refused, Worker

WAITING, RUNNING, DONE, FAILED, CANCELLED, INTERRUPTED = (
    "waiting",
    "running",
    "done",
    "failed",
    "cancelled",
    "interrupted",
)
UNDER_WAY = (WAITING, RUNNING)

AT_ONCE = max(2, (os.cpu_count() or 2) // 2)
"""Fits that run at the same time; others wait."""

REPORTING = 180.0
"""Seconds that a fit may take beyond its limit, for its report."""


class Fits:
    """All fits of all studies."""

    def __init__(self) -> None:
        self._tasks: dict[tuple[str, int], asyncio.Task[None]] = {}
        self._live: dict[tuple[str, int], dict[str, Any]] = {}
        self._places = asyncio.Semaphore(AT_ONCE)
        self._spare = Worker()
        self._closing = False

    def recover(self, folder: Folder) -> None:
        """Note what was interrupted when the program last stopped."""
        for study in folder:
            for number in study.fits():
                state = study.state(number)
                if state.get("state") not in (DONE, FAILED, CANCELLED, INTERRUPTED):
                    study.note(number, {**_found(study, number), **state, "state": _settled(study, number, state)})

    async def prepare(self) -> None:
        """Have a process ready for the next fit."""
        if not self._closing:
            await self._spare.start()

    def begin(self, study: Study, draft: Mapping[str, Any], name: str) -> int:
        """A fit of a draft: its number; it runs as soon as there is a place."""
        asked = Draft.read(draft)
        told = {"state": WAITING, "began": time.time(), "draft": draft, "model": name, "limit": asked.longest}
        told["task"] = asked.task
        number = study.new_fit(told)
        key = (study.id, number)
        self._live[key] = dict(told)
        self._tasks[key] = asyncio.ensure_future(self._run(study, number, name))
        return number

    async def _run(self, study: Study, number: int, name: str) -> None:
        key = (study.id, number)
        state = self._live[key]

        def note(**changes: Any) -> None:
            state.update(changes)
            study.note(number, state)

        def hear(told: Mapping[str, Any]) -> None:
            stages = state.setdefault("stages", [])
            if told.get("stage") not in stages:
                stages.append(told["stage"])
            state["stage"] = told["stage"]
            if told.get("result"):
                note(result=True, certified=told["certified"], word=told["word"], found=time.time())

        worker: Worker | None = None
        try:
            async with self._places:
                worker, self._spare = self._spare, Worker()
                note(state=RUNNING, began=time.time(), stage="start")
                question = {"do": "run", "name": name, "draft": state["draft"], "folder": str(study.files)}
                seconds = COMPILING + state["limit"] + REPORTING
                answer = await worker.ask({**question, "into": str(study.fit(number))}, seconds, hear)
                note(state=DONE, ended=time.time(), **answer)
        except Refused as refused:
            note(state=DONE if state.get("result") else FAILED, ended=time.time(), message=str(refused))
        except asyncio.CancelledError:
            left = INTERRUPTED if self._closing else CANCELLED
            note(state=DONE if state.get("result") else left, ended=time.time())
        finally:
            if worker is not None:
                await worker.end()
            self._live.pop(key, None)
            self._tasks.pop(key, None)
            await self.prepare()

    async def cancel(self, study: Study, number: int) -> None:
        """End a fit that is under way."""
        task = self._tasks.get((study.id, number))
        if task is not None:
            task.cancel()
            await asyncio.wait([task])

    async def cancel_all(self, study: Study) -> None:
        for number in study.fits():
            await self.cancel(study, number)

    def states(self, study: Study) -> list[dict[str, Any]]:
        """Every fit of a study, the last first."""
        found = []
        for number in reversed(study.fits()):
            state = self._live.get((study.id, number)) or study.state(number)
            shown = {name: value for name, value in state.items() if name != "draft"}
            if state.get("state") == RUNNING:
                shown["seconds"] = time.time() - state.get("began", time.time())
            elif "ended" in state and "began" in state:
                shown["seconds"] = state.get("found", state["ended"]) - state["began"]
            report = (study.fit(number) / "report.html").is_file()
            found.append({**shown, "number": number, "report": report})
        return found

    async def close(self) -> None:
        """End all that is under way; nobody has cancelled it, so that it was interrupted."""
        self._closing = True
        under_way = dict(self._tasks)
        for task in under_way.values():
            task.cancel()
        if under_way:
            await asyncio.wait(under_way.values())
        await self._spare.end()


def _found(study: Study, number: int) -> dict[str, Any]:
    """What is told of a fit whose result is there."""
    try:
        told = table_of((study.fit(number) / "result.json").read_bytes())
    except OSError:
        return {}
    if told is None:
        return {}
    return {"result": True, "certified": bool(told.get("certified")), "word": str(told.get("state", ""))}


def _settled(study: Study, number: int, state: Mapping[str, Any]) -> str:
    """What a fit is that nobody works on any more."""
    return DONE if state.get("result") or _found(study, number) else INTERRUPTED
