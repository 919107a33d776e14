"""The JSON of MegEngine's static graph: `trace(profiling=True).get_profile()`, `load_and_run`.

It holds the last execution of a graph: when each operator ran on each thread and each comp node
(start, kern: its first kernel starts, end), its shapes, computation and memory. An operator becomes
an event of the host, and below it a wait up to `kern`; on a device a wait and a kernel.

Left out: memory chunks and addresses, how shapes were inferred, operators that did not run.
"""

import re
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import msgspec
import numpy as np

from strobe.ingest.formats.kinds import KIND
from strobe.ingest.formats.megengine import names as names_of
from strobe.ingest.formats.megengine.document import Document
from strobe.ingest.trace.codes import Codes
from strobe.ingest.trace.problems import Problems
from strobe.ingest.trace.spans import Spans, Track, Vocabulary

WAIT = "wait for inputs"
_LONGEST_S = 1e9
_NS_PER_S = 1_000_000_000
_NO_SCOPE = ("backward", "step", "clear_grad")
_SCOPE = re.compile(r"([A-Za-z_][\w-]*(?:\[\d+\])?(?:\.[\w-]+(?:\[\d+\])?)*)\.[\w-]+(?=[(\[:]|\Z)")
_NUMBER = re.compile(r"\[\d+\]")
_ARGS = ("call", "external", "node", "dims", "dtypes", "outputs", "concrete", "flops", "bytes",
         "scope", "backward", "on_device", "stream", "direction", "operation")  # fmt: skip


class Times(NamedTuple):
    """Of one operator in one place, in nanoseconds; start <= kern <= end."""

    place: str
    start: int
    kern: int
    end: int


@dataclass
class Operator:
    number: int
    id: str
    name: str
    type: str
    inputs: list[str]
    host: list[Times] = field(default_factory=list)
    device: list[Times] = field(default_factory=list)
    footprint: dict[str, Any] = field(default_factory=dict)


def spans(document: Document, words: Vocabulary, source_number: int) -> Spans:
    """Everything that ran, the host from its first operator on."""
    operators = _operators(document)
    said, file = document.said, document.name
    _move(operators, "host", lambda _: -min(t.start for o in operators for t in o.host))
    offsets = _device_offsets(operators)
    _move(operators, "device", lambda place: offsets[place])
    if any(o.host for o in operators) and offsets:
        said.add(
            file,
            "the clocks of host and device have no common zero in this file: the device was"
            " placed so that no kernel starts before its operator on the host",
        )
    rows = _Rows(words, source_number)
    dtypes = _Dtypes(document)
    for operator in operators:
        rows.add(operator, dtypes.of(operator.inputs), said, file)
    return rows.spans()


def _operators(document: Document) -> list[Operator]:
    graph, host = document.section("graph_exec", "operator"), document.section("profiler", "host")
    device = document.section("profiler", "device")
    footprints = document.section("profiler", "opr_footprint")
    if "host" not in document.sections("profiler"):
        document.say("no times of the host in it")
    found: list[Operator] = []
    for key, raw in graph.items():
        entry = document.decoded(raw)
        operator = Operator(
            len(found) + 1, str(entry.get("id", key)), str(entry.get("name", key)),
            str(entry.get("type") or "unknown"), _texts(entry.get("input")),
            _times(document, host.get(key)), _times(document, device.get(key)),
            document.decoded(footprints.get(key)),
        )  # fmt: skip
        if operator.host or operator.device:
            found.append(operator)
    strangers = {*host, *device} - {*graph}
    document.say("operators have times and the graph does not name them: they were left out",
                 len(strangers))  # fmt: skip
    return found


def _times(document: Document, raw: msgspec.Raw | None) -> list[Times]:
    found = []
    for place, entry in document.decoded(raw).items():
        given = entry if isinstance(entry, dict) else {}
        values: list[Any] = [given.get(name) for name in ("start", "kern", "end")]
        if all(isinstance(v, int | float) and abs(v) < _LONGEST_S for v in values):
            start, kern, end = (round(value * _NS_PER_S) for value in values)
            if start <= end:
                found.append(Times(place, start, min(max(kern, start), end), end))
                continue
        document.say("a time of an operator is no number, or it ends before it starts: it was"
                     " left out")  # fmt: skip
    return found


def _texts(found: Any) -> list[str]:
    return [str(item) for item in found] if isinstance(found, list) else []


def _move(operators: list[Operator], side: str, by_ns: Any) -> None:
    for operator in operators:
        moved = [
            t._replace(start=t.start + by, kern=t.kern + by, end=t.end + by)
            for t in getattr(operator, side)
            for by in (by_ns(t.place),)
        ]
        setattr(operator, side, moved)


def _device_offsets(operators: list[Operator]) -> dict[str, int]:
    """How far each device must move so that nothing on it starts before its operator's kernels."""
    offsets: dict[str, int] = {}
    firsts: dict[str, int] = {}
    for operator in operators:
        host = min((t.kern for t in operator.host), default=None)
        for t in operator.device:
            firsts[t.place] = min(firsts.get(t.place, t.start), t.start)
            if host is not None:
                offsets[t.place] = max(offsets.get(t.place, host - t.kern), host - t.kern)
    return {place: offsets.get(place, -first) for place, first in firsts.items()}


@dataclass
class _Dtypes:
    """The element types of variables, where the memory plan tells them."""

    document: Document
    known: dict[str, str | None] = field(default_factory=dict)

    def of(self, inputs: list[str]) -> list[str | None]:
        return [self._one(name) for name in inputs]

    def _one(self, name: str) -> str | None:
        if name not in self.known:
            entry = self.document.decoded(self.document.section("graph_exec", "var").get(name))
            plan = _object(entry, "mem_plan")
            dtype = _object(plan, "layout").get("dtype")
            self.known[name] = dtype if isinstance(dtype, str) else None
        return self.known[name]


