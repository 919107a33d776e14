"""The folders that Ascend's profilers leave, and what lies in them.

    HOST_PID_TIME_ascend_pt/                          torch_npu; MindSpore: _ascend_ms
        profiler_info_RANK.json, profiler_metadata.json
        ASCEND_PROFILER_OUTPUT/trace_view.json, kernel_details.csv, ...
        FRAMEWORK/                                    MindSpore: the host's operators
        PROF_.../                                     the raw recording
    PROF_.../mindstudio_profiler_output/              CANN's own msprof, exported

A folder may lack any of these files.
"""

import json
import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from strobe.errors import UnreadableTrace
from strobe.ingest.formats import compressed
from strobe.ingest.formats.ascend.numbers import NEVER, moments

OUTPUT = "ASCEND_PROFILER_OUTPUT"
_MSPROF_OUTPUT = "mindstudio_profiler_output"
_HOST = "FRAMEWORK"
ROOT = re.compile(r"_ascend_(pt|ms)$")
_RAW = re.compile(r"PROF_\w+$")
_PACKED = re.compile(r"\.(?:gz|zst)$")
# What msprof calls the files that torch_npu and MindSpore make of them.
_MSPROF_NAMES = (
    (re.compile(r"msprof_(?:slice_\d+_)?\d+\.json$"), "trace_view.json"),
    (re.compile(r"op_summary_(?:slice_\d+_)?\d+\.csv$"), "kernel_details.csv"),
    (re.compile(r"npu_module_mem_\d+\.csv$"), "npu_module_mem.csv"),
)
# Read here; the others of the folder hold totals of the same.
DEVICE_FILES = (
    "trace_view.json", "kernel_details.csv", "communication.json", "communication_matrix.json",
    "step_trace_time.csv", "memory_record.csv", "operator_memory.csv", "npu_module_mem.csv",
)  # fmt: skip
_ABOUT_FILES = re.compile(r"profiler_(?:info(?:_\d+)?|metadata)\.json$")
_HOST_FILES = re.compile(
    r"(?:cpu|gpu)_(?:op_execute_timestamp|framework|ms_memory_record)_\d+\.txt$"
    r"|(?:dataset_iterator|device_queue)_profiling_\d+\.txt$"
    r"|(?:pipeline_profiling|minddata_cpu_utilization)_\d+\.json$|minddata_pipeline_raw_\d+\.csv$"
)
# Of the folder that MindInsight read, with CANN's own inside.
_OLD_FILES = re.compile(r"step_trace_raw_\d+_detail_time\.csv$|output_timeline_data_\d+\.txt$")
_RANK_IN_FILE = re.compile(r"_(\d+)\.(?:json|txt|csv)(?:\.gz|\.zst)?$")
_RANK_IN_FOLDER = re.compile(r"rank[-_]?(\d+)", re.IGNORECASE)
_MOMENT = re.compile(rb"\b(\d{16}\.\d{1,6}|\d{19})\b")
_PEEK_BYTES = 64 << 10
_SMALL_BYTES = 4 << 20


@dataclass
class Profile:
    """One recording of one rank."""

    root: Path
    flavour: str = ""  # pt, ms, or nothing for CANN's own
    device: list[Path] = field(default_factory=list)  # what DEVICE_FILES names
    about: list[Path] = field(default_factory=list)
    host: list[Path] = field(default_factory=list)
    databases: list[Path] = field(default_factory=list)
    others: list[Path] = field(default_factory=list)

    @property
    def paths(self) -> tuple[Path, ...]:
        return (*self.device, *self.host, *self.about)

    @property
    def is_readable(self) -> bool:
        return bool(self.device or self.host)

    @property
    def is_of_host_only(self) -> bool:
        """MindSpore without an NPU: its timeline repeats what the host's files say better."""
        names = {plain_name(path) for path in self.device}
        told = any("_op_execute_timestamp_" in path.name for path in self.host)
        return bool(self.host) and names <= ({"trace_view.json"} if told else set())


def profiles(folder: Path) -> list[Profile]:
    """All recordings in a folder, or the one that the folder itself belongs to."""
    if folder.name in (OUTPUT, _MSPROF_OUTPUT, _HOST) and ROOT.search(folder.parent.name):
        return [_profile(folder.parent, (folder.name,))]
    if folder.name in (OUTPUT, _MSPROF_OUTPUT):
        return [_profile(folder.parent, (folder.name,))]
    found = []
    for place, folders, _ in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        if _is_root(Path(place), folders):
            found.append(_profile(Path(place)))
            folders.clear()
    return [profile for profile in found if not _is_told_beside(profile, found)]


def plain_name(path: Path) -> str:
    """What a file is called in ASCEND_PROFILER_OUTPUT, unpacked."""
    name = _PACKED.sub("", path.name)
    return next((known for pattern, known in _MSPROF_NAMES if pattern.match(name)), name)


