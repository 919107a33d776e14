"""The rank that each trace belongs to.

The trace itself decides first, then the name of its file, then those of its folders. Files of one
worker (`host_pid.time.pt.trace.json`) belong to one rank. The rest get the free numbers, in order,
and that is reported.
"""

import re
from pathlib import Path

from strobe.ingest.importing.discovery import Discovered, Seen
from strobe.ingest.importing.sources import Given, Source

_IN_FILE_NAME = re.compile(r"(?<![a-z])rank[-_ ]?(\d{1,7})(?!\d)", re.IGNORECASE)
_FOLDER_NAME = re.compile(r"rank[-_ ]?(\d{1,7})", re.IGNORECASE)
_WORKER = re.compile(r"(.+_\d+)\.\d+\.pt\.trace\.json(?:\.gz)?\Z")
_LARGEST_RANK = 1 << 22
# Ranks of one job begin within minutes of each other.
_ONE_JOB_NS = 24 * 3600 * 10**9


def assigned(found: Discovered) -> tuple[dict[int, Given], int]:
    """What is imported for each rank, and when the run began; 0 if no trace says."""
    told = [told_rank(seen) for seen in found.traces]
    pairs = list(zip(found.traces, told, strict=True))
    of_worker = {_worker(seen): rank for seen, rank in pairs if rank is not None}
    assignment = _Assignment({rank for rank in told if rank is not None}, of_worker)
    for seen, rank in pairs:
        if not seen.found.ranks:
            assignment.take(seen, rank)
    for seen in found.traces:
        for part in seen.found.ranks:
            assignment.take_part(seen, part)
    given = dict(sorted(assignment.given.items()))
    next(iter(given.values())).said = found.problems() + assignment.problems()
    return given, _start(found, given)


class _Assignment:
    def __init__(self, taken: set[int], of_worker: dict[str, int]) -> None:
        self.given: dict[int, Given] = {}
        self._taken = taken
        self._of_worker = of_worker
        self._guessed: list[tuple[str, int]] = []
        self._moved: list[tuple[str, str, int]] = []
        self._names: dict[int, set[str]] = {}

    def take(self, seen: Seen, rank: int | None) -> None:
        """Add a trace of one rank: the rank that it names, or that of its worker's other files, or
        none.
        """
        name, worker = seen.found.paths[0].name, _worker(seen)
        if rank is None and worker:
            rank = self._of_worker.get(worker)
        if rank is None:
            rank = self._free()
            self._guessed.append((name, rank))
        if worker:
            self._of_worker[worker] = rank
        self._names.setdefault(rank, set()).add(worker or name)
        self._add(seen, rank)

    def take_part(self, seen: Seen, part: int) -> None:
        """Add one of the ranks of a trace that contains several; nothing can be added to
        it later.
        """
        rank = self._free() if part in self._taken or part >= _LARGEST_RANK else part
        self._taken.add(rank)
        if rank != part:
            what = f"its rank {part} is there already: taken as rank {rank}"
            self._moved.append((seen.found.paths[0].name, what, 1))
        self._add(seen, rank, part)

    def problems(self) -> list[tuple[str, str, int]]:
        found = self._moved + _what_was_guessed(self._guessed)
        for rank, names in sorted(self._names.items()):
            if len(names) > 1:
                what = f"{len(names)} files are of rank {rank}: taken as parts of it"
                found.append((Path(min(names)).name, what, 1))
        return found

    def _free(self) -> int:
        rank = next(n for n in range(len(self._taken) + 1) if n not in self._taken)
        self._taken.add(rank)
        return rank

    def _add(self, seen: Seen, rank: int, part: int | None = None) -> None:
        sources = self.given.setdefault(rank, Given()).sources
        paths = [path.resolve() for path in seen.found.paths]
        sizes = [path.stat().st_size for path in paths if path.exists()]
        sources.append(
            Source(
                seen.reader, [*map(str, paths)], len(sources), sizes, rank, part, seen.found.run
            )
        )  # fmt: skip


def told_rank(seen: Seen) -> int | None:
    """The rank that the trace, its file or a folder names; None if nothing does."""
    if seen.found.rank is not None:
        return seen.found.rank if 0 <= seen.found.rank < _LARGEST_RANK else None
    path = seen.found.paths[0]
    match = _IN_FILE_NAME.search(path.name)
    folders = path.absolute().parents
    depth = len(path.absolute().parts) - len(seen.root.absolute().parts)
    for folder in list(folders)[: max(1, depth)]:
        match = match or _FOLDER_NAME.fullmatch(folder.name)
    rank = int(match.group(1)) if match else None
    return rank if rank is not None and rank < _LARGEST_RANK else None


def _worker(seen: Seen) -> str:
    match = _WORKER.match(seen.found.paths[0].name)
    return str(seen.found.paths[0].parent / match.group(1)) if match else ""


def _what_was_guessed(guessed: list[tuple[str, int]]) -> list[tuple[str, str, int]]:
    if len(guessed) < 2:
        return []
    numbers = [str(rank) for _, rank in guessed]
    listed = ", ".join(numbers[:-1][:8]) + (", …" if len(numbers) > 9 else "")
    what = f"{len(guessed)} traces do not say their rank: taken as ranks {listed} and {numbers[-1]}"
    return [(", ".join(name for name, _ in guessed[:3]), what, 1)]


def _start(found: Discovered, given: dict[int, Given]) -> int:
    """The earliest first event; ranks that begin days apart do not share a clock."""
    first = {
        (str(seen.found.paths[0].resolve()), seen.found.run): seen.found.first_unix_ns
        for seen in found.traces
        if seen.found.first_unix_ns is not None
    }
    of_rank = {}
    for rank, its in given.items():
        known = [first[at] for s in its.sources if (at := (s.paths[0], s.run)) in first]
        if known:
            of_rank[rank] = min(known)
    start = min(of_rank.values(), default=0)
    for rank, begins in of_rank.items():
        given[rank].has_own_clock = begins - start > _ONE_JOB_NS
    return start


def relative_to_run(given: dict[int, Given], run: Path) -> None:
    """Files that were unpacked into a run are stored relative to its ranks, as the run may be
    moved.
    """
    below = f"{run.resolve()}/"
    for rank in given.values():
        for source in rank.sources:
            source.paths = [
                f"../../{path.removeprefix(below)}" if path.startswith(below) else path
                for path in source.paths
            ]
