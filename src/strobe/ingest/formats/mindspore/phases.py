"""The phases of steps, from what ran in them and which part of the training each piece belongs to.

On the line of time of one step:

    begin     first work      first of backward      last of backward     last work     end
      |  gap      |    forward      |     backward         |     update      |   rest    |

Up to the last of backward, forward and backward may take turns (accumulation of gradients).
Communication that no other work hides is all_reduce, wherever it lies. Work that does not say its
part belongs to the part around it. Where nothing says so, the time of work is rest.
"""

from typing import NamedTuple

import numpy as np

from strobe.ingest.formats.mindspore.names import BACKWARD, FORWARD, UPDATE
from strobe.ingest.steps.detection import Steps
from strobe.ingest.steps.phases import ALL_REDUCE, GAP, REST
from strobe.ingest.steps.phases import BACKWARD as BACKWARD_PHASE
from strobe.ingest.steps.phases import FORWARD as FORWARD_PHASE
from strobe.ingest.steps.phases import UPDATE as UPDATE_PHASE
from strobe.ingest.trace.codes import Array

PARTS = ("", FORWARD, BACKWARD, UPDATE)  # the codes of Work.part

Stretch = tuple[int, int]


class Work(NamedTuple):
    """Computations and collectives of a rank, in any order."""

    ts_ns: Array
    end_ns: Array
    part: Array  # position in PARTS
    is_collective: Array

    def take(self, rows: Array) -> "Work":
        return Work(*(column[rows] for column in self))


class Border(NamedTuple):
    """Where parts of a step meet, as a source tells it."""

    at_ns: int
    phase: int  # from here on


def steps(bounds: list[Stretch], work: Work, says: list[str] | None = None) -> Steps:
    """Steps (begin, end) with their phases; a step begins no earlier than the one before ends."""
    hidden = exposed(work)
    work = work.take(np.argsort(work.ts_ns, kind="stable"))
    borders = [_borders(begin, end, _within(work, begin, end)) for begin, end in bounds]
    return tiled(bounds, borders, hidden, says)


def tiled(
    bounds: list[Stretch], borders: list[list[Border]], communication: tuple[Array, Array],
    says: list[str] | None = None,
) -> Steps:  # fmt: skip
    """Steps whose phases tile them: those given, with the stretches of communication laid over."""
    rows: list[tuple[int, int, int, int]] = []
    for number, ((begin, end), met) in enumerate(zip(bounds, borders, strict=True), start=1):
        rows += _laid(number, begin, end, met, communication)
    columns = np.array(rows, dtype=np.int64).reshape(-1, 4).T
    edges = np.array(bounds, dtype=np.int64).reshape(-1, 2)
    return Steps(
        edges[:, 0], edges[:, 1] - edges[:, 0], columns[0], columns[1], columns[2],
        columns[3] - columns[2], says or [],
    )  # fmt: skip


def exposed(work: Work) -> tuple[Array, Array]:
    """Stretches in which collectives ran and nothing else did: their starts and ends."""
    others = ~work.is_collective
    moments = np.concatenate([work.ts_ns, work.end_ns])
    collective = np.concatenate([work.is_collective * 1, work.is_collective * -1])
    other = np.concatenate([others * 1, others * -1])
    order = np.argsort(moments, kind="stable")
    moments = moments[order]
    alone = (np.cumsum(collective[order]) > 0) & (np.cumsum(other[order]) == 0)
    lasts = np.append(np.diff(moments) > 0, False)
    rows = np.flatnonzero(alone & lasts)
    begins, ends = moments[rows], moments[rows + 1] if len(rows) else moments[:0]
    joins = begins[1:] == ends[:-1]
    return begins[np.append(True, ~joins)[: len(begins)]], ends[
        np.append(~joins, True)[: len(ends)]
    ]


def _within(work: Work, begin: int, end: int) -> Work:
    """What began in a step, of work in order of time."""
    first, last = np.searchsorted(work.ts_ns, [begin, end], side="left")
    return Work(*(column[first:last] for column in work))


def _borders(begin: int, end: int, work: Work) -> list[Border]:
    if not len(work.ts_ns):
        return [Border(begin, REST)]
    last = min(end, int(work.end_ns.max()))
    found = [Border(begin, GAP), Border(int(work.ts_ns[0]), _first_phase(work))]
    backward, update = (work.part == PARTS.index(part) for part in (BACKWARD, UPDATE))
    if backward.any():
        found += _turns(work, backward)
        after = UPDATE_PHASE if update.any() else REST
        found.append(Border(_backward_end(work, backward, update), after))
    elif update.any():
        found.append(Border(int(work.ts_ns[update].min()), UPDATE_PHASE))
    return [*found, Border(last, REST)]


def _turns(work: Work, backward: Array) -> list[Border]:
    """Where forward and backward take over from one another, up to the last of backward."""
    told = backward | (work.part == PARTS.index(FORWARD))
    rows = np.flatnonzero(told & (work.ts_ns <= work.ts_ns[backward].max()))
    changes = rows[np.append(True, np.diff(backward[rows].astype(np.int8)) != 0)]
    return [
        Border(int(work.ts_ns[row]), BACKWARD_PHASE if backward[row] else FORWARD_PHASE)
        for row in changes.tolist()
    ]


def _backward_end(work: Work, backward: Array, update: Array) -> int:
    """The end of its last work, or of the last collective before the update that follows."""
    follows = update & (work.ts_ns >= work.ts_ns[backward].max())
    update_ns = work.ts_ns[follows].min() if follows.any() else work.ts_ns.max() + 1
    done = backward | (work.is_collective & (work.ts_ns < update_ns))
    return int(work.end_ns[done].max())


def _first_phase(work: Work) -> int:
    """Forward, if there is any word of parts at all."""
    return FORWARD_PHASE if (work.part > 0).any() else REST


def _laid(
    number: int, begin: int, end: int, met: list[Border], communication: tuple[Array, Array]
) -> list[tuple[int, int, int, int]]:
    """(step, phase, begin, end) of the phases of a step, in order of time."""
    starts, stops = communication
    first, last = np.searchsorted(stops, begin, "right"), np.searchsorted(starts, end, "left")
    alone = list(zip(starts[first:last].tolist(), stops[first:last].tolist(), strict=True))
    met = sorted(met, key=lambda border: border.at_ns)
    edges = {begin, end, *(min(max(at, begin), end) for at, _ in met)}
    edges |= {min(max(at, begin), end) for stretch in alone for at in stretch}
    borders = sorted(edges)
    rows: list[tuple[int, int, int, int]] = []
    place, passed, current = 0, 0, REST
    for left, right in zip(borders[:-1], borders[1:], strict=True):
        while passed < len(met) and met[passed].at_ns <= left:
            current, passed = met[passed].phase, passed + 1
        while place < len(alone) and alone[place][1] <= left:
            place += 1
        is_alone = place < len(alone) and alone[place][0] <= left
        _extend(rows, (number, ALL_REDUCE if is_alone else current, left, right))
    return rows


def _extend(rows: list[tuple[int, int, int, int]], row: tuple[int, int, int, int]) -> None:
    """The same phase as before goes on."""
    if rows and rows[-1][1] == row[1]:
        rows[-1] = (*rows[-1][:3], row[3])
    else:
        rows.append(row)