def rank_of(profile: Profile) -> int | None:
    """By what the files say, then by what they and their folders are called."""
    for path in profile.about:
        said = loaded(path)
        args = said.get("distributed_args")
        inner = args.get("rank") if isinstance(args, dict) else None
        for value in (said.get("rank_id"), inner):
            if (text := str(value)).isdecimal() and len(text) < 9:
                return int(text)
    named = [_RANK_IN_FILE.search(path.name) for path in (*profile.about, *profile.host)]
    near = [_RANK_IN_FOLDER.search(path.name) for path in (profile.root, profile.root.parent)]
    said_by = next((match for match in (*named, *near) if match), None)
    return int(said_by.group(1)[:9]) if said_by else None


def first_unix_ns(profile: Profile) -> int | None:
    """When the recording began, or else an early moment of it, if it is on the wall clock."""
    if began := started_ns(profile.about):
        return began
    early = [when for path in (*profile.device, *profile.host) if (when := _early(path))]
    return min(early, default=None)


def started_ns(about: list[Path]) -> int | None:
    """When a recording began, by profiler_info_RANK.json; since 1970."""
    starts = [start for path in about if (start := _started(loaded(path)))]
    return min(starts, default=None)


def loaded(path: Path, largest: int = _SMALL_BYTES) -> dict[str, Any]:
    """A small JSON object; empty where it is none."""
    try:
        text = compressed.beginning(path, largest).decode("utf-8", "replace")
        found = json.loads(text)
    except (UnreadableTrace, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _is_told_beside(profile: Profile, others: list[Profile]) -> bool:
    """Whether MindSpore's own output lies beside CANN's, or text beside what is raw."""
    place = profile.root.parent
    if profile.flavour and profile.is_readable:
        return False
    if any(p.is_readable and p.root.parent == place and p is not profile for p in others
           if p.flavour or not profile.is_readable):  # fmt: skip
        return True
    return not profile.flavour and any(_OLD_FILES.match(name) for name in os.listdir(place))


def _is_root(place: Path, folders: list[str]) -> bool:
    named = ROOT.search(place.name) or _RAW.match(place.name)
    return bool(named) or OUTPUT in folders


def _profile(root: Path, only: tuple[str, ...] = ()) -> Profile:
    flavour = ROOT.search(root.name)
    profile = Profile(root, flavour.group(1) if flavour else "")
    outputs = {OUTPUT, _MSPROF_OUTPUT} if not only else set(only)
    for place, folders, names in os.walk(root):
        folders.sort()
        for name in sorted(names):
            _put(profile, Path(place) / name, outputs)
    # The timeline first: it is what an import is told by.
    profile.device.sort(key=lambda path: (DEVICE_FILES.index(plain_name(path)), path.name))
    if any(path.parent.name == OUTPUT for path in profile.device):
        profile.device = [p for p in profile.device if p.parent.name == OUTPUT]
    return profile


def _put(profile: Profile, path: Path, outputs: set[str]) -> None:
    name = plain_name(path)
    if path.is_symlink() or not path.is_file():
        return
    if path.parent.name in outputs and name in DEVICE_FILES:
        profile.device.append(path)
    elif _ABOUT_FILES.match(name) and path.parent == profile.root:
        profile.about.append(path)
    elif path.parent.name in (_HOST, OUTPUT) and _HOST_FILES.match(name):
        profile.host.append(path)
    else:
        profile.others.append(path)
        if name.endswith(".db") and name.startswith(("ascend_", "msprof_")):
            profile.databases.append(path)


def _started(info: dict[str, Any]) -> int | None:
    """By the clock that only runs on, from its end back to its start."""
    start, end = info.get("start_info"), info.get("end_info")
    if not isinstance(start, dict) or not isinstance(end, dict):
        return None
    told = [
        _clock(part, name)
        for part, name in (
            (end, "collectionTimeEnd"),
            (end, "MonotonicTimeEnd"),
            (start, "start_monotonic"),
        )
    ]
    began = told[0] - (told[1] - told[2])
    return began if min(told) > 0 and 10**18 < began <= told[0] else None


def _clock(told: dict[str, Any], name: str) -> int:
    """A moment in nanoseconds; 0 where none is told."""
    value = told.get(name)
    return value if type(value) is int and 0 < value < 2**62 else 0


def offset_ns(about: list[Path]) -> int | None:
    """From the clock that runs since the machine began to the time since 1970."""
    for path in about:
        end = loaded(path).get("end_info")
        if isinstance(end, dict) and _clock(end, "MonotonicTimeEnd"):
            wall = _clock(end, "collectionTimeEnd")
            return wall - _clock(end, "MonotonicTimeEnd") if wall else None
    return None


def _early(path: Path) -> int | None:
    """The smallest moment near the beginning of a file."""
    try:
        head = compressed.beginning(path, _PEEK_BYTES)
    except UnreadableTrace:
        return None
    texts = {found.decode() for found in _MOMENT.findall(head)}
    ns = [int(text) for text in texts if "." not in text]
    us = moments([text for text in texts if "." in text]).tolist() if texts else []
    return min(
        (when for when in (*ns, *us) if when != NEVER and 10**18 < when < 4e18), default=None
    )
