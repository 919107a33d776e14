"""The window traces of a rank: torch.profiler's files, with the names of modules put back."""

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from strobe.ingest import classify, kineto
from strobe.ingest.classify import KIND, MODULE_NAME
from strobe.ingest.codes import Array, mapped
from strobe.ingest.kineto_json import TEXTS
from strobe.ingest.problems import Problems
from strobe.ingest.spans import Spans, Track, Vocabulary

_TRACE_FILE = re.compile(r"window-(\d+)\.trace\.json(\.gz)?\Z")


@dataclass
class Window:
    """One window: its spans, and its memory instants with `thread` as a track number."""

    number: int
    spans: Spans
    memory: kineto.Memory


def files(raw: Path) -> dict[int, Path]:
    """The trace file of each window. Of a file and its compressed copy the plain one is whole:
    it is deleted only once the copy is complete."""
    found: dict[int, Path] = {}
    for path in sorted(raw.iterdir(), reverse=True):  # .json.gz, then .json over it
        match = _TRACE_FILE.match(path.name)
        if match:
            found[int(match.group(1))] = path
    return dict(sorted(found.items()))


def read(
    path: Path, number: int, started_unix_ns: int, words: Vocabulary, said: Problems
) -> Window:
    """A window in run time, its texts entered into the rank's vocabulary."""
    trace = kineto.read(path)
    said.update(trace.problems)
    names = _names(path, said)
    tracks = _track_table(trace, words)
    kinds = classify.kinds(trace)
    device = classify.on_device(trace)
    events = trace.events
    track = mapped(events.thread, tracks)
    track = np.where(device, _device_tracks(trace, device, words), track)
    scope = _module_scopes(trace, names, words, said)
    texts = [words.texts[text] for text in trace.texts]
    args = {
        name: mapped(column, texts) if name in TEXTS else column
        for name, column in events.args.items()
    }
    args["module"] = np.where(kinds == KIND["module"], mapped(events.name, scope), -1)
    args["window"] = np.full(len(kinds), number, dtype=np.int64)
    args["on_device"] = np.where(device, 1, -1)
    shown = [words.names[_shown_name(name, names)] for name in trace.names]
    ts_ns = events.ts_ns - started_unix_ns
    spans = Spans(ts_ns, events.dur_ns, kinds, mapped(events.name, shown), track, args)
    memory = trace.memory
    memory.ts_ns = memory.ts_ns - started_unix_ns
    memory.thread = mapped(memory.thread, tracks)
    return Window(number, spans, memory)


def _names(path: Path, said: Problems) -> dict[str, dict[str, Any]]:
    """What the recorder called things: modules by number, user names that torch would garble."""
    file = path.with_name(path.name.split(".")[0] + ".names.json")
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
        return {key: dict(found.get(key) or {}) for key in ("modules", "names")}
    except (OSError, ValueError, TypeError, AttributeError) as error:
        said.add(file.name, f"the names of modules are missing: {error}")
        return {"modules": {}, "names": {}}


def _shown_name(name: str, names: dict[str, dict[str, Any]]) -> str:
    module = MODULE_NAME.match(name)
    if module:
        entry = names["modules"].get(module.group(1))
        return str(entry.get("class", name)) if isinstance(entry, dict) else name
    return str(names["names"].get(name, name))


def _module_scopes(
    trace: kineto.Trace, names: dict[str, dict[str, Any]], words: Vocabulary, said: Problems
) -> list[int]:
    """For each name of the trace the number of the module path it stands for, or -1."""
    scopes = []
    for name in trace.names:
        module = MODULE_NAME.match(name)
        entry = names["modules"].get(module.group(1)) if module else None
        if isinstance(entry, dict) and isinstance(entry.get("path"), str):
            scopes.append(words.scopes[entry["path"]])
        else:
            scopes.append(-1)
            if module and names["modules"]:
                said.add("window names", "a module was recorded without its name")
    return scopes


def _track_table(trace: kineto.Trace, words: Vocabulary) -> list[int]:
    table = []
    for pid, tid in trace.threads:
        track = Track("cpu", _whole(pid), _whole(tid))
        table.append(words.tracks[track])
        name = trace.thread_names.get((pid, tid)) or f"thread {tid}"
        words.track_names.setdefault(track, name)
    return table


def _device_tracks(trace: kineto.Trace, device: Array, words: Vocabulary) -> Array:
    """Streams by the device and stream arguments; what lacks them, by its pid and tid."""
    pids = np.array([_whole(pid) or 0 for pid, _ in trace.threads] or [0])
    tids = np.array([_whole(tid) or 0 for _, tid in trace.threads] or [0])
    thread = trace.events.thread
    args = trace.events.args
    number = np.where(args["device"] >= 0, args["device"], pids[thread])
    stream = np.where(args["stream"] >= 0, args["stream"], tids[thread])
    result = np.full(len(thread), -1, dtype=np.int64)
    for where, which in {
        (int(n), int(s)) for n, s in zip(number[device], stream[device], strict=True)
    }:
        track = Track(f"cuda:{where}", None, which)
        result[device & (number == where) & (stream == which)] = words.tracks[track]
        words.track_names.setdefault(track, f"stream {which}")
    return result


def _whole(value: int | str) -> int | None:
    try:
        number = int(value)
    except ValueError:
        return None
    return number if abs(number) < 2**62 else None
