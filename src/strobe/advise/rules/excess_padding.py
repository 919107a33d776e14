"""Batches are padded far beyond their longest sample.

## What it is
Samples of a batch have different lengths, so the shorter ones are padded. Often all batches are
padded to one fixed length, the maximum of the whole data set or of the model, although few batches
need it. The model then computes on padding that no sample of the batch uses.

## How it is judged
Strobe examines the inputs of eight early calls of the model (PyTorch, tensors in host memory):
integers of shape (batch, length), or real numbers of shape (batch, length, features). Excess
padding is what all samples of a batch have at their end. Operators whose inputs have the padded
length take that much less time without it; where a tensor has it in two dimensions, as scores of
attention do, less still. Operators that take less than 20 us are not counted, because their time
hardly depends on their size. A finding needs a quarter of the length and 5% of step time.

## How to fix
Pad each batch to its own longest sample, in `collate_fn`. Batches of samples of similar length need
even less padding. If a compiled model needs fixed shapes, use a few lengths (64, 128, 256) instead
of one.
"""

import json
from typing import Any, NamedTuple

from strobe.advise.evidence.operator_times import (
    OperatorCost,
    operator_costs,
    undisturbed_ns,
    why_not,
)
from strobe.advise.finding import Clear, Evidence, Finding, Verdict
from strobe.advise.fixes import fix
from strobe.advise.thresholds import MOST_ESTIMATED, SMALLEST_SHARE, speedup
from strobe.advise.training import Lines, Training
from strobe.messages import message
from strobe.model.journal import PADDED_INPUTS
from strobe.units import count, percent

NAME = "excess-padding"

# Less than this is what batches of random samples have at times.
FEWEST_PADDING_RATIO = 0.25
# As many calls of the model must agree.
FEWEST_CALLS = 3
# Below this an operator's time is its call.
SHORTEST_NS = 20_000


class Padding(NamedTuple):
    """Of one input, in all calls examined."""

    samples: int  # in a batch
    length: int
    used: float  # of the length, by the longest sample of a batch; the mean of all batches

    @property
    def used_ratio(self) -> float:
        return self.used / self.length


def check(training: Training) -> Verdict:
    if not training.framework.examines_inputs:
        return Clear(message("excess-padding.not-examined"))
    padding, place = _most_padded(training)
    if padding is None or 1 - padding.used_ratio < FEWEST_PADDING_RATIO:
        return Clear(message("excess-padding.none"))
    if unknown := why_not(training):
        return unknown
    costs = operator_costs(training)
    saved = [(_saved_ns(cost, padding), cost) for cost in costs]
    step_ns = undisturbed_ns(training, costs)
    share = min(MOST_ESTIMATED, sum(ns for ns, _ in saved) / step_ns)
    values = {"length": count(padding.length), "used": count(round(padding.used)),
              "share": percent(share)}  # fmt: skip
    if share < SMALLEST_SHARE:
        return Clear(message("excess-padding.small", **values))
    worst = sorted((one for one in saved if one[0]), key=lambda one: -one[0])[:5]
    return Finding(
        title=message("excess-padding.title", **values),
        why=message("excess-padding.why", **values),
        share=share,
        expected_speedup=speedup(share),
        fixes=(fix("pad-to-longest", training.framework), message("excess-padding.sort")),
        evidence=(Evidence("operators", tuple(cost.row() for _, cost in worst)),),
        where=str(place) if place else None,
        is_certain=False,
    )


def _most_padded(training: Training) -> tuple[Padding | None, Lines | None]:
    rows = training.rows(
        "SELECT file, line, details FROM places WHERE what = $what ORDER BY rank, number",
        {"what": PADDED_INPUTS},
    )
    by_shape: dict[tuple[int, ...], list[int]] = {}
    for row in rows:
        for one in _inputs(row["details"]):
            # The last batch of an epoch has fewer samples.
            by_shape.setdefault(tuple(one["shape"][1:]), []).append(int(one["used"]))
    counts = {
        tuple(one["shape"][1:]): int(one["shape"][0])
        for row in reversed(rows) for one in _inputs(row["details"])
    }  # fmt: skip
    found = [
        Padding(counts[shape], shape[0], sum(used) / len(used))
        for shape, used in by_shape.items() if len(used) >= FEWEST_CALLS
    ]  # fmt: skip
    if not found:
        return None, None
    return min(found, key=lambda one: one.used_ratio), Lines(rows[0]["file"], rows[0]["line"])


def _inputs(details: str | None) -> list[dict[str, Any]]:
    inputs: list[dict[str, Any]] = json.loads(details or "{}").get("inputs", [])
    return inputs


def _saved_ns(cost: OperatorCost, padding: Padding) -> float:
    """Of one operator in a step, where its inputs are as long as the padded sequences."""
    if cost.direction == "update" or cost.cost_ns / max(1.0, cost.calls) < SHORTEST_NS:
        return 0.0
    power = max((_power(shape, padding) for shape in _shapes(cost)), default=0)
    return cost.cost_ns * (1 - padding.used_ratio**power)


def _shapes(cost: OperatorCost) -> list[list[int]]:
    shapes = json.loads(cost.input_shapes or "[]")
    return [
        shape for shape in shapes
        if isinstance(shape, list) and all(isinstance(size, int) for size in shape)
    ]  # fmt: skip


def _power(shape: list[Any], padding: Padding) -> int:
    """In how many dimensions a tensor has the padded length."""
    if not {padding.length, padding.length * padding.samples}.intersection(shape):
        return 0
    is_square = len(shape) > 2 and shape[-2:] == [padding.length, padding.length]
    # (batch, length, features) with as many features as the sequence is long.
    is_layer = len(shape) == 3 and shape[0] == padding.samples
    return 2 if is_square and not is_layer else 1
