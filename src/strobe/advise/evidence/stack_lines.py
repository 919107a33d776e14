"""Which line of the user's code the training thread was at, from the samples of its stack."""

import json
from collections import defaultdict
from collections.abc import Callable, Collection
from typing import Any, NamedTuple

import numpy as np

from strobe.advise.training import Array, Lines, Training, by_rank
from strobe.analyse.tables.steps import python_lines, steps
from strobe.frameworks import of_all
from strobe.model.journal import COMPILATION
from strobe.model.schema import EVALUATION, EVALUATION_WITH_GRADIENTS

# A line is named instead of its caller if at least this part of the time is there.
AGREED_RATIO = 0.6

# Fewer samples may have hit any line by chance.
FEWEST_LOOKS = 2

# A thread that computes in Python releases the GIL after 5 ms at the latest. A sample that waited
# that long interrupted the computation. A sample that waited less was taken only after the thread
# had moved on to code that releases the GIL by itself, and shows that line instead.
CAUGHT_NS = 4_900_000
LATE_NS = 500_000

# A thread that is on a core for less than this part of a period is waiting, not computing.
WAITING_CPU_RATIO = 0.5

_LIBRARIES = (
    "/site-packages/", "/dist-packages/", "/lib/python3", "/strobe/collect/", "<",
    *of_all(lambda framework: framework.generated),
)  # fmt: skip
# Frames inside these are the model's layers: they show which layer ran, not what called it.
_MODULE_CALLS = of_all(lambda framework: framework.module_call)


class Seen(NamedTuple):
    """The line at which the training thread was sampled."""

    line: Lines
    function: str
    ratio: float  # of the sampled time, that this line accounts for
    looks: int  # the number of samples
    below: str | None  # the most frequent innermost frame

    def __str__(self) -> str:
        return str(self.line)


Frame = tuple[str, int, str]


# Samples in the steps judged. Those of the first steps show how a program is compiled.
TYPICAL_LOOKS = "typical_looks"


def prepare_looks(training: Training) -> None:
    """Create the tables `sample_times` and TYPICAL_LOOKS."""
    python_lines.prepare(training.run)
    training.run.make(
        TYPICAL_LOOKS,
        f"FROM sample_times SEMI JOIN ({steps.COUNTED}) judged USING (rank, step)",
    )


