"""Child: the program of a process that does the work of the page, question by question.

Questions come as lines of JSON on stdin, answers go as lines of JSON to what was stdout: `told` while a question is
worked on, then `answer`, or `refused` with a sentence.  Whoever asked may end the process at any time; when stdin ends
it ends itself, also in the middle of a fit.
"""

from __future__ import annotations

import hashlib
import json
import os
import queue
import sys
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from odejet.app import mistakes, posing, predictions, results, takes, tasks, views
from odejet.app.drafts import Draft
from odejet.app.examples import EXAMPLES
from odejet.app.starters import STARTERS
from odejet.errors import DataError, ModelError
from odejet.result import Fit

MEMORY = 4 * 1024**3
"""Bytes of addresses that a child may have: more than twice what a fit may take."""

KEPT = 6
"""Posed drafts that stay ready for sliders: some tabs, each with the one before."""

Tell = Callable[[Mapping[str, Any]], None]


def look(asked: Mapping[str, Any], _tell: Tell) -> dict[str, Any]:
    """The draft as far as it is right: its model, its data, its unknowns; and the first mistake."""
    draft, folder = Draft.read(asked["draft"]), Path(asked["folder"])
    found: dict[str, Any] = {"key": _key(draft, folder)}
    try:
        found["model"] = views.look(draft, folder, asked["name"])
    except (ModelError, DataError) as error:
        return found | {"mistake": mistakes.located(error, draft)}
    try:
        if draft.data:
            found["file"] = views.file_of(draft, folder)
            if found["file"]["kind"] == "nonmem":
                found["starters"] = [{"title": one.title, "text": one.text} for one in STARTERS]
            model = posing.model_of(draft, asked["name"])
            found["titles"] = posing.titles_of(draft, posing.glance_of(folder / draft.data), model)
        posed, trouble = _posed(draft, folder, asked["name"])
        found |= {
            "unknowns": views.unknowns(posed, draft),
            "series": views.series(posed),
            "experiments": views.experiments(posed),
        }
        if trouble:
            found["trouble"] = trouble
        elif not posed.labels:
            found["trouble"] = "Everything is known, so that there is nothing to find; uncheck what the fit is to find."
        elif isinstance(posed, views.Measured):
            posed.problem.check_points()
            found["ready"] = True
    except (ModelError, DataError, OSError) as error:
        found["trouble"] = mistakes.told(error, str(folder))
    return found


def know(asked: Mapping[str, Any], _tell: Tell) -> dict[str, Any]:
    """What can be known."""
    draft = Draft.read(asked["draft"])
    return views.verdict(_posed(draft, Path(asked["folder"]), asked["name"])[0])


def move(asked: Mapping[str, Any], _tell: Tell) -> dict[str, Any]:
    """Curves for the values of the sliders, of a draft that was looked at; without it, nothing."""
    kept = _POSED.get((asked["folder"], asked["key"]))
    if kept is None:
        return {"forgotten": True}
    values = {str(name): float(value) for name, value in asked["values"].items()}
    return {"curves": kept[0].curves(values)}


def take(asked: Mapping[str, Any], _tell: Tell) -> dict[str, Any]:
    """The draft with files that were dropped on it."""
    draft, notes = takes.take(Draft.read(asked["draft"]), Path(asked["folder"]), asked["files"])
    return {"draft": draft.to_dict(), "notes": notes}


def translate(asked: Mapping[str, Any], _tell: Tell) -> dict[str, Any]:
    """The model in another language."""
    return {"text": takes.translated(Draft.read(asked["draft"]), asked["language"], asked["name"])}


def example(asked: Mapping[str, Any], _tell: Tell) -> dict[str, Any]:
    """The draft of an example."""
    return {"draft": takes.example(EXAMPLES[asked["key"]]).to_dict()}


def compare(asked: Mapping[str, Any], _tell: Tell) -> dict[str, Any]:
    """Saved fits beside each other, by the names they go by."""
    return results.comparison({name: Fit.load(path) for name, path in asked["fits"].items()})


