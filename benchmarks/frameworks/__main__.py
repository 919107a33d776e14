"""The same little training in torch, JAX and MindSpore, recorded by one command each.

    python -m benchmarks.frameworks --jax PYTHON --mindspore PYTHON [--repeat N] [--keep FOLDER]

Each PYTHON has its framework and Strobe. For each framework: are the losses the same bit for bit,
do Strobe's steps agree with a stopwatch in the script, and what does recording cost, light and in
full, beside the framework's own profiler? Sides are run in turns; a step's cost is the processor
time that a fifth of the steps stay below. What light recording costs is less than the noise of
that; so it is told of the training thread alone as well, and of Strobe's own threads. Then
`strobe compare` shows the three side by side.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.frameworks.scripts.common import RECORDED, STEPS

SCRIPTS = Path(__file__).resolve().parent / "scripts"
LIMIT_S = 300
# Steps in which everything warms up.
WARM_UP = 15
SIDES = ("bare", "light", "profiled", "full")


def main() -> None:
    args = _arguments()
    pythons = {"torch": args.torch, "jax": args.jax, "mindspore": args.mindspore}
    with tempfile.TemporaryDirectory() as folder:
        home = args.keep or Path(folder)
        home.mkdir(parents=True, exist_ok=True)
        for name, python in pythons.items():
            if python:
                _report(name, _turns(name, python, home, args.repeat))
        runs = [str(home / f"{name}-full-0") for name, python in pythons.items() if python]
        subprocess.run([args.torch, "-m", "strobe", "compare", *runs], check=True)


def _turns(name: str, python: str, home: Path, repeat: int) -> dict[str, list[dict[str, Any]]]:
    told: dict[str, list[dict[str, Any]]] = {side: [] for side in SIDES}
    for turn in range(repeat):
        for side in SIDES[:: 1 if turn % 2 == 0 else -1]:
            told[side].append(_run(name, python, home / f"{name}-{side}-{turn}", side))
    return told


def _run(name: str, python: str, there: Path, side: str) -> dict[str, Any]:
    """What the script told of itself, and of a recording, Strobe's steps."""
    out = there.with_suffix(".json")
    script = [str(SCRIPTS / f"train_{name}.py"), str(out)]
    command = [python, *script, *(["profiled"] if side == "profiled" else [])]
    if side in ("light", "full"):
        which = ["--light"] if side == "light" else ["--steps", f"{RECORDED.start}:{RECORDED.stop}"]
        command = [python, "-m", "strobe", "run", "-q", *which, "-o", str(there), *script]
    subprocess.run(command, check=True, timeout=LIMIT_S, capture_output=True)
    told: dict[str, Any] = json.loads(out.read_text())
    if side in ("light", "full"):
        query = "SELECT dur_ns - recorder_ns AS ns, is_slowed FROM steps ORDER BY step"
        answer = subprocess.run(
            [python, "-m", "strobe", "sql", "--json", str(there), query],
            check=True, capture_output=True, text=True,
        )  # fmt: skip
        told["strobe"] = json.loads(answer.stdout)
    return told


def _report(name: str, told: dict[str, list[dict[str, Any]]]) -> None:
    print(f"\n{name}")
    losses = {tuple(each["losses"]) for side in told.values() for each in side}
    print(f"  losses {'the same bit for bit' if len(losses) == 1 else 'DIFFER'}")
    for each in told["light"]:
        _report_steps(each)
    bare = [_quiet(each["cpu_ns"][WARM_UP:]) for each in told["bare"]]
    light = [_quiet(each["cpu_ns"][WARM_UP:]) for each in told["light"]]
    print(f"  bare step {statistics.median(bare) / 1e6:.2f} ms of processor time")
    print(f"  light     {_against(light, bare)}")
    _report_threads(told)
    inside = slice(RECORDED.start, RECORDED.stop - 2)
    for side in ("profiled", "full"):
        cost = [_quiet(each["cpu_ns"][inside]) for each in told[side]]
        print(f"  {side:9} {_against(cost, bare)}")


def _report_threads(told: dict[str, list[dict[str, Any]]]) -> None:
    """Where the framework computes on threads of its own, the training thread's processor time is
    that of Python, little and steady."""
    median = statistics.median
    own = {
        side: [median(each["thread_ns"][WARM_UP:]) / 1e3 for each in told[side]]
        for side in ("bare", "light")
    }
    more = [light - bare for light, bare in zip(own["light"], own["bare"], strict=True)]
    beside = [
        (each["beside_ns"][1] - each["beside_ns"][0]) / (STEPS - STEPS // 2) / 1e3
        for each in told["light"]
    ]
    wall_us = median(median(each["wall_ns"][WARM_UP:]) for each in told["bare"]) / 1e3
    print(f"    on the training thread, {median(own['bare']):.0f} us a step without: "
          f"{median(more):+.0f} us [{min(more):+.0f} .. {max(more):+.0f}], "
          f"{median(more) / wall_us:+.2%} of a step of {wall_us / 1e3:.1f} ms; on Strobe's threads "
          f"{median(beside):.0f} us, {median(beside) / wall_us:.2%}")  # fmt: skip


def _report_steps(each: dict[str, Any]) -> None:
    steps = each["strobe"]["rows"]
    if len(steps) != STEPS:
        print(f"  {len(steps)} steps instead of {STEPS}")
        return
    ours = [row[0] for row in steps[WARM_UP:]]
    ratio = statistics.median(ours) / statistics.median(each["wall_ns"][WARM_UP:])
    total = sum(ours) / sum(each["wall_ns"][WARM_UP:])
    told = f"median {ratio - 1:+.2%}, sum {total - 1:+.2%}"
    print(f"  {len(steps)} steps; against the stopwatch: {told}")


def _quiet(values: list[int]) -> float:
    return float(sorted(values)[len(values) // 5])


def _against(side: list[float], bare: list[float]) -> str:
    ratios = sorted(a / b - 1 for a, b in zip(side, bare, strict=True))
    return f"{statistics.median(ratios):+.2%} [{ratios[0]:+.2%} .. {ratios[-1]:+.2%}]"


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.frameworks", description=__doc__)
    parser.add_argument("--torch", default=sys.executable, metavar="PYTHON")
    parser.add_argument("--jax", metavar="PYTHON")
    parser.add_argument("--mindspore", metavar="PYTHON")
    parser.add_argument("--repeat", type=int, default=5, metavar="N")
    parser.add_argument("--keep", type=Path, metavar="FOLDER")
    return parser.parse_args()


if __name__ == "__main__":
    main()
