"""Where the steps of a run begin and end."""

from dataclasses import dataclass

import numpy as np

from strobe.ingest.steps.spans import (
    EVALUATION_BEGAN,
    Bools,
    Edges,
    Ints,
    after,
    before,
)
from strobe.ingest.trace.codes import in_order_once
from strobe.model.journal import Mark

# If one optimizer follows another this often, the two belong to one step. Half is not enough:
# training one model twice and then another twice reaches it.
HABIT_RATIO = 0.5

# If this share of the changes of optimizer happens without a request for data in between, requests
# for data separate the steps.
BATCH_SHARED_RATIO = 0.25


@dataclass(frozen=True)
class Bounds:
    """Step k is between the edges `at[k - 1]` and `at[k]`.

    `closes` says whether that edge is the last of the step it ends or the first of the next.
    """

    at: Ints
    closes: Bools


NO_BOUNDS = Bounds(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.bool_))


def find(edges: Edges, *, has_updates: bool) -> Bounds:
    """`has_updates`: an optimizer was at work, if only in an update that never ended."""
    steps = edges.at(Mark.STEP)
    if len(steps):
        return _by_hand(edges, steps)
    if len(edges.at(Mark.UPDATE_ENDED)):
        ends = _after_updates(edges)
        return _bounds(_first_start(edges), ends, np.ones(len(ends), dtype=np.bool_))
    if len(edges.at(Mark.BACKWARD_ENDED)) and not has_updates:
        ends, closes = _after_backwards(edges)
        return _bounds(_first_start(edges), ends, closes)
    return NO_BOUNDS


def _bounds(start: int, ends: Ints, closes: Bools) -> Bounds:
    whole = ends > start
    if not whole.any():
        return NO_BOUNDS
    return Bounds(np.insert(ends[whole], 0, start), np.insert(closes[whole], 0, False))


def _by_hand(edges: Edges, steps: Ints) -> Bounds:
    """Every strobe.step() ends a step, but one called before any training only begins one."""
    work = edges.at(Mark.FORWARD_BEGAN, Mark.BACKWARD_BEGAN, Mark.UPDATE_BEGAN)
    if len(work):
        early = int(np.searchsorted(steps, work[0]))
        start = int(steps[early - 1]) if early else _first_start(edges)
    else:
        start = 0
    return _bounds(start, steps, np.ones(len(steps), dtype=np.bool_))


def _first_start(edges: Edges) -> int:
    """The request for the first batch, otherwise the first training work."""
    first = int(edges.at(Mark.FORWARD_BEGAN, Mark.BACKWARD_BEGAN, Mark.UPDATE_BEGAN)[0])
    asked = edges.at(Mark.DATA_ASKED)
    earlier = asked[asked < first]
    if len(earlier):
        return _first_of_batch(edges, earlier, first)
    gradient = edges.at(Mark.BACKWARD_BEGAN, Mark.UPDATE_ENDED)
    later = asked[asked < gradient[0]] if len(gradient) else asked[:0]
    # A forward without data, and then data before any backward: a trial of the model.
    return int(later[0]) if len(later) else first


def _first_of_batch(edges: Edges, asked: Ints, first: int) -> int:
    """Go back over consecutive requests to loaders: one batch may come from several."""
    start, seen = first, set[int]()
    quiet_since = before(edges.at(EVALUATION_BEGAN), np.array([first]))[0]
    for position in asked[::-1].tolist():
        loader = int(edges.ref[position])
        delivered = edges.value[edges.mate[position]] == 1
        if not delivered or loader in seen or (seen and position < quiet_since):
            break
        seen.add(loader)
        start = position
    return start


def _after_updates(edges: Edges) -> Ints:
    begins = edges.at(Mark.UPDATE_BEGAN)
    ends = edges.mate[begins]
    backward_ends = edges.at(Mark.BACKWARD_ENDED)
    backward_end = after(backward_ends, begins, -1)
    is_inside = (backward_end >= 0) & (edges.mate[backward_end] < begins)
    bound = np.where(is_inside, backward_end, ends)  # optimizers that step during backward
    optimizer = np.unique(edges.ref[begins], return_inverse=True)[1].astype(np.int64)
    if not optimizer.any():
        return in_order_once(bound)
    joined = _belong_together(edges, begins, ends, optimizer)
    starts = _first_updates(optimizer, joined)
    last_of_step = np.append(starts[1:], len(optimizer)) - 1
    if len(starts) > 1 and _lacks_its_follower(optimizer, starts):
        last_of_step = last_of_step[:-1]
    return in_order_once(bound[last_of_step])


