"""Which traces of a folder belong to one job, and which to different ones.

Ranks of one job are imported together. Traces of different jobs never are, unless the user names
them one by one. Two traces belong to different jobs if there is evidence: they are in different
folders and do not both name their rank; two processes recorded the same rank; their jobs have
different numbers of ranks; or they began too far apart.
"""

import datetime
import os
import re
from dataclasses import dataclass, field
from pathlib import Path

from strobe.errors import UsageError
from strobe.ingest.importing.discovery import Seen
from strobe.ingest.importing.file_search import listing
from strobe.ingest.importing.ranks import told_rank

# Ranks of one job begin within minutes of each other, as in `collect/start/job.py`.
_APART_NS = 600 * 10**9
# One rank may have windows hours apart.
_NOT_ONE_RUN_NS = 24 * 3600 * 10**9

_RANK_FOLDER = re.compile(r"(?<![a-z])rank[-_ ]?\d", re.IGNORECASE)
# Folders of one recording, which are part of their job's folder.
_RECORDING = re.compile(
    r".*_ascend_(?:pt|ms)\Z|PROF_\w+\Z|ASCEND_PROFILER_OUTPUT\Z|mindstudio_profiler_output\Z"
    r"|FRAMEWORK\Z|plugins\Z|profiler\Z"
)
# HOST_PID_TIME_ascend_pt/, HOST_PID.TIME.pt.trace.json, PID.chrome_timeline.json
_PROCESS = re.compile(
    r"(.+_\d+)_(\d{14,20})_ascend_(?:pt|ms)\Z|(.+_\d+)\.(\d+)\.pt\.trace\.json(?:\.gz)?\Z"
    r"|(\d+)\.chrome_timeline\.json"
)
_XPLANE = re.compile(r"(.+)\.xplane\.pb(?:\.gz|\.zst)?\Z")
_SINCE_1970_MS, _SINCE_1970_NS = 10**12, 10**18


@dataclass
class Job:
    """Traces that are imported together."""

    folder: Path
    traces: list[Seen] = field(default_factory=list)
    ranks: dict[int, str] = field(default_factory=dict)  # the process that recorded each
    processes: set[str] = field(default_factory=set)
    is_ranked: bool = True  # whether every trace names its rank
    world_size: int | None = None
    first_ns: int | None = None  # when its first and last traces began
    last_ns: int | None = None
    written_ns: int | None = None  # when its last trace was written, if names say so


def refuse_strangers(traces: list[Seen], folder: Path) -> None:
    """Raise UsageError, with a command for each job, if these traces belong to several jobs."""
    jobs = jobs_of(traces)
    if len(jobs) <= 1:
        return
    is_store = any(trace.found.run and trace.archive is None for trace in traces)
    if is_store and not folder.is_dir():
        raise UsageError.of(
            "errors/traces.several-runs", where=str(folder), count=f"{len(jobs):,}",
            commands=commands(jobs),
        )  # fmt: skip
    if not folder.is_dir():
        raise UsageError.of(
            "errors/traces.several-jobs-in-archive", where=str(folder), count=f"{len(jobs):,}"
        )
    raise UsageError.of(
        "errors/traces.several-jobs",
        where=str(folder),
        count=f"{len(jobs):,}",
        commands=commands(jobs),
    )


def commands(jobs: list[Job]) -> str:
    """The command that opens each."""
    return listing((_names(job, jobs), _about(job)) for job in jobs)


def jobs_of(traces: list[Seen]) -> list[Job]:
    by_folder: dict[Path, list[_Told]] = {}
    for trace in traces:
        told = _told(trace)
        by_folder.setdefault(told.folder, []).append(told)
    found: list[Job] = []
    for folder, of_folder in sorted(by_folder.items()):
        found += _in_folder(folder, of_folder)
    return _joined(found)


@dataclass(frozen=True)
class _Told:
    """What a trace and its name say about its job."""

    seen: Seen
    folder: Path
    rank: int | None
    process: str
    written_ns: int | None

    @property
    def first_ns(self) -> int | None:
        return self.seen.found.first_unix_ns or None

    @property
    def world_size(self) -> int | None:
        return self.seen.found.world_size


def _told(seen: Seen) -> _Told:
    path = seen.found.paths[0]
    if seen.found.folder is not None:
        path = seen.found.folder / path.name
    below = path.relative_to(seen.root).parts if path.is_relative_to(seen.root) else path.parts
    folders = below[:-1]
    inner = (n for n, name in enumerate(folders) if _is_part(name))
    place = seen.root.joinpath(*folders[: next(inner, len(folders))])
    process, written = "", 0
    for name in (seen.root.name, *below):
        if match := _PROCESS.match(name):
            process = next(filter(None, (match[1], match[3], match[5])))
            written = int(match[4] or 0)
    if host := _XPLANE.match(path.name):
        process = host[1]
    if _SINCE_1970_MS < written < _SINCE_1970_NS // 1000:  # older torch counts milliseconds
        written *= 10**6
    is_dated = written > _SINCE_1970_NS
    return _Told(seen, place, told_rank(seen), process, written if is_dated else None)


