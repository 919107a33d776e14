"""Which files of a folder are one profile: plugins/profile/<time>/<host>.xplane.pb.

Every host has a rank of its own, in the order of their names (w-2 before w-10). Several profiles of
one host are windows of one rank, unless they overlap in time: then they are of several processes.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from strobe.errors import UnreadableTrace
from strobe.ingest.formats.xplane.file import Space, XFile, outline
from strobe.ingest.formats.xplane.wire import Broken, header
from strobe.ingest.importing.sources import Found, files_below, peek

SUFFIX = ".xplane.pb"
TASK_PLANE = "Task Environment"
SINCE_1970_NS = 10**18  # counts of other clocks are smaller
LATEST_NS = 2**61

_KNOWN_PLANE = re.compile(rb"/(?:host|device|virtualdevice):|Task Environment|Host CPUs|#Chip")
# What is written beside a profile from the same data: by JAX, and by XProf when it was looked at.
_DERIVED = re.compile(
    r"perfetto_trace\.json(?:\.gz)?\Z|.*\.SSTABLE\Z|.*\.hlo_proto\.pb\Z"
    r"|.*(?:op_stats|kernel_stats|overview_page|input_pipeline|memory_profile|tf_stats|cache_version)"
    r".*\Z|events\.out\.tfevents\..*"
)


_RANK = re.compile(r"(?<![a-z])rank[-_ ]?\d", re.IGNORECASE)


class Profile(NamedTuple):
    path: Path
    host: str
    start_ns: int  # since 1970; 0 if unknown
    stop_ns: int


def is_space(head: bytes) -> bool:
    """Whether this is the beginning of an XSpace: a plane with a name that planes have."""
    try:
        number, wire, _, start, _ = header(head, 0)
        if (number, wire) != (1, 2):
            return False
        while True:
            number, wire, _, begin, after = header(head, start)
            if number == 2 and wire == 2:
                return bool(_KNOWN_PLANE.match(head[begin : min(after, begin + 64)]))
            if number != 1 or wire != 0:
                return False
            start = after
    except Broken:
        return False


def found_in(folder: Path) -> list[Found]:
    """Every profile below a folder, with its rank."""
    files = list(files_below(folder))
    names = (SUFFIX, f"{SUFFIX}.gz", f"{SUFFIX}.zst")
    profiles = [_profile(p) for p in files if p.name.endswith(names) and is_space(peek(p).head)]
    # A name that tells the rank is left to tell it.
    unnamed = [p for p in profiles if not _names_rank(p.path.relative_to(folder))]
    ranked: list[tuple[int | None, Profile]] = [*_ranked(unnamed)]
    several = len({rank for rank, _ in ranked}) > 1 or len(unnamed) < len(profiles)
    ranked += [(None, profile) for profile in profiles if profile not in unnamed]
    return [
        Found(
            (profile.path,),
            rank if several else None,
            profile.start_ns or None,
            tuple(path for path in files if _is_derived(path, profile)),
        )
        for rank, profile in ranked
    ]


def host_of(path: Path) -> str:
    """The part of a file's name that names its host."""
    return re.split(r"\.xplane\.pb|\.trace\.json", path.name)[0]


def _is_derived(path: Path, profile: Profile) -> bool:
    if path.parent != profile.path.parent:
        return False
    is_trace = ".trace.json" in path.name and host_of(path) == profile.host
    return is_trace or bool(_DERIVED.match(path.name))


def _names_rank(path: Path) -> bool:
    return any(_RANK.search(part) for part in path.parts)


def started(space: Space) -> tuple[int, int]:
    """When a profile began and ended, since 1970; 0 where it does not say."""
    times = [space.stat(TASK_PLANE, f"profile_{word}_time") for word in ("start", "stop")]
    known = [t if type(t) is int and SINCE_1970_NS < t < LATEST_NS else 0 for t in times]
    return known[0], known[1]


def started_file(path: Path) -> tuple[int, int]:
    try:
        with XFile(path) as file:
            return started(outline(file, frozenset([TASK_PLANE])))
    except UnreadableTrace:
        return 0, 0


def _profile(path: Path) -> Profile:
    start, stop = started_file(path)
    return Profile(path, host_of(path), start, stop)


def _ranked(profiles: list[Profile]) -> Iterator[tuple[int, Profile]]:
    hosts: dict[str, list[Profile]] = {}
    for profile in profiles:
        hosts.setdefault(profile.host, []).append(profile)
    rank = 0
    for host in sorted(hosts, key=_natural):
        ends: list[int] = []  # of the last profile of each process of this host
        for profile in sorted(hosts[host], key=lambda p: (p.start_ns, p.path)):
            free = (n for n, end in enumerate(ends) if end <= profile.start_ns)
            process = next(free, len(ends))
            ends[process : process + 1] = [max(profile.stop_ns, profile.start_ns)]
            yield rank + process, profile
        rank += len(ends)


def _natural(name: str) -> list[tuple[int, str]]:
    """Numbers in names by their value."""
    parts = re.split(r"(\d{1,18})", name)
    return [(int(part), "") if part.isdigit() else (-1, part) for part in parts]
