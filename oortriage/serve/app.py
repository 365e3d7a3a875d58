"""The routes of the page. All of them stand behind the guard."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any, get_args

import msgspec
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Route

from oortriage.api import Analyzer
from oortriage.errors import OortriageError
from oortriage.kernels.registry import all_recipes
from oortriage.serve.guard import Guard
from oortriage.serve.limits import Limits
from oortriage.serve.rendering import MEDIA, Format, material_of, render, summary
from oortriage.serve.results import Result, Results
from oortriage.serve.run import Ask, Run
from oortriage.serve.upload import TooLargeError, in_thread, received, refuse_bomb, shown_name, too_large
from oortriage.triage.diagnosis import Diagnosis

_STATIC = Path(__file__).with_name("static")
_FILES = {
    "index.html": "text/html; charset=utf-8",
    "page.js": "text/javascript; charset=utf-8",
    "page.css": "text/css; charset=utf-8",
    "icon.svg": "image/svg+xml",
}
#: A report holds a log's text: no script, nothing fetched, an origin of its own. Its style is our own and inline.
_REPORT_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors {ancestors}; sandbox allow-popups allow-popups-to-escape-sandbox"
)
#: Seconds between two looks for results that are too old.
_TIDY_SECONDS = 30.0


class _Start(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the page sends to start an experiment; empty is what the log says."""

    kernel: str = ""
    gpu: str = ""


class RefusalError(OortriageError):
    """A request that is answered with a status and one sentence."""

    def __init__(self, status: int, message: str) -> None:
        """Keep the HTTP status."""
        super().__init__(message)
        self.status = status


def build(
    analyzer: Analyzer,
    limits: Limits | None = None,
    *,
    token: str = "",
    results: Results | None = None,
    rule_folders: Sequence[Path] = (),
) -> Guard:
    """Make the guarded application.

    Args:
        analyzer: reads the logs.
        limits: what is taken and kept.
        token: the first part of every path; a random one when empty.
        results: where results are kept; an empty store when left out.
        rule_folders: folders of the user's rules, which SARIF describes.
    """
    page = _Page(analyzer, limits or Limits(), results, rule_folders)
    routes = [
        Route("/", page.file, methods=["GET"]),
        Route("/logs", page.listed, methods=["GET"]),
        Route("/logs", page.add, methods=["POST"]),
        Route("/logs/{key}", page.forget, methods=["DELETE"]),
        Route("/logs/{key}/report", page.report, methods=["GET"]),
        Route("/logs/{key}/experiment", page.progress, methods=["GET"]),
        Route("/logs/{key}/experiment", page.start, methods=["POST"]),
        Route("/logs/{key}/experiment", page.stop, methods=["DELETE"]),
        Route("/{name}", page.file, methods=["GET"]),
    ]
    handlers: dict[Any, Any] = {RefusalError: _refused, TooLargeError: _refused, OortriageError: _refused}
    app = Starlette(routes=routes, exception_handlers=handlers, lifespan=page.life)
    app.router.redirect_slashes = False
    return Guard(app, token)


def _refused(_request: Request, problem: Exception) -> Response:
    status = problem.status if isinstance(problem, RefusalError) else 413 if isinstance(problem, TooLargeError) else 422
    headers = {"connection": "close"} if status == 413 else {}
    return JSONResponse({"problem": str(problem)}, status, headers)


