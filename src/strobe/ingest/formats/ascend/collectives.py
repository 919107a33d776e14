"""Collectives of an NPU, from whichever files tell of them: each is one span.

The timeline knows their exact times and the elements, kernel_details.csv their times and steps,
communication.json their groups and what went over the links. All call them by the same names.
"""

import json
import re
from typing import Any, NamedTuple

import numpy as np

from strobe.ingest.formats.ascend.communication import Collective
from strobe.ingest.formats.ascend.kernels import Kernels
from strobe.ingest.formats.ascend.spans import Place, Placed, appended
from strobe.ingest.formats.ascend.steps import step_number
from strobe.ingest.formats.kinds import KIND
from strobe.ingest.trace.codes import Array, in_order_once
from strobe.ingest.trace.problems import Problems
from strobe.ingest.trace.spans import Spans, Track

_USE = re.compile(r"_*(?:_\d+){1,3}$")
_FIRST_TRACK = -1000  # below the groups and planes of a timeline


class Group(NamedTuple):
    name: str
    ranks: list[int]


class _Timed(NamedTuple):
    name: str
    ts_ns: int
    dur_ns: int
    step: int
    group: str


def groups(metadata: dict[str, Any]) -> dict[str, Group]:
    """The groups that profiler_metadata.json lists, by the name that communication.json uses."""
    info = metadata.get("parallel_group_info")
    found = {}
    for key, told in info.items() if isinstance(info, dict) else ():
        ranks = told.get("global_ranks") if isinstance(told, dict) else None
        known = [rank for rank in ranks if type(rank) is int] if isinstance(ranks, list) else []
        if isinstance(told, dict):
            found[str(key)] = Group(str(told.get("group_name") or key), known)
    return found


def gathered(
    placed: Placed, kernels: Kernels, told: list[Collective], known: dict[str, Group],
    place: Place, said: Problems,
) -> Placed:  # fmt: skip
    """All spans, those of collectives completed and with those that only other files know."""
    have = _rows_by_name(placed.spans, place)
    timed = [*_of_kernels(kernels, have, told)]
    names = {*have, *(one.name for one in timed)}
    timed += [
        _Timed(c.name, c.ts_ns, c.dur_ns, step_number(c.step), c.group)
        for c in told if c.name not in names
    ]  # fmt: skip
    spans = appended(placed.spans, _spans(timed, place))
    step = np.append(placed.step, np.array([one.step for one in timed], dtype=np.int64))
    _complete(spans, step, told, known, place, said)
    _rename(spans, place)
    return Placed(spans, step)


def _rows_by_name(spans: Spans, place: Place) -> dict[str, list[int]]:
    """Rows of the collectives on the device, in order of time."""
    rows = np.flatnonzero((spans.kind == KIND["collective"]) & (spans.arg("on_device") > 0))
    names = list(place.words.names)
    found: dict[str, list[int]] = {}
    for row in rows[np.argsort(spans.ts_ns[rows], kind="stable")].tolist():
        found.setdefault(names[spans.name[row]], []).append(row)
    return found


def _of_kernels(
    kernels: Kernels, have: dict[str, list[int]], told: list[Collective]
) -> list[_Timed]:
    group = {collective.name: collective.group for collective in told}
    columns, steps = kernels.columns, kernels.step_numbers()
    found = []
    for row in np.flatnonzero(kernels.is_collective).tolist():
        name = kernels.names[columns["name"][row]]
        if name not in have:
            when, length = int(columns["ts_ns"][row]), int(columns["dur_ns"][row])
            found.append(_Timed(name, when, length, int(steps[row]), group.get(name, "")))
    return found


def _spans(timed: list[_Timed], place: Place) -> Spans:
    words = place.words
    tracks: dict[str, int] = {}
    for group in dict.fromkeys(one.group for one in timed):
        track = Track(place.device, None, _FIRST_TRACK - len(tracks))
        words.track_names.setdefault(track, f"communication {group}".strip())
        tracks[group] = words.tracks[track]
    count = len(timed)
    return Spans(
        np.array([one.ts_ns for one in timed], dtype=np.int64),
        np.array([one.dur_ns for one in timed], dtype=np.int64),
        np.full(count, KIND["collective"], dtype=np.int32),
        words.names.of((one.name for one in timed), count),
        np.array([tracks[one.group] for one in timed], dtype=np.int32),
        {
            "window": np.full(count, place.number, dtype=np.int64),
            "on_device": np.ones(count, dtype=np.int64),
        },
    )


def _complete(
    spans: Spans, step: Array, told: list[Collective], known: dict[str, Group], place: Place,
    said: Problems,
) -> None:  # fmt: skip
    """Groups, steps and bytes; the k-th of a name is the k-th of that name everywhere."""
    if not told:  # columns in which nothing is known would be as long as the timeline
        return
    have = _rows_by_name(spans, place)
    args = {
        name: spans.arg(name).copy() for name in ("group", "group_size", "group_ranks", "bytes")
    }
    elements, dtype = spans.arg("elements"), spans.arg("dtype")
    texts, by_links = place.words.texts, 0
    for collective in told:
        if not (rows := have.get(collective.name)):
            continue
        row = rows.pop(0)
        group = known.get(collective.group, Group(collective.group, []))
        args["group"][row] = texts[json.dumps(group.name)] if group.name else -1
        if group.ranks:
            args["group_size"][row] = len(group.ranks)
            args["group_ranks"][row] = texts[json.dumps(group.ranks)]
        step[row] = step[row] if step[row] >= 0 else step_number(collective.step)
        if elements[row] < 0 or dtype[row] < 0:
            args["bytes"][row] = collective.transit_bytes
            by_links += 1
    spans.args.update(args)
    said.add("communication.json", "the bytes of a collective are what its links carried: how much"
             " was put into it only trace_view.json tells", by_links)  # fmt: skip


def _rename(spans: Spans, place: Place) -> None:
    """hcom_allReduce__586_0_1 is a use of hcom_allReduce: the first of group 586."""
    names = place.words.names
    rows = spans.kind == KIND["collective"]
    texts = list(names)
    used = in_order_once(spans.name[rows]).tolist()
    plain = np.arange(len(texts), dtype=np.int32)
    for code in used:
        plain[code] = names[_USE.sub("", texts[code]) or texts[code]]
    spans.name = np.where(rows, plain[spans.name], spans.name)
