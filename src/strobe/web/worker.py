"""A process that answers questions about runs, one after the other, for the server.

It keeps the runs open that it was last asked about. It ends when the server does.
"""

import contextlib
import gzip
import importlib
import os
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from strobe.errors import MissingData, NoSuchRun, StrobeError, UnreadableTrace, UsageError
from strobe.store.run_folder import while_there
from strobe.web import wire
from strobe.web.base_dir import BaseDir
from strobe.web.changes import change
from strobe.web.question import JSON, Answer, Asked
from strobe.web.questions import named
from strobe.web.run_content import content_of, state_of

# Runs held open: two are compared, and one more is looked at beside them.
MOST_OPEN = 3
# Smaller answers are not worth packing; level 1 packs 100 MB a second, and halves at least.
_WORTH_PACKING_BYTES = 2048
_PACK_LEVEL = 1
_REPORT_EVERY_S = 0.25
_PIECE_BYTES = 256 << 10

STATUS: dict[type[StrobeError], int] = {
    NoSuchRun: 404,
    UsageError: 400,
    UnreadableTrace: 422,
    MissingData: 422,
}


class Worker:
    def __init__(self, base: BaseDir, out: BinaryIO) -> None:
        self.base = base
        self._out = out
        self._writing = threading.Lock()
        self._open: dict[Path, tuple[str, Any]] = {}  # path: (content, ServedRun)

    def work(self, job: dict[str, Any]) -> None:
        """Answer one job; whatever goes wrong is an answer too."""
        try:
            if job["question"] in _FILES:
                self._send_answer(_FILES[job["question"]](self.base, job))
                return
            asked = [self._asked(job, run) for run in job["runs"]]
            with while_there(*(one.path for one in asked)):
                self._send_answer(self._answer(job, asked))
        except StrobeError as error:
            self._send_failure(error)
        except Exception as error:
            traceback.print_exc()
            self._send_failure(error)

    def _answer(self, job: dict[str, Any], asked: list[Asked]) -> Answer:
        answer = _function(named(job["question"]).function)
        first = asked[0]
        given = Asked(
            first.path, first.content, first.words, first.params, first.open, first.report,
            tuple(asked[1:]),
        )  # fmt: skip
        try:
            return answer(given)
        except Exception as error:
            if not _is_gone(error):
                raise
            # Its tables were built anew while we had them open: once more with the new ones.
            for one in asked:
                self._close(one.path)
            return answer(given)

    def _asked(self, job: dict[str, Any], run: dict[str, str]) -> Asked:
        path = self.base.find(run["id"])
        content = run["content"]
        return Asked(
            path=path,
            content=content,
            words=tuple(job["words"]),
            params=job["params"],
            open=lambda: self._opened(path, content),
            report=self.report,
        )

    def report(self, what: str, done: int, of: int) -> None:
        self._send({"progress": {"what": what, "done": done, "of": of}})

    def _opened(self, path: Path, content: str) -> Any:
        held = self._open.get(path)
        if held is not None and held[0] == content:
            self._open[path] = self._open.pop(path)  # last asked for, last closed
            return held[1]
        self._close(path)
        while len(self._open) >= MOST_OPEN:
            self._close(next(iter(self._open)))
        opened = self._open_anew(path)
        self._open[path] = (content, opened)
        self._send({"opened": True})
        return opened

    def _open_anew(self, path: Path) -> Any:
        from strobe.ingest.building.opening import open_run_dir
        from strobe.ingest.trace import progress
        from strobe.web.served_run import ServedRun

        over = threading.Event()
        with progress.metered() as meter:
            thread = threading.Thread(
                target=self._tell_progress, args=(path, meter, over), daemon=True
            )
            thread.start()
            try:
                run = open_run_dir(path)
            finally:
                over.set()
                thread.join()
        return ServedRun(run)

    def _tell_progress(self, path: Path, meter: Any, over: threading.Event) -> None:
        size = None
        while not over.wait(_REPORT_EVERY_S):
            size = _size_to_read(path) if size is None else size
            self.report("reading the run", min(meter.done().bytes, size), size)

    def _close(self, path: Path) -> None:
        held = self._open.pop(path, None)
        if held is not None:
            held[1].close()

    def _send_answer(self, answer: Answer) -> None:
        if isinstance(answer.body, bytes):
            self._send_whole(answer, answer.body)
        else:
            self._send_pieces(answer, answer.body)

    def _send_whole(self, answer: Answer, body: bytes) -> None:
        is_packed = len(body) >= _WORTH_PACKING_BYTES
        if is_packed:
            body = gzip.compress(body, _PACK_LEVEL, mtime=0)
        self._send({**_head(answer), "is_packed": is_packed, "last": True}, body)

    def _send_pieces(self, answer: Answer, pieces: Iterator[bytes]) -> None:
        """The head goes out with the first piece: until then an error can still be told."""
        head: dict[str, Any] = {**_head(answer), "is_packed": False, "last": False}
        for piece in pieces:
            for at in range(0, len(piece), _PIECE_BYTES):
                self._send(head, piece[at : at + _PIECE_BYTES])
                head = {"piece": True, "last": False}
        self._send({**head, "last": True})

    def _send_failure(self, error: Exception) -> None:
        """Marked as an error also where the pieces of an answer have begun to go out."""
        status, failure = _told(error)
        head = {"status": status, "type": JSON, "file_name": "", "is_packed": False}
        self._send({**head, "failed": True, "last": True}, msgspec.json.encode(failure))

    def _send(self, head: dict[str, Any], body: bytes = b"") -> None:
        with self._writing:
            self._out.write(wire.pack(head, body))
            self._out.flush()


