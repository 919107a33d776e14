"""Record every MindSpore script of the zoo and print what is advised, beside what is true.

    PYTHON -m benchmarks.zoo_mindspore [--only NAME] [--keep FOLDER] [--repeat N]

PYTHON is one that has MindSpore and Strobe. The faulty and the repaired script of a pair are also
run without Strobe, in turns, by a stopwatch: the ratio of their times is what the foretold speed-up
is held against.
"""

import argparse
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

SCRIPTS = Path(__file__).resolve().parent / "scripts"
STOPWATCH = Path(__file__).resolve().parent / "stopwatch.py"
REPAIRED = "_repaired"
LIMIT_S = 300
# The first steps compile what later ones find ready; the advice does not judge them either.
WARM_UP_STEPS = 3
# A foretold speed-up is right within this ratio of the measured one.
RIGHT_WITHIN = 0.25

# Which part of the input pipeline is at fault, where the rule is to name it.
STAGES = {"object_store": "reading", "pixel_loops": "transform"}
# Scripts that msrun starts, in so many processes.
RANKS = {"statistics_on_one_rank": 2}
# Faults that are truly there as well, and why.
ALSO_TRUE = {
    # Every graph is compiled at its first step, which is long beside a training of seconds.
    "": ("warm-up",),
    # Items are handed over one by one, which takes cores from training: with whole batches as
    # items it is 1.4 times as quick (four turns of a stopwatch: 5.0 to 5.4 s against 3.6 to 3.8).
    "model_train": ("crowded-cores",),
    # The same, with operations of MindData in Python beside: 2.0 times, of three turns each.
    "pixel_loops": ("crowded-cores",),
    # Two processes with a thread pool each share the cores of a small machine.
    # Items one by one take cores as above: 1.26 times, the median of three turns (1.1 to 1.4).
    "statistics_on_one_rank": (
        "crowded-cores",
        "exposed-communication",
        "thread-oversubscription",
    ),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="scripts that have this in their name")
    parser.add_argument("--keep", type=Path, help="folder that keeps the recordings")
    parser.add_argument(
        "--repeat", type=int, default=3, metavar="N",
        help="turns of the stopwatch for each pair; 0 for none (default 3)",
    )  # fmt: skip
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        home = args.keep or Path(folder)
        home.mkdir(parents=True, exist_ok=True)
        wrong = sum(_judge(path, home, args.repeat) for path in _scripts(args.only))
    print(f"\n{wrong or 'nothing'} wrong")


def _scripts(only: str) -> list[Path]:
    found = sorted(SCRIPTS.glob("*/*.py"))
    return [p for p in found if only in f"{p.parent.name}/{p.stem}"]


def _judge(path: Path, home: Path, repeat: int) -> int:
    """How much of the advice on a script is wrong."""
    stem = path.stem.removesuffix(REPAIRED)
    is_faulty = path.parent.name != "healthy" and stem == path.stem
    expected = path.parent.name.replace("_", "-") if is_faulty else None
    advice = _advice(_record(path, home))
    findings = [f for f in advice["findings"] if f["rule"] not in _also_true(stem, expected)]
    top = findings[0] if findings else {}
    is_right = top.get("rule") == expected
    is_right &= not is_faulty or top.get("stage") == STAGES.get(stem)
    told = f"{top.get('rule', 'nothing')} {top.get('stage') or ''}".strip()
    line = f"{path.parent.name}/{path.stem:34} {told:30} {'right' if is_right else 'WRONG'}"
    if top:
        line += f"  {top['share']:.0%} at {top['where']}: {top['title']}"
    if is_faulty and is_right and repeat:
        foretold, measured = top["expected_speedup"], _speedup(path, home, repeat)
        error = foretold / measured - 1
        off = " !" if abs(error) > RIGHT_WITHIN else ""
        line += f"  foretold {foretold:.2f}, measured {measured:.2f}, {error:+.0%}{off}"
    print(line, flush=True)
    return int(not is_right)


def _also_true(stem: str, expected: str | None) -> set[str]:
    return {*ALSO_TRUE[""], *ALSO_TRUE.get(stem, ())} - {expected or ""}


def _speedup(path: Path, home: Path, repeat: int) -> float:
    """Medians of turns: the faulty one, the repaired one, the faulty one, ..."""
    twin = path.with_name(f"{path.stem}{REPAIRED}.py")
    turns = [(_seconds(path, home, turn), _seconds(twin, home, turn)) for turn in range(repeat)]
    faulty, repaired = (statistics.median(times) for times in zip(*turns, strict=True))
    return faulty / repaired


def _seconds(path: Path, home: Path, turn: int) -> float:
    """Of all steps past the warm-up, less what others took of the training thread's core."""
    kept = home / f"{path.parent.name}-{path.stem}-moments-{turn}.json"
    if not kept.exists():
        with tempfile.TemporaryDirectory() as folder:
            _call(_launch(path, STOPWATCH, folder))
            kept.write_text((Path(folder) / "rank_0.json").read_text())
    moments = json.loads(kept.read_text())
    began, ended = moments[WARM_UP_STEPS - 1], moments[-1]
    passed, without_core = (end - begin for begin, end in zip(began, ended, strict=True))
    return float(passed - without_core)


def _record(path: Path, home: Path) -> Path:
    run = home / f"{path.parent.name}-{path.stem}"
    if not run.exists():
        command = [sys.executable, *_launch(path)]
        _call(["-m", "strobe", "run", "-q", "-o", str(run), "--", *command])
    return run


def _launch(path: Path, *before: str | Path) -> list[str]:
    """What Python is given to run the script; `before` stands in front of it."""
    script = [str(word) for word in (*before, path)]
    ranks = RANKS.get(path.stem.removesuffix(REPAIRED), 1)
    if ranks == 1:
        return script
    with socket.socket() as found:  # the last one's is not free at once
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    many = [f"--worker_num={ranks}", f"--local_worker_num={ranks}", f"--master_port={port}"]
    return [str(Path(sys.executable).with_name("msrun")), *many, "--join=True", *script]


def _advice(run: Path) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(_call(["-m", "strobe", "advise", str(run), "--json"]))
    return answer


def _call(words: list[str]) -> str:
    """Its output. It works in an empty folder, in case a script leaves files."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"  # for msrun
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as place:
        done = subprocess.run(
            [sys.executable, *words], cwd=place, capture_output=True, text=True, timeout=LIMIT_S,
            check=False, env={**os.environ, "PATH": path},
        )  # fmt: skip
    if done.returncode:
        raise SystemExit(f"{' '.join(words[-2:])}: {done.stderr.strip()[-2000:]}")
    return done.stdout


if __name__ == "__main__":
    main()
