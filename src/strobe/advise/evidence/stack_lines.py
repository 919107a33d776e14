"""Which line of the user's code training was seen at, from the looks at its stack."""

import json
from collections import defaultdict
from collections.abc import Callable, Collection
from typing import Any, NamedTuple

import numpy as np

from strobe.advise.training import Array, Lines, Training, by_rank
from strobe.analyse.tables.steps import python_lines, steps
from strobe.model.journal import COMPILATION
from strobe.model.schema import EVALUATION, EVALUATION_WITH_GRADIENTS

# So much of the time must agree on a line for it to be named rather than the one that called it.
AGREED_RATIO = 0.6

# Fewer looks than this may have hit anything.
FEWEST_LOOKS = 2

# A thread that computes in Python gives up Python's lock after 5 ms at the latest. A look that
# waited so long caught it in the middle; one that waited a part of that saw it only once it had
# moved on to something that gives the lock up by itself, and shows that place instead.
CAUGHT_NS = 4_900_000
LATE_NS = 500_000

# A thread that is busy for less than this part of a stretch is waiting there, not computing.
WAITING_CPU_RATIO = 0.5

_LIBRARIES = (
    "/site-packages/", "/dist-packages/", "/lib/python3", "/strobe/collect/",
    "/torchinductor_", "<",
)  # fmt: skip
# Behind it lie the parts of the model: a look into them tells which layer ran, not who called it.
_MODULE_CALL = "torch/nn/modules/module.py"


class Seen(NamedTuple):
    """Where training was seen in some stretch of its time."""

    line: Lines
    function: str
    ratio: float  # of the time there, that this line accounts for
    looks: int
    below: str | None  # the innermost frame that was seen most

    def __str__(self) -> str:
        return str(self.line)


Frame = tuple[str, int, str]


# Looks that fell into the steps judged; those of the first steps show how a program is compiled.
TYPICAL_LOOKS = "typical_looks"


def prepare_looks(training: Training) -> None:
    """Make `sample_times` known, and the TYPICAL_LOOKS among them."""
    python_lines.prepare(training.run)
    training.run.make(
        TYPICAL_LOOKS,
        f"FROM sample_times SEMI JOIN ({steps.COUNTED}) judged USING (rank, step)",
    )


def line_of(
    training: Training, condition: str, *, into_modules: bool = False, looks: str = "sample_times"
) -> Seen | None:
    """The innermost line of the user's that most of the time agrees on.

    `condition` is SQL over `sample_times`: rank, step, phase, ts_ns, place, stack, below, dur_ns.
    """
    prepare_looks(training)
    rows = _without_late(
        training.rows(f"""
        SELECT stack, coalesce(waited_ns, 0) >= {LATE_NS} AS is_late,
               coalesce(waited_ns, 0) >= {CAUGHT_NS} AS is_caught,
               sum(dur_ns)::BIGINT AS dur_ns, count(*) AS looks, mode(below ORDER BY below) AS below
        FROM {looks} WHERE {condition} GROUP BY ALL
    """)
    )
    count = sum(row["looks"] for row in rows)
    if count < FEWEST_LOOKS:
        return None
    stacks = [(users_frames(json.loads(row["stack"]), into_modules), row["dur_ns"]) for row in rows]
    stacks = [(frames, dur_ns) for frames, dur_ns in stacks if frames]
    if not stacks:
        return None
    total_ns = sum(dur_ns for _, dur_ns in stacks)
    frame, ratio = _agreed(stacks, total_ns)
    below = max(rows, key=lambda row: row["dur_ns"])["below"]
    return Seen(Lines(frame[0], frame[1]), frame[2], ratio, count, below)


def function_at(training: Training, line: str) -> tuple[str, float] | None:
    """The function of the user's that this line is in, called in forward passes, and its part of
    the typical step. None for the forward pass itself, and for what calls it."""
    prepare_looks(training)
    rows = training.rows(f"""
        SELECT stack, phase, sum(dur_ns)::BIGINT AS dur_ns FROM {TYPICAL_LOOKS} GROUP BY ALL
    """)
    stacks = [(users_frames(json.loads(row["stack"])), row) for row in rows]
    functions = {
        (frame[0], frame[2])
        for frames, _ in stacks for frame in frames if str(Lines(frame[0], frame[1])) == line
    }  # fmt: skip
    if len(functions) != 1:
        return None
    ((file, function),) = functions
    inside = [
        row for frames, row in stacks
        if any((frame[0], frame[2]) == (file, function) for frame in frames)
    ]  # fmt: skip
    goes_on = any(row["phase"] in ("backward", "update") for row in inside)
    if function == "forward" or goes_on:
        return None
    total_ns = sum(row["dur_ns"] for row in rows)
    return function, sum(row["dur_ns"] for row in inside) / max(1, total_ns)