def _belong_together(edges: Edges, begins: Ints, ends: Ints, optimizer: Ints) -> Bools:
    """For each update but the last: may the next one, by another optimizer, be in its step?"""
    one, other = optimizer[:-1], optimizer[1:]
    count = int(optimizer.max()) + 1
    pair, times = np.unique(one * count + other, return_inverse=True, return_counts=True)[1:]
    follows = times[pair] / np.bincount(one, minlength=count)[one]
    precedes = times[pair] / np.bincount(other, minlength=count)[other]

    work = edges.at(Mark.FORWARD_BEGAN, Mark.BACKWARD_BEGAN)
    has_work = np.searchsorted(work, ends[1:]) > np.searchsorted(work, ends[:-1])
    asked = edges.at(Mark.DATA_ASKED)
    has_asked = np.searchsorted(asked, begins[1:]) > np.searchsorted(asked, ends[:-1])

    changes = has_work & (one != other)
    shared = int((changes & ~has_asked).sum()) >= BATCH_SHARED_RATIO * max(1, int(changes.sum()))
    likely = (follows > HABIT_RATIO) | (precedes > HABIT_RATIO)
    certain = (follows > HABIT_RATIO) & (precedes > HABIT_RATIO) & (not shared)
    together: Bools = ~has_work | np.where(has_asked, certain, likely)
    return together


def _first_updates(optimizer: Ints, joined: Bools) -> Ints:
    """Cut where updates do not belong together, or an optimizer would update twice in a step."""
    count = len(optimizer)
    order = np.argsort(optimizer, kind="stable")
    again = np.full(count, count)
    same = optimizer[order[1:]] == optimizer[order[:-1]]
    again[order[:-1][same]] = order[1:][same]
    parted = np.full(count, count)
    parted[:-1][~joined] = np.flatnonzero(~joined) + 1
    following = np.minimum.accumulate(np.minimum(again, parted)[::-1])[::-1].tolist()
    starts = []
    start = 0
    while start < count:
        starts.append(start)
        start = following[start]
    return np.array(starts)


def _lacks_its_follower(optimizer: Ints, starts: Ints) -> bool:
    """The run was cut between two updates of a step."""
    begins_step = np.zeros(len(optimizer), dtype=np.bool_)
    begins_step[starts] = True
    like_last = np.flatnonzero(optimizer[:-1] == optimizer[-1])
    if not len(like_last):
        return False
    follower_is_due = ~np.isin(optimizer[like_last + 1], optimizer[starts[-1] :])
    return bool((~begins_step[like_last + 1] & follower_is_due).mean() > HABIT_RATIO)


def _after_backwards(edges: Edges) -> tuple[Ints, Bools]:
    """For manual updates: a step ends where data or a forward follows a backward. If that never
    happens, compiled graphs run forward and backward at once, and each of them is a step.
    """
    ends = edges.at(Mark.BACKWARD_ENDED)
    missing = len(edges.code)
    following = np.append(edges.mate[ends[1:]], missing)
    turns: tuple[int, ...] = (Mark.DATA_ASKED, Mark.FORWARD_BEGAN)
    if not (edges.at(*turns) > ends[0]).any():
        turns, following = (*turns, Mark.BACKWARD_BEGAN), np.minimum(following + 1, missing)
    turn = after(edges.at(*turns), ends, missing)
    stop = after(edges.at(*turns, EVALUATION_BEGAN), ends, missing)
    is_last = turn < following
    bound = stop[is_last]
    closes = np.zeros(len(bound), dtype=np.bool_)
    if not is_last[-1] and is_last.any():  # the loop is over, and nothing ends its last step
        stop_at = min(int(stop[-1]), missing - 1)
        bound = np.append(bound, stop_at)
        closes = np.append(closes, stop_at == ends[-1])
    return bound, closes