def _head(answer: Answer) -> dict[str, Any]:
    return {
        "status": answer.status,
        "type": answer.media_type,
        "file_name": answer.file_name,
    }


def _function(place: str) -> Callable[[Asked], Answer]:
    module, _, name = place.partition(":")
    function: Callable[[Asked], Answer] = getattr(importlib.import_module(module), name)
    return function


def _told(error: Exception) -> tuple[int, dict[str, Any]]:
    """Status and words of an error."""
    if isinstance(error, StrobeError):
        status = next((s for kind, s in STATUS.items() if isinstance(error, kind)), 422)
        what = f"{error.what} ({error.where})" if error.where else error.what
        return status, {"ok": False, "error": what, "hint": error.hint}
    what = f"a fault of Strobe's own: {type(error).__name__}: {error}"
    return 500, {"ok": False, "error": what, "hint": "please report it, with the run if you can"}


def _is_gone(error: Exception) -> bool:
    """DuckDB met a file that is not there any more."""
    import duckdb

    return isinstance(error, duckdb.IOException | FileNotFoundError)


def _size_to_read(run: Path) -> int:
    from strobe.ingest.building.builder import rank_dirs
    from strobe.ingest.importing import sources

    total = 0
    for raw in rank_dirs(run).values():
        is_imported = sources.is_imported(raw)
        files = [s.path for s in sources.listed(raw)] if is_imported else list(raw.iterdir())
        for file in files:
            with contextlib.suppress(OSError):
                total += file.stat().st_size
    return total


def _listing(base: BaseDir, job: dict[str, Any]) -> Answer:
    told = {"ok": True, "base_dir": str(base.path), "runs": base.listing()}
    return Answer(msgspec.json.encode(told))


def _content(base: BaseDir, job: dict[str, Any]) -> Answer:
    folder = base.find(job["id"])
    with while_there(folder):
        _, state = state_of(folder)
        return Answer(msgspec.json.encode({"content": content_of(folder), "state": state}))


def _change(base: BaseDir, job: dict[str, Any]) -> Answer:
    told = change(base, job["what"], job["id"], job["body"])
    return Answer(msgspec.json.encode(told))


def _rules(base: BaseDir, job: dict[str, Any]) -> Answer:
    from strobe.advise import manual, rules_named
    from strobe.advise.rules import RULES
    from strobe.show.page_answers import explained

    if not job["rule"]:
        listed = [{"rule": rule.NAME, "title": manual(rule)[0]} for rule in RULES]
        return Answer(msgspec.json.encode({"ok": True, "rules": listed}))
    (rule,) = rules_named([job["rule"]])
    return Answer(msgspec.json.encode(explained(rule)))


# What is asked of no single run; the lane "files".
_FILES: dict[str, Callable[[BaseDir, dict[str, Any]], Answer]] = {
    "*listing": _listing,
    "*content": _content,
    "*change": _change,
    "*rules": _rules,
}


def main() -> None:
    """`python -c ... BASE_DIR`, with messages on stdin and stdout."""
    out = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)  # whatever a library prints must not get between our messages
    worker = Worker(BaseDir(Path(sys.argv[1])), out)
    jobs: list[dict[str, Any]] = []
    has_come = threading.Semaphore(0)
    threading.Thread(target=_receive, args=(jobs, has_come), daemon=True).start()
    while True:
        has_come.acquire()
        worker.work(jobs.pop(0))


def _receive(jobs: list[dict[str, Any]], has_come: threading.Semaphore) -> None:
    """On a thread of its own, so that the end of the server also ends a long job."""
    while (message := wire.read(sys.stdin.buffer)) is not None:
        jobs.append(message[0])
        has_come.release()
    os._exit(0)
