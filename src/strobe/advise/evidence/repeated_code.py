"""Code of the user's that runs in a few steps only, and makes each of them long.

The same line in every long step is stronger evidence than the distances between them: a busy
machine makes steps long at random, whatever they run.
"""

import json
from collections import Counter, defaultdict
from typing import Any, NamedTuple

import numpy as np

from strobe.advise.evidence import stack_lines
from strobe.advise.training import Array, Lines, Training

# Fewer steps than this may do anything once.
FEWEST_STEPS = 3
# It runs in at most this part of the steps: what more of them do is an ordinary part of a step.
MOST_STEPS_RATIO = 0.34
# In each of them it takes this part of the median step at least, and this long. Samples are some
# tens of milliseconds apart: what is shorter is seen by chance.
LEAST_RATIO = 0.2
LEAST_NS = 40_000_000
# Of its time, this part is in those steps.
THERE_RATIO = 0.9

Frame = tuple[str, int, str]


class RareCode(NamedTuple):
    """A line, with the steps that ran it and how long it took in each."""

    line: Lines
    function: str
    steps: tuple[int, ...]
    length_ns: Array
    stacks: dict[str, int]  # seen there, with their time


def rare_code(training: Training, rank: int, typical_ns: float) -> RareCode | None:
    """The code that takes most time of those that run in a few steps only; None if none does."""
    looks = _looks(training, rank)
    times = _times_by_frame(looks)
    excess_ns = _excess(training, rank, typical_ns)
    least_ns = max(LEAST_NS, LEAST_RATIO * typical_ns)
    found: list[tuple[float, int, Frame, dict[int, float]]] = []
    for frame, (depth, by_step) in times.items():
        # Samples are far apart: one may stand for more time than its step took.
        there = {step: min(ns, excess_ns.get(step, 0.0)) for step, ns in by_step.items()}
        there = {step: ns for step, ns in there.items() if ns >= least_ns}
        if not FEWEST_STEPS <= len(there) <= MOST_STEPS_RATIO * len(excess_ns):
            continue
        if sum(by_step[step] for step in there) >= THERE_RATIO * sum(by_step.values()):
            found.append((sum(there.values()), depth, frame, there))
    if not found:
        return None
    most_ns = max(one[0] for one in found)
    # Of callers and what they call the innermost that takes nearly all of it.
    *_, (file, line, function), there = max(
        (one for one in found if one[0] >= THERE_RATIO * most_ns), key=lambda one: one[1]
    )
    steps = sorted(there)
    stacks: Counter[str] = Counter()
    for row in looks:
        if row["step"] in there and (file, line, function) in row["frames"]:
            stacks[row["stack"]] += row["dur_ns"]
    lengths = np.array([there[step] for step in steps])
    return RareCode(Lines(file, line), function, tuple(steps), lengths, stacks)


def _excess(training: Training, rank: int, typical_ns: float) -> dict[int, float]:
    """How much longer than a typical one each step is."""
    mine = training.steps["rank"] == rank
    length = (training.steps["dur_ns"] - training.steps["recorder_ns"])[mine]
    number = training.steps["step"][mine]
    return dict(zip(number.tolist(), (length - typical_ns).tolist(), strict=True))


def _looks(training: Training, rank: int) -> list[dict[str, Any]]:
    """Samples of the steps judged, waits for data aside, with the user's frames in their stacks."""
    stack_lines.prepare_looks(training)
    rows = training.rows(f"""
        SELECT step, stack, sum(dur_ns)::BIGINT AS dur_ns FROM {stack_lines.TYPICAL_LOOKS}
        WHERE rank = {rank} AND phase <> 'data' GROUP BY step, stack
    """)
    for row in rows:
        frames = stack_lines.users_frames(json.loads(row["stack"]), into_modules=False)
        row["frames"] = [(str(file), int(line), str(name)) for file, line, name in frames]
    return rows


def _times_by_frame(looks: list[dict[str, Any]]) -> dict[Frame, tuple[int, dict[int, float]]]:
    """Of each line of the user's in the stacks: how deep it is, and its time by step."""
    depths: dict[Frame, int] = {}
    times: dict[Frame, dict[int, float]] = defaultdict(lambda: defaultdict(float))
    for row in looks:
        for depth, frame in enumerate(row["frames"]):
            depths[frame] = max(depth, depths.get(frame, 0))
            times[frame][row["step"]] += row["dur_ns"]
    return {frame: (depths[frame], dict(by_step)) for frame, by_step in times.items()}
