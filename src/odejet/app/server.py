"""Server: what the page may ask for, and what it gets.

The server reads no file that somebody else wrote and computes nothing: it keeps studies, asks its workers and hands
over their answers.  A question that cannot be answered gets a sentence.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import itertools
import zipfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Route

from odejet import __version__
from odejet.app import archives, guard
from odejet.app.drafts import Draft
from odejet.app.examples import EXAMPLES
from odejet.app.examples import folder as examples_folder
from odejet.app.fits import Fits
from odejet.app.studies import Changed, Folder, Missing, Study, table_of
from odejet.app.work import Refused, Worker
from odejet.errors import DataError, ModelError
from odejet.report.style import DARK, LIGHT

PAGE = Path(__file__).with_name("page")
KINDS = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}

COLOURS = (
    f":root {{ color-scheme: light dark; {LIGHT} }}\n@media (prefers-color-scheme: dark) {{ :root {{ {DARK} }} }}\n"
)

LOOK_SECONDS, MOVE_SECONDS, KNOW_SECONDS, COMPARE_SECONDS, PREDICT_SECONDS = 30.0, 10.0, 15.0, 30.0, 60.0
"""What a question may take before it is given up."""

DOWNLOADS = {
    "report.html": "text/html",
    "fit.json": "application/json",
    "draws.json": "application/json",
    "population.json": "application/json",
    "models.txt": "text/plain",
    "model.toml": "application/toml",
    "fit.py": "text/x-python",
    "data.csv": "text/csv",
    "doses.csv": "text/csv",
}
ALL = "all.zip"


@dataclass
class Desk:
    """What the server works with: the folder of studies, two workers for questions, and the fits."""

    folder: Folder
    quick: Worker = field(default_factory=Worker)  # looks and curves, which nobody waits for
    slow: Worker = field(default_factory=Worker)  # verdicts and comparisons, which may take seconds
    fits: Fits = field(default_factory=Fits)
    _ticks: Iterator[int] = field(default_factory=lambda: itertools.count(1))
    _preparing: asyncio.Task[None] = field(init=False)

    async def open(self) -> None:
        self.fits.recover(self.folder)
        self._preparing = asyncio.ensure_future(self._prepare())

    async def _prepare(self) -> None:
        """One process after the other: on a new installation the first compiles the kernels for all."""
        await self.quick.warm()
        await self.slow.start()
        await self.fits.prepare()

    def told(self, study: Study) -> dict[str, Any]:
        """The fits of a study, with a number that grows: answers may overtake each other on their way."""
        return {"fits": self.fits.states(study), "tick": next(self._ticks)}

    async def close(self) -> None:
        self._preparing.cancel()
        await asyncio.wait([self._preparing])
        await self.fits.close()
        await asyncio.gather(self.quick.end(), self.slow.end())
        self.folder.close()


def application(folder: Folder, token: str, port: int) -> guard.App:
    """The program behind the page, behind its guard."""
    desk = Desk(folder)

    @contextlib.asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        await desk.open()
        try:
            yield
        finally:
            await desk.close()

    app = Starlette(routes=_routes(), lifespan=lifespan, exception_handlers=_HANDLERS)
    app.state.desk = desk
    return guard.Guard(app, token, port)


def _sentence(status: int) -> Callable[[Request, Exception], Awaitable[Response]]:
    async def handler(_request: Request, error: Exception) -> Response:
        return JSONResponse({"refused": str(error).splitlines()[0]}, status)

    return handler


async def _missing(_request: Request, _error: Exception) -> Response:
    return JSONResponse({"refused": "This is no longer there; it may have been removed in another tab."}, 404)


async def _changed(_request: Request, _error: Exception) -> Response:
    return JSONResponse({"refused": "This study was changed in another tab.", "changed": True}, 409)


async def _too_large(_request: Request, _error: Exception) -> Response:
    return JSONResponse({"refused": f"This is larger than {guard.LARGEST // 1_000_000} MB."}, 413)


async def _cannot(_request: Request, error: Exception) -> Response:
    reason = (getattr(error, "strerror", None) or "unknown reason").lower()
    return JSONResponse({"refused": f"The folder of studies cannot be read or written ({reason})."}, 500)


_HANDLERS: Mapping[Any, Any] = {
    Refused: _sentence(422),
    DataError: _sentence(422),
    ModelError: _sentence(422),
    Missing: _missing,
    Changed: _changed,
    guard.TooLarge: _too_large,
    OSError: _cannot,
}


def _routes() -> list[Route]:
    study, fit = "/api/studies/{study}", "/api/studies/{study}/fits/{fit:int}"
    return [
        Route("/", index),
        Route("/page/{name}", part),
        Route("/api/start", start),
        Route("/api/ready", ready),
        Route("/api/studies", create, methods=["POST"]),
        Route(study, read, methods=["GET"]),
        Route(study, save, methods=["PUT"]),
        Route(study, remove, methods=["DELETE"]),
        Route(f"{study}/state", state),
        Route(f"{study}/study.zip", export),
        Route(f"{study}/files/{{name}}", keep, methods=["PUT"]),
        Route(f"{study}/take", take, methods=["POST"]),
        Route(f"{study}/translate", translate, methods=["POST"]),
        Route(f"{study}/look", look, methods=["POST"]),
        Route(f"{study}/know", know, methods=["POST"]),
        Route(f"{study}/move", move, methods=["POST"]),
        Route(f"{study}/compare", compare, methods=["POST"]),
        Route(f"{study}/fits", begin, methods=["POST"]),
        Route(fit, remove_fit, methods=["DELETE"]),
        Route(f"{fit}/cancel", cancel, methods=["POST"]),
        Route(f"{fit}/result", result),
        Route(f"{fit}/draft", fit_draft),
        Route(f"{fit}/report", report),
        Route(f"{fit}/predict", predict, methods=["POST"]),
        Route(f"{fit}/files/{{name}}", download),
    ]


# --- asking -----------------------------------------------------------------------------------------------------------


def _desk(request: Request) -> Desk:
    found: Desk = request.app.state.desk
    return found


def _study(request: Request) -> Study:
    return _desk(request).folder.study(request.path_params["study"])


async def _asked(request: Request) -> dict[str, Any]:
    """What a request says, which must be a table in JSON."""
    told = table_of(await request.body())
    if told is None:
        raise DataError("the page has sent what cannot be read; load it again")
    return told


def _question(study: Study, do: str, told: Mapping[str, Any], name: str = "") -> dict[str, Any]:
    return {"do": do, "folder": str(study.files), "name": name or study.read()["name"], **told}


# --- the page ---------------------------------------------------------------------------------------------------------


async def index(_request: Request) -> Response:
    return FileResponse(PAGE / "index.html", media_type="text/html")


async def part(request: Request) -> Response:
    """A part of the page: a script, its style, or the colours that it shares with reports."""
    name = request.path_params["name"]
    if name == "colours.css":
        return Response(COLOURS, media_type="text/css")
    path = PAGE / name
    if path.suffix not in KINDS or name not in {one.name for one in PAGE.iterdir()}:
        raise Missing
    return FileResponse(path, media_type=KINDS[path.suffix])


async def start(request: Request) -> Response:
    """What there is to begin with."""
    desk = _desk(request)
    studies = [{key: value for key, value in one.read().items() if key != "draft"} for one in desk.folder]
    examples = [{"key": key, "title": one.title, "question": one.question} for key, one in EXAMPLES.items()]
    return JSONResponse(
        {"version": __version__, "folder": str(desk.folder.path), "studies": studies, "examples": examples}
    )


async def ready(request: Request) -> Response:
    """Answers when questions are answered at once, which takes a while on a new installation."""
    await _desk(request).quick.warm()
    return JSONResponse({})


# --- studies ----------------------------------------------------------------------------------------------------------


async def create(request: Request) -> Response:
    desk, told = _desk(request), await _asked(request)
    key = told.get("example")
    if key is None:
        study = desk.folder.create(told.get("name") or "New study", Draft().to_dict(), {})
    else:
        if not isinstance(key, str) or key not in EXAMPLES:
            raise Missing
        example = EXAMPLES[key]
        files = {name: (examples_folder() / name).read_bytes() for name in example.files}
        draft = (await desk.quick.ask({"do": "example", "key": key}, LOOK_SECONDS))["draft"]
        study = desk.folder.create(example.title, draft, files)
    return JSONResponse(study.read(), 201)


async def read(request: Request) -> Response:
    study = _study(request)
    told = study.read()
    try:
        draft = Draft.read(told["draft"])
    except DataError:  # damaged: what is saved next has the file kept beside it
        draft = Draft()
    return JSONResponse({**told, "draft": draft.to_dict(), **_desk(request).told(study)})


async def save(request: Request) -> Response:
    study, told = _study(request), await _asked(request)
    revision, author, turn = told.get("revision"), told.get("author", ""), told.get("turn", 0)
    if not isinstance(revision, int) or not isinstance(author, str) or len(author) > 80 or not isinstance(turn, int):
        raise DataError("the page has sent what cannot be read; load it again")
    draft = Draft.read(told.get("draft")).to_dict()
    return JSONResponse({"revision": study.save(told.get("name", ""), draft, revision, author, turn)})


async def remove(request: Request) -> Response:
    desk, study = _desk(request), _study(request)
    await desk.fits.cancel_all(study)
    desk.folder.remove(study)
    return JSONResponse({})


async def state(request: Request) -> Response:
    """What changes by itself: the revision, and the fits."""
    study = _study(request)
    return JSONResponse({"revision": study.read()["revision"], **_desk(request).told(study)})


async def export(request: Request) -> Response:
    """The study as one zip, which `odejet run` and another page take."""
    study = _study(request)
    headers = {"content-disposition": f'attachment; filename="{study.id}.zip"'}
    return Response(archives.packed(study), media_type="application/zip", headers=headers)


# --- files and questions ----------------------------------------------------------------------------------------------


async def keep(request: Request) -> Response:
    name = _study(request).keep(request.path_params["name"], await request.body())
    return JSONResponse({"name": name})


async def take(request: Request) -> Response:
    study, told = _study(request), await _asked(request)
    kept = {one.name for one in study.files.iterdir()} if study.files.is_dir() else set()
    names = told.get("files")
    if not isinstance(names, list) or not all(isinstance(name, str) and name in kept for name in names):
        raise Missing
    question = _question(study, "take", {"draft": told.get("draft"), "files": names})
    return JSONResponse(await _desk(request).quick.ask(question, LOOK_SECONDS))


async def translate(request: Request) -> Response:
    study, told = _study(request), await _asked(request)
    question = {"draft": _checked(study, told), "language": Draft.read({"language": told.get("language")}).language}
    return JSONResponse(await _desk(request).quick.ask(_question(study, "translate", question), LOOK_SECONDS))


async def look(request: Request) -> Response:
    study, told = _study(request), await _asked(request)
    question = _question(study, "look", {"draft": _checked(study, told)})
    return JSONResponse(await _desk(request).quick.ask(question, LOOK_SECONDS))


async def know(request: Request) -> Response:
    study, told = _study(request), await _asked(request)
    question = _question(study, "know", {"draft": _checked(study, told)})
    return JSONResponse(await _desk(request).slow.ask(question, KNOW_SECONDS))


async def move(request: Request) -> Response:
    study, told = _study(request), await _asked(request)
    values = Draft.read({"values": told.get("values")}).values
    question = {"do": "move", "folder": str(study.files), "key": str(told.get("key")), "values": values}
    return JSONResponse(await _desk(request).quick.ask(question, MOVE_SECONDS))


def _checked(study: Study, told: Mapping[str, Any]) -> dict[str, Any]:
    """A draft whose files are those of its study and no others."""
    draft = Draft.read(told.get("draft"))
    kept = {one.name for one in study.files.iterdir()} if study.files.is_dir() else set()
    for name in (draft.data, draft.file):
        if name and name not in kept:
            raise DataError(f"the file {name} is no longer in this study; drop it again")
    return draft.to_dict()


# --- fits -------------------------------------------------------------------------------------------------------------


async def begin(request: Request) -> Response:
    """A fit of the study as it is on disk."""
    desk, study = _desk(request), _study(request)
    told = study.read()
    number = desk.fits.begin(study, _checked(study, told), told["name"])
    return JSONResponse({"number": number, **desk.told(study)}, 201)


async def cancel(request: Request) -> Response:
    desk, study = _desk(request), _study(request)
    await desk.fits.cancel(study, request.path_params["fit"])
    return JSONResponse(desk.told(study))


async def remove_fit(request: Request) -> Response:
    desk, study, number = _desk(request), _study(request), request.path_params["fit"]
    await desk.fits.cancel(study, number)
    study.remove_fit(number)
    return JSONResponse(desk.told(study))


async def compare(request: Request) -> Response:
    study, told = _study(request), await _asked(request)
    numbers = told.get("fits")
    if not isinstance(numbers, list) or not all(isinstance(one, int) for one in numbers):
        raise Missing
    fits = {f"Fit {number}": str(_file(study, number, "fit.json")) for number in numbers}
    return JSONResponse(await _desk(request).slow.ask({"do": "compare", "fits": fits}, COMPARE_SECONDS))


def _file(study: Study, number: int, name: str) -> Path:
    path = study.fit(number) / name
    if not path.is_file():
        raise Missing
    return path


async def result(request: Request) -> Response:
    path = _file(_study(request), request.path_params["fit"], "result.json")
    return FileResponse(path, media_type="application/json")


async def predict(request: Request) -> Response:
    """What a fit says of an experiment that nobody has made."""
    study, number, told = _study(request), request.path_params["fit"], await _asked(request)
    if not (study.fit(number) / "result.json").is_file():
        raise Missing
    draft = study.state(number).get("draft", {})
    question = {"into": str(study.fit(number)), "experiment": told | {"draft": draft}}
    answer = await _desk(request).slow.ask(_question(study, "predict", question), PREDICT_SECONDS)
    return JSONResponse(answer)


async def fit_draft(request: Request) -> Response:
    """What was fitted."""
    told = _study(request).state(request.path_params["fit"])
    return JSONResponse(Draft.read(told.get("draft", {})).to_dict())


async def report(request: Request) -> Response:
    path = _file(_study(request), request.path_params["fit"], "report.html")
    return FileResponse(path, media_type="text/html", headers={"content-security-policy": guard.REPORT})


async def download(request: Request) -> Response:
    study, number, name = _study(request), request.path_params["fit"], request.path_params["name"]
    title = f"{study.id}-fit{number}"
    if name == ALL:
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as packed:
            for one in DOWNLOADS:
                with contextlib.suppress(Missing):
                    packed.write(_file(study, number, one), f"{title}/{one}")
        headers = {"content-disposition": f'attachment; filename="{title}.zip"'}
        return Response(buffer.getvalue(), media_type="application/zip", headers=headers)
    if name not in DOWNLOADS:
        raise Missing
    path = _file(study, number, name)
    return FileResponse(path, media_type=DOWNLOADS[name], filename=f"{title}-{name}" if name != "fit.py" else name)