def _is_part(folder: str) -> bool:
    return bool(_RANK_FOLDER.search(folder) or _RECORDING.match(folder))


def _in_folder(folder: Path, traces: list[_Told]) -> list[Job]:
    """Traces of one folder, each assigned to the first job that nothing contradicts."""
    jobs: list[Job] = []
    for told in sorted(traces, key=lambda told: (told.first_ns or 0, told.seen.found.paths[0])):
        job = next((job for job in jobs if _belongs(told, job)), None)
        if job is None:
            job = Job(folder)
            jobs.append(job)
        _add(told, job)
    return jobs


def _belongs(told: _Told, job: Job) -> bool:
    if told.process and told.process in job.processes:
        return True  # another window of a known process
    if None not in (told.world_size, job.world_size) and told.world_size != job.world_size:
        return False
    if told.rank is not None and told.rank in job.ranks:
        apart_ns = (told.first_ns or 0) - (job.last_ns or told.first_ns or 0)
        return apart_ns < _NOT_ONE_RUN_NS and not (told.process and job.ranks[told.rank])
    if job.ranks.keys() & {*told.seen.found.ranks}:
        return False
    if told.rank is not None and not told.process:
        return True
    if told.first_ns is None or job.first_ns is None:
        # Something else that the same process recorded, such as a snapshot of its memory.
        is_other = all(told.seen.reader != seen.reader for seen in job.traces)
        return is_other or told.rank is not None or bool(told.process or told.seen.found.ranks)
    if told.written_ns and job.written_ns and told.first_ns > job.written_ns:
        return False  # it began after the others had been written
    return told.first_ns - job.first_ns <= _APART_NS


def _add(told: _Told, job: Job) -> None:
    job.traces.append(told.seen)
    if told.rank is not None:
        job.ranks.setdefault(told.rank, told.process)
    for rank in told.seen.found.ranks:
        job.ranks.setdefault(rank, told.process)
    job.is_ranked &= told.rank is not None or bool(told.seen.found.ranks)
    if told.process:
        job.processes.add(told.process)
    job.world_size = job.world_size or told.world_size
    job.first_ns = _earliest(job.first_ns, told.first_ns)
    job.last_ns = max(filter(None, (job.last_ns, told.first_ns)), default=None)
    job.written_ns = max(filter(None, (job.written_ns, told.written_ns)), default=None)


def _joined(jobs: list[Job]) -> list[Job]:
    """Jobs of several folders are merged if each rank names itself and occurs once: one folder per
    node.
    """
    found: list[Job] = []
    for job in jobs:
        whole = next((other for other in found if _are_one(other, job)), None)
        if whole is None:
            found.append(job)
            continue
        whole.folder = Path(os.path.commonpath([whole.folder, job.folder]))
        whole.traces += job.traces
        whole.ranks |= job.ranks
        whole.processes |= job.processes
        whole.world_size = whole.world_size or job.world_size
        whole.first_ns = _earliest(whole.first_ns, job.first_ns)
    return found


def _are_one(a: Job, b: Job) -> bool:
    if not (a.is_ranked and b.is_ranked) or a.ranks.keys() & b.ranks.keys():
        return False
    if a.folder == b.folder or (a.processes & b.processes):
        return False
    if None not in (a.world_size, b.world_size) and a.world_size != b.world_size:
        return False
    if a.first_ns is None or b.first_ns is None:
        return True
    return abs(a.first_ns - b.first_ns) <= _APART_NS


def _earliest(a: int | None, b: int | None) -> int | None:
    return min(filter(None, (a, b)), default=None)


def _names(job: Job, jobs: list[Job]) -> list[Path]:
    """A folder that contains this job and no other, or its files."""
    others = [path for other in jobs if other is not job for path in _paths(other)]
    mine = _paths(job)
    for folder in (job.folder, Path(os.path.commonpath([path.parent for path in mine]))):
        if not any(path.is_relative_to(folder) for path in others):
            return [folder]
    return sorted({*mine})


def _paths(job: Job) -> list[Path]:
    return [seen.archive or seen.found.paths[0] for seen in job.traces]


def _about(job: Job) -> str:
    readers = ", ".join(sorted({seen.reader for seen in job.traces}))
    count = len(job.traces)
    name = job.traces[0].found.run_name
    parts = [
        f"{readers} {name!r}" if name and count == 1 else readers,
        "1 trace" if count == 1 else f"{count:,} traces",
    ]
    if job.ranks:
        numbers = sorted(job.ranks)
        few = ", ".join(map(str, numbers[:4])) + (", ..." if len(numbers) > 4 else "")
        parts.append(f"rank {few}" if len(numbers) == 1 else f"ranks {few}")
    if job.first_ns:
        began = datetime.datetime.fromtimestamp(job.first_ns / 1e9)
        parts.append(f"{began:%Y-%m-%d %H:%M}")
    return "; ".join(parts)
