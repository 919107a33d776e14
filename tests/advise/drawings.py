"""Trainings, drawn: steps of given parts, one after the other."""

from strobe.model.journal import NO_CORE_COUNTER
from strobe.model.schema import PHASES
from strobe.store.run import Run


def steps(*parts_us: dict[str, int], rank: int = 0, window: tuple[int, int] | None = None) -> str:
    """One line for each step and phase. `steps({"gap": 10, "forward": 20}, ...)` in µs.

    `window` (first, last) is a window of full recording around those steps, counted from 1.
    """
    lines, now = [], 0
    begins, ends = {}, {}
    for number, parts in enumerate(parts_us, 1):
        begins[number] = now
        start = now
        for phase in PHASES:
            if parts.get(phase):
                end = now + parts[phase] * 1000
                lines.append(f"{rank}/steps phase:{phase} {now}..{end} step={number}")
                now = end
        lines.append(f"{rank}/steps step:step~{number} {start}..{now} step={number}")
        ends[number] = now
    if window:
        first, last = begins[window[0]], ends[window[1]]
        lines.append(f"{rank}/steps annotation:strobe~window~1 {first}..{last}")
    return "\n".join(lines) + "\n"


def same(parts_us: dict[str, int], count: int) -> list[dict[str, int]]:
    return [parts_us] * count


def no_core(*points: tuple[int, int], rank: int = 0):
    """The counter: at so many µs so many µs without a core."""
    return {"counters": {"rank": [rank] * len(points), "ts_ns": [at * 1000 for at, _ in points],
                         "name": [NO_CORE_COUNTER] * len(points),
                         "value": [ready * 1000 for _, ready in points]}}  # fmt: skip


def of_framework(run: Run, name: str = "torch") -> Run:
    """The run, as one that this framework trained."""
    for rank in run.manifest.ranks:
        rank.frameworks = {name: "1.0"}
    return run
