"""A process that answers questions about runs, one after the other, for the server.

It keeps the runs open that it was last asked about. It ends when the server does.
"""

import gzip
import importlib
import os
import queue
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import msgspec

from strobe.errors import MissingData, NoSuchRun, StrobeError, UnreadableTrace, UsageError
from strobe.messages import message
from strobe.store.run_folder import while_there
from strobe.web.answering import wire
from strobe.web.answering.base_questions import BASE_QUESTIONS
from strobe.web.base_dir import BaseDir
from strobe.web.question import Answer, Asked
from strobe.web.questions import named

if TYPE_CHECKING:
    from strobe.web.served_run import ServedRun

# Runs held open: two that are compared, and another one.
MOST_OPEN = 3
# Smaller answers are not worth packing; level 1 packs 100 MB/s, to half the size or less.
_WORTH_PACKING_BYTES = 2048
_PACK_LEVEL = 1
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
        self._open: dict[Path, tuple[str, ServedRun]] = {}  # path: (content, run)

    def work(self, job: dict[str, Any]) -> None:
        """Answer one job; an error is an answer too."""
        try:
            if job["question"] in BASE_QUESTIONS:
                self._send_answer(BASE_QUESTIONS[job["question"]](self.base, job))
                return
            first, *others = [self._asked(job, run) for run in job["runs"]]
            with while_there(first.path, *(other.path for other in others)):
                asked = replace(first, others=tuple(others))
                self._send_answer(self._answer(job["question"], asked))
        except StrobeError as error:
            self._send_failure(error)
        except Exception as error:
            traceback.print_exc()
            self._send_failure(error)

    def _answer(self, question: str, asked: Asked) -> Answer:
        function = _open if question == "*open" else _function(named(question).function)
        try:
            return function(asked)
        except Exception as error:
            if not _is_file_gone(error):
                raise
            # The tables were built again while we had them open: open the new ones.
            for one in (asked, *asked.others):
                self._close(one.path)
            return function(asked)

    def _asked(self, job: dict[str, Any], run: dict[str, str]) -> Asked:
        path = self.base.find(run["id"])
        return Asked(
            path=path,
            content=run["content"],
            words=tuple(job["words"]),
            params=job["params"],
            open=lambda: self._opened(path, run["content"]),
            report=self.report,
        )

    def report(self, what: str, done: int, of: int) -> None:
        self._send({"progress": {"what": what, "done": done, "of": of}})

    def _opened(self, path: Path, content: str) -> "ServedRun":
        from strobe.web.answering.opening import open_with_progress

        known, opened = self._open.pop(path, (None, None))
        if opened is None or known != content:
            if opened is not None:
                opened.close()
            while len(self._open) >= MOST_OPEN:
                self._close(next(iter(self._open)))
            opened = open_with_progress(path, self.report)
        self._open[path] = (content, opened)  # at the end: the first one is closed first
        return opened

    def _close(self, path: Path) -> None:
        if path in self._open:
            self._open.pop(path)[1].close()

    def _send_answer(self, answer: Answer) -> None:
        if isinstance(answer.body, bytes):
            self._send_whole(answer, answer.body)
        else:
            self._send_pieces(answer, answer.body)

    def _send_whole(self, answer: Answer, body: bytes) -> None:
        is_packed = len(body) >= _WORTH_PACKING_BYTES
        if is_packed:
            body = gzip.compress(body, _PACK_LEVEL, mtime=0)
        self._send({"reply": _head(answer, is_packed), "last": True}, body)

    def _send_pieces(self, answer: Answer, pieces: Iterator[bytes]) -> None:
        """The head goes with the first piece: until then, an error can still be the answer."""
        head = {"reply": _head(answer), "last": False}
        for piece in pieces:
            for at in range(0, len(piece), _PIECE_BYTES):
                self._send(head, piece[at : at + _PIECE_BYTES])
                head = {"last": False}
        self._send({**head, "last": True})

    def _send_failure(self, error: Exception) -> None:
        """Marked as failed, also for a reader that has some pieces of an answer already."""
        status, failure = _described(error)
        head = _head(Answer(b"", status=status))
        self._send({"reply": head, "failed": True, "last": True}, msgspec.json.encode(failure))

    def _send(self, head: dict[str, Any], body: bytes = b"") -> None:
        with self._writing:
            self._out.write(wire.pack(head, body))
            self._out.flush()


def _head(answer: Answer, is_packed: bool = False) -> dict[str, Any]:
    return {
        "status": answer.status,
        "media_type": answer.media_type,
        "file_name": answer.file_name,
        "is_packed": is_packed,
    }


def _open(asked: Asked) -> Answer:
    """Build the tables of a run, before other questions about it are asked."""
    asked.open()
    return Answer(b"")


def _function(place: str) -> Callable[[Asked], Answer]:
    module, _, name = place.partition(":")
    function: Callable[[Asked], Answer] = getattr(importlib.import_module(module), name)
    return function


def _described(error: Exception) -> tuple[int, dict[str, Any]]:
    """The status and the JSON of an error."""
    if isinstance(error, StrobeError):
        status = next((s for kind, s in STATUS.items() if isinstance(error, kind)), 422)
        what = f"{error.what} ({error.where})" if error.where else error.what
        return status, {"ok": False, "error": str(what), "hint": str(error.hint)}
    reason = f"{type(error).__name__}: {error}"
    return 500, {
        "ok": False, "error": str(message("errors/server.own-fault", reason=reason)),
        "hint": str(message("errors/server.own-fault-hint")),
    }  # fmt: skip


def _is_file_gone(error: Exception) -> bool:
    import duckdb

    return isinstance(error, duckdb.IOException | FileNotFoundError)


def main() -> None:
    """`python -c ... BASE_DIR`, with messages on stdin and stdout."""
    out = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)  # what a library prints must not get between our messages
    worker = Worker(BaseDir(Path(sys.argv[1])), out)
    jobs: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
    threading.Thread(target=_receive, args=(jobs,), daemon=True).start()
    while True:
        worker.work(jobs.get())


def _receive(jobs: "queue.SimpleQueue[dict[str, Any]]") -> None:
    """On its own thread, so that the end of the server also ends a long job."""
    while (message := wire.read(sys.stdin.buffer)) is not None:
        jobs.put(message[0])
    os._exit(0)