def predict(asked: Mapping[str, Any], _tell: Tell) -> dict[str, Any]:
    """Bands of an experiment that nobody has made, by a fit of the study."""
    return predictions.predict(asked["experiment"], Path(asked["into"]), Path(asked["folder"]), asked["name"])


def run(asked: Mapping[str, Any], tell: Tell) -> dict[str, Any]:
    """A task, with all its files in a folder of its own: first the result, then the report, which takes longer."""
    draft, folder, into = Draft.read(asked["draft"]), Path(asked["folder"]), Path(asked["into"])
    tasks.prepare(draft, folder, asked["name"], into)
    done = tasks.done(draft, folder, asked["name"], lambda stage: tell({"stage": stage}))
    done.save(into)
    told = {"certified": done.certified, "word": done.shown["state"]}
    tell({"stage": "report", "result": True, **told})
    done.report(into / tasks.REPORT)
    return told


def warm(_asked: Mapping[str, Any], _tell: Tell) -> dict[str, Any]:
    """Load what questions need, and compile it if this machine has not done so yet."""
    draft = Draft(text="x' = -k*x\ny = x")
    posed = views.pose(draft, Path(), "warm")
    posed.curves({})
    views.verdict(posed)
    return {}


ANSWERS: Mapping[str, Callable[[Mapping[str, Any], Tell], dict[str, Any]]] = {
    one.__name__: one for one in (look, know, move, take, translate, example, compare, predict, run, warm)
}

_POSED: OrderedDict[tuple[str, str], tuple[views.Posed, str]] = OrderedDict()


def _posed(draft: Draft, folder: Path, name: str) -> tuple[views.Posed, str]:
    """What a draft poses, made once; with data that make no sense yet the model alone, and what is wrong with them."""
    place = str(folder), _key(draft, folder)
    if place not in _POSED:
        try:
            _POSED[place] = views.pose(draft, folder, name), ""
        except DataError as error:
            if not draft.data or draft.language == "petab":
                raise
            _POSED[place] = views.alone(draft, folder, name), mistakes.told(error, str(folder))
        while len(_POSED) > KEPT:
            _POSED.popitem(last=False)
    _POSED.move_to_end(place)
    return _POSED[place]


def _key(draft: Draft, folder: Path) -> str:
    """Return a key that changes when the draft poses another problem or its data file was written again."""
    path = folder / draft.data
    written = path.stat().st_mtime_ns if draft.data and path.exists() else 0
    return hashlib.sha256(f"{draft.key} {written}".encode()).hexdigest()[:24]


# --- the process ------------------------------------------------------------------------------------------------------


def answer(asked: Mapping[str, Any], tell: Tell) -> dict[str, Any]:
    """The answer to one question, or the sentence by which it is refused."""
    try:
        return {"answer": ANSWERS[asked["do"]](asked, tell)}
    except (ModelError, DataError, OSError) as error:
        return {"refused": mistakes.told(error, asked.get("folder", ""))}
    except MemoryError:
        return {"refused": "This needs more memory than a fit may take; make the model or the data smaller."}


def main() -> None:
    _limit()
    out = _channel()
    questions: queue.Queue[str] = queue.Queue()
    threading.Thread(target=_read, args=(questions,), daemon=True).start()

    def tell(told: Mapping[str, Any]) -> None:
        out.write(json.dumps(told, allow_nan=False) + "\n")
        out.flush()

    while True:
        tell(answer(json.loads(questions.get()), lambda told: tell({"told": told})))


def _read(questions: queue.Queue[str]) -> None:
    """Every question, as soon as it comes; with the last, the process ends at once."""
    for line in sys.stdin:
        questions.put(line)
    os._exit(0)


def _channel() -> Any:
    """Where answers go; whatever else prints goes to stderr."""
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return out


def _limit() -> None:
    try:
        import resource
    except ImportError:  # there are no such limits on this system
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    most = MEMORY if hard == resource.RLIM_INFINITY else min(MEMORY, hard)
    if soft == resource.RLIM_INFINITY or soft > most:
        resource.setrlimit(resource.RLIMIT_AS, (most, hard))


if __name__ == "__main__":
    main()
