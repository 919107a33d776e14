"""The addresses of the server, and the functions that answer them."""

import asyncio
import contextlib
import dataclasses
import json
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote_to_bytes

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from strobe.model.schema import STORED_TABLES
from strobe.version import __version__
from strobe.web.answering.answers import Answers, Working
from strobe.web.answering.reply import Refused, Reply, as_reply, failure
from strobe.web.assets import Assets
from strobe.web.guard import BODY_S
from strobe.web.question import Keep, Question
from strobe.web.questions import named, question_of
from strobe.web.runs_page import RunsPage

# An answer that takes longer is a 202 with its progress; the page asks again.
WAIT_S = 1.0
# A page that follows a live run gets an answer after this time at the latest.
LONGEST_POLL_S = 20.0
# How often a live run is read for it, and which part of the time reading may take.
LIVE_EVERY_S = 0.5
LIVE_RATIO = 0.25
_STORED = frozenset(table.name for table in STORED_TABLES)
_CHANGES = ("delete", "rename", "tags")
_NOT_STORED = "no-store"
_REVALIDATED = "private, no-cache"


class Pages:
    """The handlers, and what they share."""

    def __init__(self, base_dir: Path, cache: Path) -> None:
        self.answers = Answers(base_dir, cache)
        self.runs_page = RunsPage(self.answers)
        self.assets = Assets()
        self.base_dir = base_dir
        self._changing = asyncio.Lock()

    async def health(self, request: Request) -> Response:
        health = {"ok": True, "version": __version__, "base_dir": str(self.base_dir)}
        return _sent(request, as_reply(health), "")

    async def runs(self, request: Request) -> Response:
        reply = await self.runs_page.listing()
        return _sent(request, reply, "")

    async def catalogue(self, request: Request) -> Response:
        tags = [tag for tag in request.query_params.getlist("tag") if tag]
        verdicts = self.runs_page.verdicts()
        job = {"question": "*catalogue", "tags": tags, "verdicts": verdicts}
        return _sent(request, await self.answers.ask_files(job), "")

    async def rules(self, request: Request) -> Response:
        rule = request.path_params.get("rule", "")
        reply = await self.answers.ask_files({"question": "*rules", "rule": rule})
        return _sent(request, reply, "")

    async def compare(self, request: Request) -> Response:
        params = _params(request)
        runs = (params.pop("a", ""), params.pop("b", ""))
        if not all(runs):
            return _sent(request, failure(400, "which runs?", "/api/compare?a=<id>&b=<id>"), "")
        return await self._answer(request, named("compare"), runs, (), params)

    async def run(self, request: Request) -> Response:
        words = _words(request)[2:]
        if not words:
            return _sent(request, _no_such_address(), "")
        run, *rest = words
        if request.method == "POST":
            return await self._change(request, run, rest)
        question, rest_words = question_of(tuple(rest))
        if question is None or question.name == "compare":
            return _sent(request, _no_such_address(), "")
        params = _params(request)
        if question.name == "live":
            return await self._live(request, question, run, params)
        if question.name == "table":
            question = dataclasses.replace(question, keep=_keep(rest_words, params))
        return await self._answer(request, question, (run,), rest_words, params)

    async def _answer(
        self,
        request: Request,
        question: Question,
        runs: tuple[str, ...],
        words: tuple[str, ...],
        params: dict[str, str],
    ) -> Response:
        try:
            reply, key = await self.answers.ask(question, runs, words, params, WAIT_S)
        except Refused as refused:
            return _sent(request, refused.reply, "")
        except Working as working:
            progress = as_reply({"ok": True, "working": working.progress})
            return _sent(request, dataclasses.replace(progress, status=202), "")
        return _sent(request, reply, key)

    async def _live(
        self, request: Request, question: Question, run: str, params: dict[str, str]
    ) -> Response:
        """Answers when there is something new: steps, or that other questions are now answered from
        a content other than `content`, which may be later."""
        until = time.monotonic() + LONGEST_POLL_S
        while True:
            begun = time.monotonic()
            try:
                reply, _ = await self.answers.ask(question, (run,), (), params, 0)
                content = await self.answers.content(run)
            except Refused as refused:
                return _sent(request, refused.reply, "")
            if reply.status != 200:
                return _sent(request, reply, "")
            live = {**json.loads(reply.plain), "content": content}
            is_other = params.get("content", content) != content
            is_new = live["new"] or live["reset"] or not live["is_live"] or is_other
            pause_s = max(LIVE_EVERY_S, (time.monotonic() - begun) / LIVE_RATIO)
            is_over = time.monotonic() + pause_s > until or await request.is_disconnected()
            if is_new or is_over:
                return _sent(request, as_reply(live), "")
            await asyncio.sleep(pause_s)

    async def _change(self, request: Request, run: str, rest: list[str]) -> Response:
        if len(rest) != 1 or rest[0] not in _CHANGES:
            return _sent(request, _no_such_address(), "")
        body = await _body(request)
        if body is None:
            return _sent(request, failure(400, "the body is no JSON object", '{"name": "…"}'), "")
        job = {"question": "*change", "what": rest[0], "id": run, "body": body}
        async with self._changing:  # one after the other: a rename must not meet a deletion
            reply = await self.answers.ask_files(job)
        self.answers.forget_contents()
        self.runs_page.forget()
        return _sent(request, reply, "")

    async def asset(self, request: Request) -> Response:
        asset = self.assets.get(request.path_params["address"])
        if asset is None:
            if not request.path_params["address"]:
                return Response(_NO_PAGES, 503, media_type="text/html")
            return _sent(request, _no_such_address(), "")
        is_packed = asset.packed is not None and _takes_packed(request)
        headers = {
            "etag": asset.tag,
            "vary": "accept-encoding",
            "cache-control": "private, max-age=31536000, immutable" if asset.is_fixed
            else _REVALIDATED,
        }  # fmt: skip
        if request.headers.get("if-none-match") == asset.tag:
            return Response(status_code=304, headers=headers)
        if is_packed:
            headers["content-encoding"] = "gzip"
        body = asset.packed if is_packed and asset.packed is not None else asset.body
        return Response(body, headers=headers, media_type=asset.media_type)

    async def nothing(self, request: Request) -> Response:
        return _sent(request, _no_such_address(), "")

    @contextlib.asynccontextmanager
    async def lifespan(self, app: Starlette) -> AsyncIterator[None]:
        tending = asyncio.create_task(self.answers.tend())
        try:
            yield
        finally:
            tending.cancel()
            self.runs_page.close()
            await self.answers.close()