@dataclass
class _Rows:
    words: Vocabulary
    window: int
    threads: Codes[str] = field(default_factory=Codes)
    fixed: list[tuple[int, int, int, int, int]] = field(default_factory=list)
    args: dict[str, list[int]] = field(default_factory=lambda: {name: [] for name in _ARGS})

    def add(self, operator: Operator, dtypes: list[str | None], said: Problems, file: str) -> None:
        given = self._arguments(operator, dtypes, said, file)
        name = self.words.names[operator.type]
        wait = self.words.names[WAIT]
        # Host times may be missing, and yet shapes and work belong to an operator of the host.
        host = operator.host or [t._replace(kern=t.start, end=t.start, place="") for t in
                                 operator.device[:1]]  # fmt: skip
        for t in host:
            track = self._host_track(t.place)
            self._row(t.start, t.end - t.start, "op", name, track, given)
            if t.kern > t.start:
                self._row(t.start, t.kern - t.start, "sync", wait, track, {})
        for t in operator.device:
            where = names_of.place(t.place)
            track = self._device_track(t.place, where)
            link = {"external": operator.number, "on_device": 1, "stream": where.stream,
                    "scope": given.get("scope", -1)}  # fmt: skip
            if t.kern > t.start:
                self._row(t.start, t.kern - t.start, "sync", wait, track, link)
            kind = names_of.device_kind(operator.type)
            self._row(t.kern, t.end - t.kern, kind, name, track,
                      {**link, **self._moved(operator, given)})  # fmt: skip

    def spans(self) -> Spans:
        columns = np.array(self.fixed, dtype=np.int64).reshape(-1, 5).T
        args = {name: np.array(column, dtype=np.int64) for name, column in self.args.items()}
        args["window"] = np.full(columns.shape[1], self.window, dtype=np.int64)
        ts_ns, dur_ns, kind, name, track = columns
        return Spans(
            ts_ns, dur_ns, kind.astype(np.int32), name.astype(np.int32), track.astype(np.int32),
            args,
        )  # fmt: skip

    def _row(
        self, ts_ns: int, dur_ns: int, kind: str, name: int, track: int, args: dict[str, int]
    ) -> None:
        self.fixed.append((ts_ns, dur_ns, KIND[kind], name, track))
        for arg, column in self.args.items():
            column.append(args.get(arg, -1))

    def _arguments(
        self, operator: Operator, dtypes: list[str | None], said: Problems, file: str
    ) -> dict[str, int]:
        texts, footprint = self.words.texts, operator.footprint
        args = {"external": operator.number, "node": texts[operator.name]}
        if operator.id.isdecimal() and len(operator.id) < 19:
            args["call"] = int(operator.id)
        for arg, key in (("dims", "in_shapes"), ("outputs", "out_shapes")):
            if isinstance(footprint.get(key), list):
                args[arg] = texts[_json(footprint[key])]
        if any(dtypes):
            args["dtypes"] = texts[_json(dtypes)]
        concrete = dict(_object(footprint, "param"))
        if footprint.get("in_layouts"):
            concrete["in_layouts"] = footprint["in_layouts"]
        if concrete:
            args["concrete"] = texts[_json(concrete)]
        args["flops"] = self._counted(footprint, "computation", said, file)
        args["bytes"] = self._counted(footprint, "memory", said, file)
        return {**args, **self._belongs(operator.name)}

    def _counted(self, footprint: dict[str, Any], key: str, said: Problems, file: str) -> int:
        value = footprint.get(key)
        if isinstance(value, int | float) and 0 <= value < 2**63:
            return int(value)
        if value is not None:
            said.add(file, f"the {key} of an operator is no number that can be kept")
        return -1

    def _belongs(self, name: str) -> dict[str, int]:
        """The module and the direction, by the scopes that MegEngine puts before a name."""
        scope = _SCOPE.match(name)
        path = scope.group(1) if scope else ""
        first = _NUMBER.sub("", path.split(".")[0])
        if first == "backward":
            return {"backward": 1}
        return {"scope": self.words.scopes[path]} if path and first not in _NO_SCOPE else {}

    def _moved(self, operator: Operator, given: dict[str, int]) -> dict[str, int]:
        """What a copy or a collective says of itself on a device."""
        texts = self.words.texts
        if operator.type in names_of.COPIES:
            # The footprint of a copy between devices counts what it reads and what it writes.
            sides = 1 if operator.type == "Host2DeviceCopy" else 2
            moved = given["bytes"] // sides if given["bytes"] >= 0 else -1
            return {"bytes": moved, "direction": texts[names_of.COPIES[operator.type]]}
        if operator.type in names_of.COLLECTIVES:
            mode = _object(operator.footprint, "param").get("mode")
            return {"operation": texts[str(mode or operator.type)]}
        return {}

    def _host_track(self, place: str) -> int:
        shown = place or "host (no times)"
        track = Track("cpu", self.window, self.threads[shown])
        self.words.track_names[track] = shown
        return self.words.tracks[track]

    def _device_track(self, place: str, where: names_of.Place) -> int:
        track = Track(where.device, None, where.stream)
        self.words.track_names.setdefault(track, names_of.logical(place))
        return self.words.tracks[track]


def _object(found: dict[str, Any], key: str) -> dict[str, Any]:
    inner = found.get(key)
    return inner if isinstance(inner, dict) else {}


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode("utf-8", "replace")
