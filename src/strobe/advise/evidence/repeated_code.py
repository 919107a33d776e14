"""The user's code that runs in a few steps only, and makes each of them long.

The same line in every long step is stronger evidence than the distances between them: a busy
machine makes steps long at random, whatever they run.
"""

import json
from collections import Counter, defaultdict
from typing import Any, NamedTuple

import numpy as np

from strobe.advise.evidence import stack_lines
from strobe.advise.training import Array, Lines, Training

# Fewer steps may do anything once.
FEWEST_STEPS = 3
# Code that runs in more than this part of the steps is an ordinary part of a step.
MOST_STEPS_RATIO = 0.34
# In each of its steps the code takes at least this part of the median step, and this long. Samples
# are tens of milliseconds apart, so shorter work is sampled by chance.
LEAST_RATIO = 0.2
LEAST_NS = 40_000_000
# At least this part of the code's time is in those steps.
IN_LONG_STEPS_RATIO = 0.9

Frame = tuple[str, int, str]


class RareCode(NamedTuple):
    """A line, with the steps that ran it and how long it took in each."""

    line: Lines
    function: str
    steps: tuple[int, ...]
    length_ns: Array
    stacks: dict[str, int]  # sampled at this line, with their time


def rare_code(training: Training, rank: int, typical_ns: float) -> RareCode | None:
    """The code that takes most time of those that run in a few steps only; None if none does."""
    samples = _samples(training, rank)
    excess_ns = _excess(training, rank, typical_ns)
    least_ns = max(LEAST_NS, LEAST_RATIO * typical_ns)
    found: list[tuple[float, int, Frame, dict[int, float]]] = []
    for frame, (depth, by_step) in _times_by_frame(samples).items():
        # Samples are far apart: one may stand for more time than its step took.
        limited = {step: min(ns, excess_ns.get(step, 0.0)) for step, ns in by_step.items()}
        long_steps = {step: ns for step, ns in limited.items() if ns >= least_ns}
        if not FEWEST_STEPS <= len(long_steps) <= MOST_STEPS_RATIO * len(excess_ns):
            continue
        in_long_steps_ns = sum(by_step[step] for step in long_steps)
        if in_long_steps_ns >= IN_LONG_STEPS_RATIO * sum(by_step.values()):
            found.append((sum(long_steps.values()), depth, frame, long_steps))
    if not found:
        return None
    most_ns = max(one[0] for one in found)
    # Among callers and callees, the innermost frame that takes nearly all of the time.
    *_, (file, line, function), long_steps = max(
        (one for one in found if one[0] >= IN_LONG_STEPS_RATIO * most_ns), key=lambda one: one[1]
    )
    steps = sorted(long_steps)
    stacks: Counter[str] = Counter()
    for row in samples:
        if row["step"] in long_steps and (file, line, function) in row["frames"]:
            stacks[row["stack"]] += row["dur_ns"]
    lengths = np.array([long_steps[step] for step in steps])
    return RareCode(Lines(file, line), function, tuple(steps), lengths, stacks)


def _excess(training: Training, rank: int, typical_ns: float) -> dict[int, float]:
    """How much longer than a typical step each step is."""
    mine = training.steps["rank"] == rank
    length = (training.steps["dur_ns"] - training.steps["recorder_ns"])[mine]
    number = training.steps["step"][mine]
    return dict(zip(number.tolist(), (length - typical_ns).tolist(), strict=True))


def _samples(training: Training, rank: int) -> list[dict[str, Any]]:
    """Samples of the steps judged, without waits for data, with the user's frames of each stack."""
    stack_lines.prepare_looks(training)
    rows = training.rows(f"""
        SELECT step, stack, sum(dur_ns)::BIGINT AS dur_ns FROM {stack_lines.TYPICAL_LOOKS}
        WHERE rank = {rank} AND phase <> 'data' GROUP BY step, stack
    """)
    for row in rows:
        frames = stack_lines.users_frames(json.loads(row["stack"]), into_modules=False)
        row["frames"] = [(str(file), int(line), str(name)) for file, line, name in frames]
    return rows


def _times_by_frame(samples: list[dict[str, Any]]) -> dict[Frame, tuple[int, dict[int, float]]]:
    """For each frame of the user's: its depth in the stack, and its time by step."""
    depths: dict[Frame, int] = {}
    times: dict[Frame, dict[int, float]] = defaultdict(lambda: defaultdict(float))
    for row in samples:
        for depth, frame in enumerate(row["frames"]):
            depths[frame] = max(depth, depths.get(frame, 0))
            times[frame][row["step"]] += row["dur_ns"]
    return {frame: (depths[frame], dict(by_step)) for frame, by_step in times.items()}