def application(base_dir: Path, cache: Path) -> Starlette:
    pages = Pages(base_dir, cache)
    both = ["GET", "POST"]
    routes = [
        Route("/api/health", pages.health),
        Route("/api/runs", pages.runs),
        Route("/api/catalogue", pages.catalogue),
        Route("/api/runs/{rest:path}", pages.run, methods=both),
        Route("/api/compare", pages.compare),
        Route("/api/rules", pages.rules),
        Route("/api/rules/{rule}", pages.rules),
        Route("/api/{rest:path}", pages.nothing, methods=both),
        Route("/{address:path}", pages.asset),
    ]
    return Starlette(routes=routes, lifespan=pages.lifespan)


def _words(request: Request) -> list[str]:
    """The parts of the address, each unquoted by itself: the name of a run may hold slashes."""
    raw: bytes = request.scope.get("raw_path") or request.url.path.encode()
    parts = raw.split(b"?")[0].strip(b"/").split(b"/")
    return [unquote_to_bytes(part).decode("utf-8", "replace") for part in parts]


def _params(request: Request) -> dict[str, str]:
    """By name; several conditions `where` stand together."""
    params: dict[str, str] = {}
    for name, value in request.query_params.multi_items():
        params[name] = f"{params[name]},{value}" if name == "where" and name in params else value
    return params


async def _body(request: Request) -> dict[str, Any] | None:
    try:
        body = json.loads(await asyncio.wait_for(request.body(), BODY_S))
    except (ValueError, RecursionError, ClientDisconnect, asyncio.TimeoutError):
        return None
    return body if isinstance(body, dict) else None


def _keep(words: tuple[str, ...], params: dict[str, str]) -> Keep:
    """An analysis is worth storing; rows of a stored table are read again as fast."""
    if params.get("format", "json") != "json":
        return "no"  # a file, sent as it is made
    return "briefly" if words and words[0].replace("-", "_") in _STORED else "disk"


def _no_such_address() -> Reply:
    return failure(404, "there is nothing at this address", "the pages begin at /")


def _sent(request: Request, reply: Reply, key: str) -> Response:
    """With a key, the browser stores it and asks whether it is still the same."""
    headers = {"cache-control": _REVALIDATED if key and reply.status == 200 else _NOT_STORED}
    if reply.file_name:
        headers["content-disposition"] = f'attachment; filename="{_ascii(reply.file_name)}"'
    if reply.pieces is not None:
        pieces = _closing(reply.pieces)
        return StreamingResponse(pieces, reply.status, headers, media_type=reply.media_type)
    if key and reply.status == 200:
        headers["etag"] = f'"{key[:32]}"'
        headers["vary"] = "accept-encoding"
        if request.headers.get("if-none-match") == headers["etag"]:
            return Response(status_code=304, headers=headers)
    body = reply.body
    if reply.is_packed and _takes_packed(request):
        headers["content-encoding"] = "gzip"
    elif reply.is_packed:
        body = reply.plain
    return Response(body, reply.status, headers, media_type=reply.media_type)


async def _closing(pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """A reader that leaves half-way frees the worker at once."""
    try:
        async for piece in pieces:
            yield piece
    finally:
        close = getattr(pieces, "aclose", None)
        if close is not None:
            await close()


def _takes_packed(request: Request) -> bool:
    return "gzip" in request.headers.get("accept-encoding", "")


def _ascii(name: str) -> str:
    return "".join(c if c.isascii() and (c.isalnum() or c in "._-") else "_" for c in name)


_NO_PAGES = """<!doctype html><html lang=en><meta charset=utf-8><title>Strobe</title>
<h1>Strobe</h1><p>The pages are not built: this is a checkout without them.</p>
<p>Build them with <code>make ui</code>, or install a released version.</p></html>"""
