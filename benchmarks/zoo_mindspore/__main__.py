"""Record every MindSpore script of the zoo and print what is advised, beside what is true.

    PYTHON -m benchmarks.zoo_mindspore [--only NAME] [--keep FOLDER]

PYTHON is one that has MindSpore and Strobe. The faulty and the repaired script of a pair are also
recorded lightly: the ratio of their steps is what the foretold speed-up is held against.
"""

import argparse
import json
import os
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

SCRIPTS = Path(__file__).resolve().parent / "scripts"
REPAIRED = "_repaired"
LIMIT_S = 300

# Which part of the input pipeline is at fault, where the rule is to name it.
STAGES = {"object_store": "reading", "pixel_loops": "transform"}
# Scripts that msrun starts, in so many processes.
RANKS = {"statistics_on_one_rank": 2}
# Faults that are truly there as well, and why.
ALSO_TRUE = {
    # Every graph is compiled at its first step, which is long beside a training of seconds.
    "": ("warm-up",),
    # Two processes with a thread pool each share the cores of a small machine.
    "statistics_on_one_rank": ("exposed-communication", "thread-oversubscription"),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="scripts that have this in their name")
    parser.add_argument("--keep", type=Path, help="folder that keeps the recordings")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        home = args.keep or Path(folder)
        wrong = sum(_judge(path, home) for path in _scripts(args.only))
    print(f"\n{wrong or 'nothing'} wrong")


def _scripts(only: str) -> list[Path]:
    found = sorted(SCRIPTS.glob("*/*.py"))
    return [p for p in found if only in f"{p.parent.name}/{p.stem}"]


def _judge(path: Path, home: Path) -> int:
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
    if is_faulty and is_right:
        line += f"  foretold {top['expected_speedup']:.2f}, measured {_speedup(path, home):.2f}"
    print(line, flush=True)
    return int(not is_right)


def _also_true(stem: str, expected: str | None) -> set[str]:
    return {*ALSO_TRUE[""], *ALSO_TRUE.get(stem, ())} - {expected or ""}


def _speedup(path: Path, home: Path) -> float:
    twin = path.with_name(f"{path.stem}{REPAIRED}.py")
    return _step_ns(_record(path, home, "--light")) / _step_ns(_record(twin, home, "--light"))


def _step_ns(run: Path) -> float:
    """Of a step, past those in which everything is still compiled."""
    query = "select avg(dur_ns) as ns from events where kind = 'step' and step > 5"
    answer = json.loads(_call(["-m", "strobe", "sql", str(run), query, "--json"]))
    return float(answer["rows"][0][0])


def _record(path: Path, home: Path, *options: str) -> Path:
    run = home / "-".join([path.parent.name, path.stem, *options])
    if not run.exists():
        _call(["-m", "strobe", "run", "-q", "-o", str(run), *options, "--", *_launch(path)])
    return run


def _launch(path: Path) -> list[str]:
    ranks = RANKS.get(path.stem.removesuffix(REPAIRED), 1)
    if ranks == 1:
        return [sys.executable, str(path)]
    with socket.socket() as found:  # the last one's is not free at once
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    many = [f"--worker_num={ranks}", f"--local_worker_num={ranks}", f"--master_port={port}"]
    return [str(Path(sys.executable).with_name("msrun")), *many, "--join=True", str(path)]


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
