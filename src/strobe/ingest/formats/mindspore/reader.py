"""MindSpore's profiler without an Ascend's text output: the host's operators, MindData's queues,
the folder that MindInsight read (step trace, timeline, communication), the runtime profiler.

Not read: totals of the same (op_detail_info, op_type_info, aicore_intermediate, flops), parallel
strategies, the memory tracker (its times are no clock), summaries and graphs.
"""

import re
from dataclasses import replace
from pathlib import Path

from strobe.errors import UnreadableTrace
from strobe.ingest.formats import compressed
from strobe.ingest.formats.ascend.folder import (
    Profile,
    first_unix_ns,
    loaded,
    plain_name,
    profiles,
    rank_of,
)
from strobe.ingest.formats.mindspore import gpu as mindspore_gpu
from strobe.ingest.formats.mindspore import host as mindspore_host
from strobe.ingest.formats.mindspore import old as mindspore_old
from strobe.ingest.formats.mindspore import runtime as mindspore_runtime
from strobe.ingest.formats.mindspore.files import (
    ANCHORS,
    MINDDATA,
    NEEDLESS,
    RUNTIME,
    by_kind,
    kind_by_content,
    kind_by_name,
    number_of,
)
from strobe.ingest.importing import sources
from strobe.ingest.importing.sources import Found, Peek, Source
from strobe.ingest.trace.spans import Vocabulary
from strobe.ingest.trace.trace import About, Trace

NAME = "MindSpore profiler"

_HOST_AND_PID = re.compile(r"(.+)_(\d{1,9})_\d{14,20}_ascend_ms$")
_PEEK_BYTES = 64 << 10
_SINCE_1970 = re.compile(rb"\b1\d{18}\b")

Places = dict[tuple[Path, int], list[Path]]  # files by their folder and the number in their names


def claim(folder: Path) -> list[Found]:
    roots = [profile for profile in profiles(folder) if profile.is_readable]
    inside = {path for profile in roots for path in (*profile.paths, *profile.others)}
    places: Places = {}
    for path in sources.files_below(folder):
        if path not in inside and kind_by_name(path):
            places.setdefault((path.parent, number_of(path)), []).append(path)
    for (place, _), paths in places.items():
        if any(profile.root.parent == place and profile.device for profile in roots):
            # The same events are in the profile.
            paths[:] = [path for path in paths if kind_by_name(path) in MINDDATA]
    found = [_of_profile(profile) for profile in roots if profile.is_of_host_only]
    return found + _of_places({key: paths for key, paths in places.items() if paths})


def recognise(peek: Peek) -> Found | None:
    if kind_by_content(peek.head) is None:
        return None
    alone = Profile(peek.path.parent, host=[peek.path])
    return Found((peek.path,), rank_of(alone), first_unix_ns(alone))


def read(source: Source, words: Vocabulary) -> Trace:
    paths = [Path(path) for path in source.paths]
    files = by_kind(paths)
    trace = Trace(words, is_unix=_is_unix(files), about=_about(paths))
    if RUNTIME in files:
        mindspore_runtime.read(files[RUNTIME], source.number, trace)
    _read_device(files, source.number, trace)
    mindspore_host.read(paths, source.number, trace)
    return trace


def _of_profile(profile: Profile) -> Found:
    needless = (*profile.device, *profile.others)
    paths = (*profile.host, *profile.about)
    return Found(paths, rank_of(profile), first_unix_ns(profile), ignored=needless)


def _of_places(places: Places) -> list[Found]:
    """What the analysis of MindData made of a file is left out where that file is there."""
    told = {
        number for (_, number), paths in places.items() if "pipeline_profiling" in by_kind(paths)
    }
    found: dict[tuple[Path, int], Found] = {}
    retold: list[Path] = []
    for (place, number), paths in places.items():
        repeats = [
            p for p in paths if kind_by_name(p) == "minddata_pipeline_raw" and number in told
        ]
        kept = [path for path in paths if path not in repeats]
        needless = [path for path in place.iterdir() if NEEDLESS.match(plain_name(path))]
        kept.sort(key=lambda path: (kind_by_name(path) not in ANCHORS, path.name))
        if kept and kind_by_name(kept[0]) in ANCHORS:
            about = [path for path in kept if kind_by_name(path) == "profiler_info"]
            profile = Profile(place, host=kept, about=about)
            is_numbered = kind_by_name(kept[0]) != RUNTIME
            rank = rank_of(profile) if is_numbered else rank_of(Profile(place))
            ignored = (*needless, *repeats)
            found[place, number] = Found(tuple(kept), rank, _first_unix_ns(profile), ignored)
        elif repeats and not kept:
            retold += [*needless, *repeats]
    traces = list(found.values())
    if traces and retold:
        traces[0] = replace(traces[0], ignored=(*traces[0].ignored, *retold))
    return traces


def _first_unix_ns(profile: Profile) -> int | None:
    return first_unix_ns(profile) if _is_unix(by_kind(profile.host)) else None


def _read_device(files: dict[str, Path], number: int, trace: Trace) -> None:
    words, said = trace.words, trace.said
    kernels, part = None, None
    if path := files.get("output_timeline_data"):
        device = f"npu:{number_of(path)}"
        kernels, part = mindspore_old.read_timeline(path, device, number, words, said)
        trace.spans.append(kernels)
    if path := files.get("activity_execute_timestamp"):
        device = f"cuda:{number_of(path)}"
        trace.spans.append(mindspore_gpu.kernels(path, device, number, words, said))
    step_trace = None
    if path := files.get("step_trace_raw"):
        device, step_trace = f"npu:{number_of(path)}", mindspore_old.read_steps(path, said)
    elif path := files.get("step_trace_profiling"):
        device, step_trace = f"cuda:{number_of(path)}", mindspore_gpu.steps(path, said)
    if step_trace is not None and len(step_trace.step):
        trace.spans += mindspore_old.collective_spans(step_trace, device, number, words)
        trace.steps = mindspore_old.steps(step_trace, kernels, part, said)
        if path := files.get("hccl_raw"):
            trace.counters += mindspore_old.costs(path, step_trace, words, said)


def _is_unix(files: dict[str, Path]) -> bool:
    """Whether the events are on the wall clock; MindSpore 2.0 counts from the machine's start."""
    kinds = ("cpu_op_execute_timestamp", RUNTIME)
    return any(_SINCE_1970.search(_beginning(files[kind])) for kind in kinds if kind in files)


def _beginning(path: Path) -> bytes:
    try:
        return compressed.beginning(path, _PEEK_BYTES)
    except UnreadableTrace:
        return b""


def _about(paths: list[Path]) -> About:
    said = {k: v for p in paths if kind_by_name(p) == "profiler_info" for k, v in loaded(p).items()}
    matches = [_HOST_AND_PID.match(part) for path in paths for part in path.parts]
    named = next(filter(None, matches), None)
    world, version = said.get("rank_size"), said.get("ms_version")
    return About(
        world_size=world if type(world) is int and 0 < world < 2**31 else None,
        host=named.group(1) if named else "", pid=int(named.group(2)) if named else 0,
        frameworks={"mindspore": version if isinstance(version, str) else ""},
    )  # fmt: skip