def _without_late(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Looks that came late lie in the last 5 ms of a stretch of Python. Where those that caught it
    are as many, stretches are long, and both kinds lie in the same: the time of the late ones is
    theirs. Where they are fewer, stretches are short, and what follows is all that can be seen."""
    caught = [row for row in rows if row["is_caught"]]
    late = [row for row in rows if row["is_late"] and not row["is_caught"]]
    caught_looks = sum(row["looks"] for row in caught)
    late_looks = sum(row["looks"] for row in late)
    if caught_looks < max(FEWEST_LOOKS, late_looks):
        return rows
    caught_ns = sum(row["dur_ns"] for row in caught)
    ratio = 1 + sum(row["dur_ns"] for row in late) / max(1, caught_ns)
    at_once = [row for row in rows if not row["is_late"]]
    return at_once + [{**row, "dur_ns": int(row["dur_ns"] * ratio)} for row in caught]


def is_library(file: str) -> bool:
    """Whether a file is not the user's own."""
    return any(part in file for part in _LIBRARIES)


def users_frames(stack: list[Frame], into_modules: bool = True) -> list[Frame]:
    """The user's own frames, outermost first; those of a model's parts only if asked for."""
    frames: list[Frame] = []
    for file, line, function in reversed(stack):
        if not into_modules and frames and str(file).endswith(_MODULE_CALL):
            break
        if not is_library(str(file)):
            frames.append((file, line, function))
    return frames


def _agreed(stacks: list[tuple[list[Frame], int]], total_ns: int) -> tuple[Frame, float]:
    """Go inwards as long as most of the time goes the same way."""
    depth, best, ratio = 0, stacks[0][0][0], 0.0
    while True:
        at_depth: dict[Frame, int] = defaultdict(int)
        for frames, dur_ns in stacks:
            if depth < len(frames):
                at_depth[tuple(frames[depth])] += dur_ns  # type: ignore[index]
        if not at_depth:
            return best, ratio
        frame = max(at_depth, key=lambda key: at_depth[key])
        if depth and at_depth[frame] < AGREED_RATIO * total_ns:
            return best, ratio
        best, ratio = frame, at_depth[frame] / max(1, total_ns)
        stacks = [(f, ns) for f, ns in stacks if depth < len(f) and tuple(f[depth]) == frame]
        depth += 1


def cpu_ratio(training: Training, phases: tuple[str, ...]) -> float | None:
    """How much of these parts of steps the training thread had a processor; None if unknown.

    A look knows the CPU time since the one before it, and how much of that time lay in which part:
    least squares tell the two apart.
    """
    prepare_looks(training)
    looks = training.run.sql(f"""
        SELECT rank, ts_ns, dur_ns, on_cpu_ns FROM {TYPICAL_LOOKS}
        WHERE on_cpu_ns IS NOT NULL AND dur_ns > 0 ORDER BY rank, ts_ns
    """).fetchnumpy()
    if len(looks["rank"]) < 2 * FEWEST_LOOKS:
        return None
    inside = np.zeros(len(looks["rank"]))
    passed_of = _times_in(training, phases)
    for rank, mine in by_rank(looks["rank"]).items():
        if passed := passed_of.get(rank):
            end_ns = looks["ts_ns"][mine]
            inside[mine] = passed(end_ns) - passed(end_ns - looks["dur_ns"][mine])
    parts = np.stack([inside, looks["dur_ns"] - inside], axis=1)
    if not inside.any():
        return None
    ratios, *_ = np.linalg.lstsq(parts, looks["on_cpu_ns"].astype(float), rcond=None)
    return float(np.clip(ratios[0], 0.0, 1.0))


def _times_in(training: Training, phases: tuple[str, ...]) -> dict[int, Callable[[Array], Array]]:
    """For each rank a function of moments: how much of these phases lies before each of them."""
    names = ", ".join(f"'{name}'" for name in phases)
    rows = training.run.sql(f"""
        SELECT rank, ts_ns, dur_ns FROM outline
        WHERE kind = 'phase' AND name IN ({names}) ORDER BY rank, ts_ns
    """).fetchnumpy()
    places = by_rank(rows["rank"]).items()
    return {rank: _passed(rows["ts_ns"][mine], rows["dur_ns"][mine]) for rank, mine in places}


def _passed(begins: Array, lengths: Array) -> Callable[[Array], Array]:
    moments = np.stack([begins, begins + lengths], axis=1).ravel().astype(float)
    after = np.cumsum(lengths)
    passed = np.stack([after - lengths, after], axis=1).ravel().astype(float)
    return lambda ts_ns: np.interp(ts_ns.astype(float), moments, passed)


def compiled_ns(training: Training, rank: int, steps: Collection[int]) -> int:
    """How long a compiler was seen at work in these steps."""
    rows = training.rows(
        """
        SELECT s.step, e.dur_ns FROM events e JOIN tracks t ON t.id = e.track_id
        ASOF JOIN step_times s ON s.rank = t.rank AND s.ts_ns <= e.ts_ns
        WHERE e.kind = 'annotation' AND starts_with(e.name, $name) AND t.rank = $rank
        """,
        {"name": COMPILATION, "rank": rank},
    )
    return sum(row["dur_ns"] for row in rows if row["step"] in steps)


def evaluated_ns(training: Training, rank: int) -> dict[int, tuple[int, bool]]:
    """By step: how long the evaluation in it takes, from its first forward pass to its last, and
    whether gradients were on."""
    rows = training.rows(
        """
        SELECT s.step, max(o.end_ns) - min(o.ts_ns) AS dur_ns,
               bool_or(o.name = $with_gradients) AS has_gradients
        FROM outline o ASOF JOIN step_times s ON s.rank = o.rank AND s.ts_ns <= o.ts_ns
        WHERE o.kind = 'annotation' AND o.name IN ($evaluation, $with_gradients)
          AND o.rank = $rank
        GROUP BY s.step
        """,
        {"rank": rank, "evaluation": EVALUATION, "with_gradients": EVALUATION_WITH_GRADIENTS},
    )
    return {row["step"]: (row["dur_ns"], row["has_gradients"]) for row in rows}
