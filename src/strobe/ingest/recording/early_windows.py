"""Read windows while training still runs, so that less is left to do when it has ended.

`strobe run` lets a process of the lowest priority read each window's trace once it is written, and
store its columns in `rank_N/ahead/`. The build uses them if they match the file and this code;
otherwise it reads the file. They are deleted when the tables are built.
"""

import contextlib
import ctypes
import json
import os
import select
import shutil
import signal
import struct
import sys
import zlib
from collections import Counter
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

from strobe.ingest.formats import kineto
from strobe.ingest.formats.kineto import Events, Memory, Trace
from strobe.ingest.recording import rank_state
from strobe.ingest.trace.codes import Array
from strobe.ingest.trace.problems import Problems
from strobe.store.run_folder import folder_in, refuse_removed

FOLDER = "ahead"
# A trace still being compressed has its plain name; this one appears when it is complete.
WINDOWS_GLOB = "rank_*/raw/window-*.trace.json.gz"

_MAGIC = b"strobe ahead 1\n"
_HEAD = struct.Struct("<QL")  # bytes of the description; checksum of everything after
_LISTS = ("names", "categories", "texts")

# Limits of the process: virtual memory, CPU time.
_MOST_BYTES = 4 << 30
_MOST_SECONDS = 120
_PATIENCE_S = 60.0
# It stops if the machine has less free memory or disk space than this.
_SPARE_BYTES = 1 << 30


def read(path: Path) -> Trace:
    """The trace of a window: as it was read early, if that is still valid, otherwise
    from its file.
    """
    return load(path) or kineto.read(path)


def save(path: Path) -> None:
    """Read a window's trace and store its columns for the build."""
    target = _place(path)
    if load(path) is not None:
        return
    stamp = _stamp(path)  # first, so that a change of the file while we read makes it invalid
    data = _packed(kineto.read(path), stamp)
    refuse_removed(path)
    folder_in(target.parent.parent, FOLDER)
    temporary = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        temporary.write_bytes(data)
        os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)


def load(path: Path) -> Trace | None:
    """The stored trace of a window; None if there is none, or it is stale or damaged."""
    try:
        return _unpacked(_place(path).read_bytes(), _stamp(path))
    except (OSError, ValueError, KeyError, TypeError, struct.error):
        return None


def clear(rank: Path) -> None:
    """Once the tables of a rank that has ended are built, none of it is needed."""
    shutil.rmtree(rank / FOLDER, ignore_errors=True)


def main(run: str) -> None:
    """The process that reads early: it checks for new windows whenever it receives a byte.

    It ends when its pipe is closed, and so with the process at the other end; and after a while
    without input, as it would only occupy memory.
    """
    _be_humble()
    while select.select([sys.stdin], [], [], _PATIENCE_S)[0]:
        if not os.read(sys.stdin.fileno(), 1 << 16):
            return
        for path in sorted(Path(run).glob(WINDOWS_GLOB)):
            if not _has_room(path):
                return
            with contextlib.suppress(Exception):  # the build will get the same error, and report it
                save(path)


def _place(path: Path) -> Path:
    return path.parent.parent / FOLDER / (path.name.split(".")[0] + ".columns")


def _stamp(path: Path) -> list[Any]:
    status = path.stat()
    return [path.name, status.st_size, status.st_mtime_ns, rank_state.builder()]


def _packed(trace: Trace, stamp: list[Any]) -> bytes:
    """A line that identifies the format, a description in JSON, and the columns one after the
    other.
    """
    arrays = {f"{part}.{name}": column for part, name, column in _columns(trace)}
    description = {
        "stamp": stamp,
        "arrays": [[name, column.dtype.str, len(column)] for name, column in arrays.items()],
        **{name: getattr(trace, name) for name in _LISTS},
        "threads": trace.threads,
        "thread_names": [[*thread, name] for thread, name in trace.thread_names.items()],
        "header": trace.header,
        "problems": [[*key, count] for key, count in trace.problems.counts.items()],
    }
    text = json.dumps(description).encode()
    body = b"".join([text, *(column.tobytes() for column in arrays.values())])
    return b"".join([_MAGIC, _HEAD.pack(len(text), zlib.crc32(body)), body])


def _columns(trace: Trace) -> list[tuple[str, str, Array]]:
    named = [("events", f.name, getattr(trace.events, f.name)) for f in fields(Events)]
    named += [("memory", f.name, getattr(trace.memory, f.name)) for f in fields(Memory)]
    plain = [(part, name, column) for part, name, column in named if name != "args"]
    return plain + [("args", name, column) for name, column in trace.events.args.items()]


def _unpacked(data: bytes, stamp: list[Any]) -> Trace | None:
    start = len(_MAGIC) + _HEAD.size
    size, checksum = _HEAD.unpack(data[len(_MAGIC) : start])
    body = memoryview(data)[start:]
    if not data.startswith(_MAGIC) or zlib.crc32(body) != checksum:
        return None
    found = json.loads(bytes(body[:size]))
    if found["stamp"] != stamp:
        return None
    parts: dict[str, dict[str, Any]] = {"events": {}, "memory": {}, "args": {}}
    for label, dtype, count in found["arrays"]:
        part, _, name = label.partition(".")
        column = np.frombuffer(body, dtype=dtype, count=count, offset=size).copy()
        parts[part][name] = column
        size += column.nbytes
    counts = {(source, what): count for source, what, count in found["problems"]}
    return Trace(
        events=Events(**parts["events"], args=parts["args"]),
        memory=Memory(**parts["memory"]),
        names=found["names"],
        categories=found["categories"],
        texts=found["texts"],
        threads=[(pid, tid) for pid, tid in found["threads"]],
        thread_names={(pid, tid): name for pid, tid, name in found["thread_names"]},
        header=found["header"],
        problems=Problems(Counter(counts)),
    )


def _be_humble() -> None:
    """Run only when no other process needs the processor or the disk.

    A process with SCHED_IDLE has idle priority for input and output too.
    """
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG: do not even finish a window
    os.nice(19)
    with contextlib.suppress(OSError, AttributeError):
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    with contextlib.suppress(OSError):  # if memory runs out, this process is killed first
        Path("/proc/self/oom_score_adj").write_text("1000")
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (_MOST_BYTES, _MOST_BYTES))
        resource.setrlimit(resource.RLIMIT_CPU, (_MOST_SECONDS, _MOST_SECONDS))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _has_room(path: Path) -> bool:
    """Whether there is enough free disk space and memory for the columns of a window."""
    with contextlib.suppress(OSError):
        if shutil.disk_usage(path.parent).free < _SPARE_BYTES:
            return False
    with contextlib.suppress(OSError, ValueError, StopIteration):
        lines = Path("/proc/meminfo").read_text().splitlines()
        available = next(line.split()[1] for line in lines if line.startswith("MemAvailable"))
        return int(available) * 1024 > _SPARE_BYTES
    return True
