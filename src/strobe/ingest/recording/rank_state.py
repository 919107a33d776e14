"""What a rank was and how it ended, from its facts; whether its tables still match its
raw files.
"""

import functools
import os
import platform
import zlib
from dataclasses import asdict
from pathlib import Path
from typing import Any

from strobe.ingest.importing import sources
from strobe.ingest.recording.journal_reader import read_facts
from strobe.ingest.trace.problems import Problems
from strobe.model.journal import JOURNAL_GLOB
from strobe.model.manifest import STATES, Rank

PROBLEMS_FILE = "problems.txt"


def describe(raw: Path, rank: int) -> Rank:
    """The rank's entry in run.json."""
    if sources.is_imported(raw):
        return Rank(rank=rank, state="finished", **asdict(sources.about(raw)))
    facts = read_facts(raw, Problems())
    process: dict[str, Any] = {}
    end: dict[str, Any] = {}
    parallel: dict[str, Any] = {}
    for fact in facts:
        if fact["type"] == "process":
            process = fact
        elif fact["type"] == "end":
            end = fact
        elif fact["type"] == "parallel":
            parallel = {key: value for key, value in fact.items() if key != "type"}
    state = end.get("state")
    if state not in STATES:
        state = "recording" if is_alive(process) else "killed"
    frameworks, devices = process.get("frameworks"), process.get("devices")
    return Rank(
        rank=rank,
        pid=process.get("pid") or 0,
        host=str(process.get("host") or ""),
        state=state,
        world_size=process.get("world_size"),
        local_rank=process.get("local_rank"),
        started_unix_ns=process.get("unix_ns"),
        ended_unix_ns=end.get("unix_ns"),
        frameworks=dict(frameworks) if isinstance(frameworks, dict) else {},
        devices=[str(device) for device in devices] if isinstance(devices, list) else [],
        parallel=parallel,
    )


def is_alive(process: dict[str, Any]) -> bool:
    """Whether the process of a fact still runs; a process of another host is assumed to."""
    pid = process.get("pid")
    if pid is None:
        return False
    if process.get("host") != platform.node():
        return True
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return not Path("/proc/self").exists() and _signals(pid)
    is_zombie = stat[0] == b"Z"
    started = process.get("start_ticks")
    return not is_zombie and (started is None or int(stat[19]) == started)


def words_left(raw: Path, rank: int) -> list[str]:
    """Reports of processes that could not write to a rank's folder of their own.

    Those of a process without a rank go to the first rank, so that they are not lost.
    """
    run = raw.parent.parent
    try:
        lines = (run / PROBLEMS_FILE).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
    words = [line.partition(": ")[2] or line for line in lines if line.strip()]
    is_first = not any((run / f"rank_{number}" / "raw").is_dir() for number in range(rank))
    return [
        word for word in words
        if word.startswith(f"rank {rank}:") or (is_first and not word.startswith("rank "))
    ]  # fmt: skip


def signature(raw: Path) -> list[list[Any]]:
    """Changes when a raw file does: names, sizes, modification times, and the newest marks.

    Writing through a mapping does not change the file's modification time, hence the checksum.
    """
    # Files that begin with a dot are incomplete or reserves: nobody reads them.
    visible = (path for path in raw.iterdir() if not path.name.startswith("."))
    files = sorted(p for p in visible if p.is_file() and p.name != sources.ABOUT_FILE)
    found: list[list[Any]] = []
    for path in files:
        status = path.stat()
        found.append([path.name, status.st_size, status.st_mtime_ns])
    beside = raw.parent.parent / PROBLEMS_FILE
    if beside.exists():
        found.append([beside.name, beside.stat().st_size, beside.stat().st_mtime_ns])
    segments = sorted(raw.glob(JOURNAL_GLOB))
    if segments:
        found.append(["newest marks", zlib.crc32(segments[-1].read_bytes())])
    return found


@functools.cache
def builder() -> int:
    """Changes with the code that builds tables, so that an improved reader reads a run again."""
    ingest, frameworks = Path(__file__).parents[1], Path(__file__).parents[2] / "frameworks"
    deciding = (frameworks / name for name in ("families.py", "graph_names.py"))
    sources = [*sorted(ingest.rglob("*.py")), *deciding]
    return zlib.crc32(b"".join(path.read_bytes() for path in sources))


def _signals(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