def line_of(
    training: Training, condition: str, *, into_modules: bool = False, looks: str = "sample_times"
) -> Seen | None:
    """The innermost line of the user's code that accounts for most of the time.

    `condition` is SQL over `sample_times`: rank, step, phase, ts_ns, place, stack, below, dur_ns.
    """
    prepare_looks(training)
    rows = _without_late(
        training.rows(f"""
        SELECT stack, coalesce(waited_ns, 0) >= {LATE_NS} AS is_late,
               coalesce(waited_ns, 0) >= {CAUGHT_NS} AS interrupted,
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


def own_python(training: Training, phases: tuple[str, ...]) -> tuple[float, str | None]:
    """The part of step time in which the user's own lines, or a library that is not part of the
    framework, run in these phases, and the line that runs longest. A line must be sampled several
    times to count."""
    prepare_looks(training)
    packages = tuple(f"/{package}/" for package in training.framework.packages)
    names = ", ".join(f"'{name}'" for name in phases)
    rows = training.rows(f"""
        SELECT stack, phase IN ({names}) AS is_inside, sum(dur_ns)::BIGINT AS dur_ns,
               count(*) AS samples
        FROM {TYPICAL_LOOKS} GROUP BY ALL
    """)
    by_line: dict[Frame, list[int]] = defaultdict(lambda: [0, 0])
    for row in (row for row in rows if row["is_inside"]):
        stack = json.loads(row["stack"])
        users = next((n for n, frame in enumerate(stack) if not is_library(str(frame[0]))), None)
        if users is None or any(_is_below(frame, packages) for frame in stack[:users]):
            continue
        found = by_line[tuple(stack[users])]
        found[0] += row["dur_ns"]
        found[1] += row["samples"]
    own = {frame: ns for frame, (ns, samples) in by_line.items() if samples >= FEWEST_LOOKS}
    if not own:
        return 0.0, None
    file, line, _ = max(own, key=own.__getitem__)
    total_ns: int = sum(row["dur_ns"] for row in rows)
    return sum(own.values()) / max(1, total_ns), str(Lines(file, line))


def _is_below(frame: Frame, folders: tuple[str, ...]) -> bool:
    return any(folder in str(frame[0]) for folder in folders)


def function_at(training: Training, line: str) -> tuple[str, float] | None:
    """The user's function that contains this line and is called in forward passes, and its part
    of the typical step. None for the forward pass itself and for its callers."""
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
    """Give the time of late samples to those that interrupted a computation.

    A late sample was requested in the last 5 ms of a computation in Python. Where at least as many
    samples interrupted one, computations are long, and both kinds belong to the same ones. Where
    fewer did, computations are short, and only the code that follows them can be sampled.
    """
    interrupting = [row for row in rows if row["interrupted"]]
    late = [row for row in rows if row["is_late"] and not row["interrupted"]]
    late_count = sum(row["looks"] for row in late)
    if sum(row["looks"] for row in interrupting) < max(FEWEST_LOOKS, late_count):
        return rows
    interrupting_ns = sum(row["dur_ns"] for row in interrupting)
    ratio = 1 + sum(row["dur_ns"] for row in late) / max(1, interrupting_ns)
    in_time = [row for row in rows if not row["is_late"]]
    return in_time + [{**row, "dur_ns": int(row["dur_ns"] * ratio)} for row in interrupting]


def is_library(file: str) -> bool:
    """Whether a file belongs to a library rather than to the user."""
    return any(part in file for part in _LIBRARIES)


def users_frames(stack: list[Frame], into_modules: bool = True) -> list[Frame]:
    """The user's own frames, outermost first; without `into_modules`, none inside the model."""
    frames: list[Frame] = []
    for file, line, function in reversed(stack):
        if not into_modules and frames and str(file).endswith(_MODULE_CALLS):
            break
        if not is_library(str(file)):
            frames.append((file, line, function))
    return frames


def _agreed(stacks: list[tuple[list[Frame], int]], total_ns: int) -> tuple[Frame, float]:
    """Follow the stacks inwards as long as most of the time is in one frame."""
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
    """The part of these phases in which the training thread was on a core; None if unknown.

    Each sample has the CPU time since the previous sample, which may span several phases. Least
    squares separate the CPU time of these phases from that of the others.
    """
    prepare_looks(training)
    samples = training.run.sql(f"""
        SELECT rank, ts_ns, dur_ns, on_cpu_ns FROM {TYPICAL_LOOKS}
        WHERE on_cpu_ns IS NOT NULL AND dur_ns > 0 ORDER BY rank, ts_ns
    """).fetchnumpy()
    if len(samples["rank"]) < 2 * FEWEST_LOOKS:
        return None
    inside = np.zeros(len(samples["rank"]))
    passed_of = _times_in(training, phases)
    for rank, mine in by_rank(samples["rank"]).items():
        if passed := passed_of.get(rank):
            end_ns = samples["ts_ns"][mine]
            inside[mine] = passed(end_ns) - passed(end_ns - samples["dur_ns"][mine])
    parts = np.stack([inside, samples["dur_ns"] - inside], axis=1)
    if not inside.any():
        return None
    ratios, *_ = np.linalg.lstsq(parts, samples["on_cpu_ns"].astype(float), rcond=None)
    return float(np.clip(ratios[0], 0.0, 1.0))


def _times_in(training: Training, phases: tuple[str, ...]) -> dict[int, Callable[[Array], Array]]:
    """For each rank, a function of timestamps: the time in these phases before each of them."""
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
    """How long a compiler ran in these steps."""
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
    """By step: how long its evaluation takes, from the first forward pass to the last, and whether
    gradients were enabled."""
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
