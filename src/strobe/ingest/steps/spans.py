"""The spans of the training thread: which marks belong together, and which of them count."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from strobe.ingest.trace.codes import in_order_once
from strobe.model.journal import GRAD_ENABLED, TRAINING_MODE, Mark

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Bytes = npt.NDArray[np.uint8]

# Forwards that do not train get codes of their own; 0 is a moment without a meaning.
NOTHING = 0
EVALUATION_BEGAN = 100
EVALUATION_ENDED = 101

# Codes 1 to 10 are spans: an odd code is the begin, and the next even one the end.
LAST_SPAN_CODE = int(Mark.COLLECTIVE_ENDED)

# The maximum nesting of spans that a kill leaves open.
MOST_OPEN = 8

# A forward without gradients that most steps run on their batch (a teacher, a frozen generator) is
# part of training; one that few steps run is an evaluation.
USUAL_RATIO = 0.5

# For an optimizer that has updated before: how many of its updates may lack a forward and a
# backward before they count as something other than training.
UNUSUAL_RATIO = 0.1


@dataclass(frozen=True)
class Edges:
    """The marks of the training thread that count, in time order; every span has both its ends.

    Spans of the same kind do not overlap. `mate` is the position of a span's other end.
    """

    ts: Ints
    code: Bytes
    ref: Ints
    value: Ints
    mate: Ints

    def at(self, *codes: int) -> Ints:
        return np.flatnonzero(with_codes(self.code, *codes))

    def take(self, keep: Bools) -> "Edges":
        if keep.all():
            return self
        position = np.cumsum(keep) - 1
        mate = self.mate[keep]
        mate = np.where(mate >= 0, position[mate], -1)
        return Edges(self.ts[keep], self.code[keep], self.ref[keep], self.value[keep], mate)


def with_codes(code: Bytes, *codes: int) -> Bools:
    wanted = np.zeros(256, dtype=np.bool_)
    wanted[list(codes)] = True
    return wanted[code]


def after(positions: Ints, these: Ints, missing: int) -> Ints:
    """For each of these positions, the next of `positions` after it, or `missing`."""
    return np.append(positions, missing)[np.searchsorted(positions, these, side="right")]


def before(positions: Ints, these: Ints) -> Ints:
    """For each of these positions, the last of `positions` before it, or -1."""
    return np.insert(positions, 0, -1)[np.searchsorted(positions, these, side="left")]


def training_edges(edges: Edges) -> tuple[Edges, Ints]:
    """The edges that count, and the times of the ends that lack their other end."""
    mate, flat = _match(edges.code)
    edges = Edges(edges.ts, edges.code, edges.ref, edges.value, mate)
    alone = (mate < 0) & (edges.code <= LAST_SPAN_CODE) & (edges.code != NOTHING)
    alone_ts = edges.ts[alone]
    alone[_unfinished_from(edges, alone) :] = True
    edges = edges.take(~alone)
    if not flat:
        edges = edges.take(~_nested(edges))
    edges = edges.take(~_updates_without_work(edges))
    edges = edges.take(~_unwanted_gradients(edges))
    return _with_evaluations(edges), alone_ts


def _unfinished_from(edges: Edges, alone: Bools) -> int:
    """Where the run was cut inside an update or a backward: what is inside is not a whole step.

    A begin whose end was lost in the middle of the run does not count: the same begins again later.
    """
    candidates: list[int] = np.flatnonzero(alone)[-MOST_OPEN:].tolist()
    for position in candidates:
        code, ref = edges.code[position], edges.ref[position]
        if code not in (Mark.UPDATE_BEGAN, Mark.BACKWARD_BEGAN):
            continue
        later = slice(position + 1, None)
        again = (edges.code[later] == code) & (edges.ref[later] == ref)
        if not (again | (edges.code[later] == Mark.DATA_ASKED)).any():
            return position
    return len(edges.code)


def _match(code: Bytes) -> tuple[Ints, bool]:
    """The position of each mark's other end, or -1; and whether no span is nested in another.

    A begin directly followed by its end is a span; with it removed, its surroundings close up and
    match in the next round. What is left after the few rounds of an orderly run is matched with a
    stack.
    """
    mate = np.full(len(code), -1, dtype=np.int64)
    left = np.flatnonzero((code != NOTHING) & (code <= LAST_SPAN_CODE))
    rounds = 0
    while len(left):
        here = code[left]
        hits = np.flatnonzero((here[:-1] % 2 == 1) & (here[1:] == here[:-1] + 1))
        if len(hits) * 50 < len(left):
            _match_by_stack(code, left, mate)
            break
        rounds += 1
        mate[left[hits]] = left[hits + 1]
        mate[left[hits + 1]] = left[hits]
        keep = np.ones(len(left), dtype=np.bool_)
        keep[hits] = keep[hits + 1] = False
        left = left[keep]
    return mate, rounds <= 1 and not len(left)


def _match_by_stack(code: Bytes, left: Ints, mate: Ints) -> None:
    """An end matches the innermost open begin of its kind; begins left open inside are dropped."""
    stack: list[tuple[int, int]] = []
    open_count = [0] * (LAST_SPAN_CODE + 2)
    for position, kind in zip(left.tolist(), code[left].tolist(), strict=True):
        if kind % 2:
            stack.append((position, kind))
            open_count[kind] += 1
        elif open_count[kind - 1]:
            while True:
                begin, begun = stack.pop()
                open_count[begun] -= 1
                if begun == kind - 1:
                    break
            mate[begin], mate[position] = position, begin


def _nested(edges: Edges) -> Bools:
    """Spans inside a span of their own kind; all inside the data loader; forwards in backward."""
    depth = {
        int(kind): np.cumsum(
            (edges.code == kind).astype(np.int8) - (edges.code == kind + 1), dtype=np.int32
        )
        for kind in range(1, LAST_SPAN_CODE, 2)
    }
    begins = np.flatnonzero((edges.code % 2 == 1) & (edges.code < LAST_SPAN_CODE))
    code = edges.code[begins]
    nested = (depth[Mark.DATA_ASKED][begins] > 0) & (code != Mark.DATA_ASKED)
    nested |= (depth[Mark.BACKWARD_BEGAN][begins] > 0) & (code == Mark.FORWARD_BEGAN)
    for kind, of_kind in depth.items():
        nested |= (code == kind) & (of_kind[begins] > 1)
    result = np.zeros(len(edges.code), dtype=np.bool_)
    result[begins[nested]] = True
    result[edges.mate[begins[nested]]] = True
    return result


def _updates_without_work(edges: Edges) -> Bools:
    """Updates without preceding data, forward or backward, in a training where that is unusual.

    Restoring a distributed checkpoint steps the optimizer once, to create its state. If gradients
    come from elsewhere (a captured CUDA graph, evolution strategies), most updates are like that.
    """
    result = np.zeros(len(edges.code), dtype=np.bool_)
    begins = edges.at(Mark.UPDATE_BEGAN)
    if not len(begins) or not len(edges.at(Mark.BACKWARD_BEGAN)):
        return result
    ends, optimizer = edges.mate[begins], edges.ref[begins]
    order = np.argsort(optimizer, kind="stable")
    again = optimizer[order[1:]] == optimizer[order[:-1]]
    previous = np.full(len(begins), -1, dtype=np.int64)  # end of the last one of the same optimizer
    previous[order[1:][again]] = ends[order[:-1][again]]
    work = edges.at(Mark.DATA_ASKED, Mark.FORWARD_BEGAN, Mark.BACKWARD_BEGAN)
    without = np.searchsorted(work, ends) == np.searchsorted(work, previous)
    usual = int((~without).sum())
    if without.sum() > usual:
        return result
    if without.sum() > UNUSUAL_RATIO * usual:
        without &= previous < 0
    result[begins[without]] = result[ends[without]] = True
    return result


def _unwanted_gradients(edges: Edges) -> Bools:
    """Calls of autograd.grad() in a run that has tensor.backward(): a gradient penalty."""
    result = np.zeros(len(edges.code), dtype=np.bool_)
    begins = edges.at(Mark.BACKWARD_BEGAN)
    is_grad = edges.value[begins] == 1
    if not is_grad.all():
        result[begins[is_grad]] = True
        result[edges.mate[begins[is_grad]]] = True
    return result


def _with_evaluations(edges: Edges) -> Edges:
    forwards = edges.at(Mark.FORWARD_BEGAN)
    evaluates = _is_evaluation(edges, forwards)
    evaluates &= ~_is_usual_help(edges, forwards, evaluates)
    begins = forwards[evaluates]
    code = edges.code.copy()
    code[begins] = EVALUATION_BEGAN
    code[edges.mate[begins]] = EVALUATION_ENDED
    return Edges(edges.ts, code, edges.ref, edges.value, edges.mate)


def _is_evaluation(edges: Edges, forwards: Ints) -> Bools:
    """Without gradients; or in evaluation mode without a backward that could use it."""
    mode = edges.value[forwards]
    result: Bools = (mode & GRAD_ENABLED) == 0
    doubtful = ~result & ((mode & TRAINING_MODE) == 0)
    if doubtful.any():
        missing = len(edges.code)
        asked = after(edges.at(Mark.DATA_ASKED), forwards, missing)
        trained = _next_training_of_module(edges, forwards, ~result & ~doubtful)
        backward = after(edges.at(Mark.BACKWARD_BEGAN), forwards, missing)
        result |= doubtful & ((backward == missing) | (backward > np.minimum(asked, trained)))
    return result


def _next_training_of_module(edges: Edges, forwards: Ints, trains: Bools) -> Ints:
    """The next forward in training mode of the same module class, without data marks in between:
    the only sign that an evaluation loop is over.
    """
    order = np.argsort(edges.ref[forwards], kind="stable")
    count = len(forwards)
    following = np.where(trains[order], np.arange(count), count)
    following = np.minimum.accumulate(following[::-1])[::-1]
    ref = np.append(edges.ref[forwards[order]], -1)
    position = np.append(forwards[order], len(edges.code))
    found = np.where(ref[following] == ref[:count], position[following], len(edges.code))
    result = np.empty(count, dtype=np.int64)
    result[order] = found
    return result


def _is_usual_help(edges: Edges, forwards: Ints, evaluates: Bools) -> Bools:
    """Evaluations that are a regular part of training: run on the current batch, with training
    next.
    """
    result = np.zeros(len(forwards), dtype=np.bool_)
    asked = edges.at(Mark.DATA_ASKED)
    if not evaluates.any() or not len(asked):
        return result
    missing = len(edges.code)
    done = edges.at(Mark.BACKWARD_ENDED, Mark.UPDATE_ENDED)
    trains = np.sort(np.append(forwards[~evaluates], edges.at(Mark.BACKWARD_BEGAN)))
    next_trains = after(trains, forwards, missing)
    candidates = evaluates & (before(asked, forwards) > before(done, forwards))
    candidates &= next_trains < after(asked, forwards, missing)
    steps = edges.at(Mark.UPDATE_ENDED)
    if not len(steps):
        steps = edges.at(Mark.BACKWARD_ENDED)
    if len(steps) and len(in_order_once(next_trains[candidates])) >= USUAL_RATIO * len(steps):
        return candidates
    return result