class _Page:
    """What the routes share."""

    def __init__(self, analyzer: Analyzer, limits: Limits, results: Results | None, rules: Sequence[Path]) -> None:
        self._rules = rules
        self._analyzer = analyzer
        self._limits = limits
        self._results = results or Results(limits)
        self._uploads = 0
        self._following: dict[Run, asyncio.Task[None]] = {}

    @contextlib.asynccontextmanager
    async def life(self, _app: Starlette) -> AsyncIterator[None]:
        """Forget old results while the server runs, and everything at its end."""

        async def tidy() -> None:
            while True:
                await asyncio.sleep(_TIDY_SECONDS)
                self._results.forget_old()

        tidying = asyncio.create_task(tidy())
        try:
            yield
        finally:
            tidying.cancel()
            self._results.forget_all()
            for run in self._following:
                run.stop()
            await asyncio.gather(*self._following.values(), return_exceptions=True)

    async def file(self, request: Request) -> Response:
        """Serve one of our own files."""
        name = request.path_params.get("name", "index.html")
        if name not in _FILES:
            raise RefusalError(404, "There is no such page.")
        return FileResponse(_STATIC / name, media_type=_FILES[name])

    async def listed(self, _request: Request) -> Response:
        """List what is kept, and what the page needs to know of the server."""
        kernels = [{"name": one.name, "title": one.title} for one in all_recipes().values()]
        return JSONResponse(
            {
                "limit_bytes": self._limits.upload_bytes,
                "kernels": kernels,
                "logs": [_row(one) for one in self._results.all()],
            }
        )

    async def add(self, request: Request) -> Response:
        """Take a log as the body of the request and analyze it."""
        declared = request.headers.get("content-length", "")
        if declared.isascii() and declared.isdigit() and int(declared) > self._limits.upload_bytes:
            raise RefusalError(413, too_large(self._limits))
        if not request.headers.get("content-type", "").startswith("application/octet-stream"):
            raise RefusalError(415, "Send the log itself, as application/octet-stream.")
        if self._uploads >= self._limits.uploads:
            raise RefusalError(503, "Other logs are being read; try again when they are done.")
        name = shown_name(request.query_params.get("name", ""))
        self._uploads += 1
        try:
            async with received(request.stream(), self._limits) as (path, size):
                if not size:
                    raise RefusalError(422, f"{name} is empty: there is nothing to read.")
                diagnosis = await in_thread(lambda: self._analyze(path, name))
        except ClientDisconnect:
            return Response(status_code=499)
        except OSError as problem:
            raise RefusalError(
                507, f"The log cannot be kept while it is read: {problem.strerror or problem}"
            ) from problem
        finally:
            self._uploads -= 1
        told = await in_thread(lambda: summary(material_of(name, diagnosis, None)))
        result = self._results.add(name, diagnosis, *told)
        return JSONResponse(_row(result), 201)

    def _analyze(self, path: Path, name: str) -> Diagnosis:
        refuse_bomb(path, self._limits)
        return self._analyzer.file(path, name=name)

    async def forget(self, request: Request) -> Response:
        """Drop a result."""
        self._results.forget(self._found(request).id)
        return Response(status_code=204)

    async def report(self, request: Request) -> Response:
        """Write the report in a format: redacted, unless that is switched off."""
        result = self._found(request)
        kind = _format(request.query_params.get("format", "html"))
        redact = request.query_params.get("redact", "1") != "0"
        material = material_of(result.name, result.diagnosis, result.experiment)
        text = await in_thread(lambda: render(material, kind, redact=redact, rule_folders=self._rules))
        media, file_name = MEDIA[kind]
        framed = request.headers.get("sec-fetch-dest") == "iframe"
        headers = {"content-security-policy": _REPORT_POLICY.format(ancestors="'self'" if framed else "'none'")}
        if framed:
            headers["x-frame-options"] = "SAMEORIGIN"
        if "download" in request.query_params:
            headers["content-disposition"] = f'attachment; filename="{file_name}"'
        return Response(text.encode("utf-8", "backslashreplace"), media_type=media, headers=headers)

    async def progress(self, request: Request) -> Response:
        """Say how far the experiment is."""
        return JSONResponse(_progress(self._found(request)))

    async def start(self, request: Request) -> Response:
        """Start the experiment; one at a time, for it takes every core."""
        result = self._found(request)
        asked = await _body(request, _Start, self._limits.json_bytes)
        # A path or a capsule as the kernel would run code that is in it: names of our own recipes only.
        if asked.kernel and asked.kernel not in all_recipes():
            raise RefusalError(422, "There is no such kernel.")
        if len(asked.gpu) > 60:
            raise RefusalError(422, "That is no GPU.")
        ending = [task for run, task in self._following.items() if run.state != "running"]
        if ending:  # it has said its last word; its process needs a moment more
            await asyncio.wait(ending)
        if self._following:
            raise RefusalError(409, "Another experiment is running; stop it, or wait for it.")
        run = result.start()
        ask = Ask(result.diagnosis, asked.kernel, asked.gpu.strip())
        self._following[run] = asyncio.create_task(self._follow(run, ask))
        return JSONResponse(_progress(result), 202)

    async def _follow(self, run: Run, ask: Ask) -> None:
        try:
            await run.follow(ask)
        finally:
            del self._following[run]

    async def stop(self, request: Request) -> Response:
        """End the experiment."""
        result = self._found(request)
        result.stop()
        if result.run in self._following:
            await asyncio.wait({self._following[result.run]})
        return JSONResponse(_progress(result))

    def _found(self, request: Request) -> Result:
        result = self._results.find(request.path_params["key"])
        if result is None:
            raise RefusalError(404, "This result is gone: results are kept for a while and in a small number only.")
        return result


async def _body(request: Request, kind: Callable[..., Any], limit: int) -> Any:
    """Read a small body of JSON."""
    if not request.headers.get("content-type", "").startswith("application/json"):
        raise RefusalError(415, "Send application/json.")
    data = b""
    async for chunk in request.stream():
        data += chunk
        if len(data) > limit:
            raise RefusalError(413, "That is too much.")
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as problem:
        raise RefusalError(422, "That is not what an experiment is started with.") from problem


def _format(name: str) -> Format:
    try:
        kind: Format = msgspec.convert(name, Format)
    except msgspec.ValidationError as problem:
        raise RefusalError(422, f"There is no such format; there are {', '.join(get_args(Format))}.") from problem
    return kind


def _row(result: Result) -> dict[str, Any]:
    return {
        "id": result.id,
        "name": result.name,
        "title": result.title,
        "verdict": result.verdict,
        "resource": result.diagnosis.resource,
        "status": result.diagnosis.status,
        "experiment": _progress(result),
    }


def _progress(result: Result) -> dict[str, Any]:
    run = result.run
    if run is None:
        return {"state": "none", "done": 0, "all": 0, "sentence": "", "problem": ""}
    sentence = run.experiment.sentence if run.experiment else ""
    return {"state": run.state, "done": run.done, "all": run.all, "sentence": sentence, "problem": run.problem}
