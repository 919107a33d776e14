"""Run the zoo of JAX: every script under `strobe run`, then `strobe advise`, and print what came.

The scripts are like those of benchmarks/zoo. The faulty and the repaired script of a pair are also
run without Strobe, in turns, by a stopwatch: the calls of their training step after the first ones.
With --xprof, what XProf concludes from the same windows is printed beside it.
"""

import argparse
import json
import os
import statistics
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from tests.frameworks.environment import environment, python_of

HOME = Path(__file__).resolve().parent
SCRIPTS = HOME / "scripts"
REPAIRED = "_repaired"
# Far above what any script needs, on a machine that does other work too.
LIMIT_S = 300
# A foretold speed-up is right within this ratio of the measured one.
RIGHT_WITHIN = 0.25

# Which part of the input pipeline is at fault, where the rule is to name it.
STAGES = {
    "decoded_in_python": "transform",
    "slow_store": "reading",
    "tokens_from_a_service": "reading",
}
# Scripts that start processes of their own, which the stopwatch cannot look into.
STARTS_PROCESSES = ("one_has_more",)
# Faults that are truly there as well, and why.
COMPILES = {"warm-up": "compiles at its first step, as any JAX training"}


def main() -> None:
    args = _arguments()
    faulty = [
        path for path in sorted(SCRIPTS.glob("*/*.py"))
        if path.parent.name != "healthy" and REPAIRED not in path.stem and args.only in str(path)
    ]  # fmt: skip
    all_healthy = sorted((SCRIPTS / "healthy").glob("*.py"))
    healthy = [path for path in all_healthy if args.only in str(path)]
    hits, predicted, alarms = 0, 0, 0
    says = _Xprof(args.xprof)
    for path in faulty:
        hit, right, false = _judge_pair(path, args.repeat, says)
        hits, predicted, alarms = hits + hit, predicted + right, alarms + false
    for path in healthy:
        alarms += _alarms(path, says)
    print(f"\n{hits} of {len(faulty)} faults found first, {predicted} speed-ups foretold within "
          f"{RIGHT_WITHIN:.0%}, {alarms} false alarms in {len(faulty) + len(healthy)} scripts "
          "without a fault")  # fmt: skip


def _judge_pair(path: Path, repeat: int, says: "_Xprof") -> tuple[bool, bool, int]:
    rule, twin = path.parent.name.replace("_", "-"), path.with_stem(path.stem + REPAIRED)
    findings = _advice(path, says)["findings"]
    others = [finding for finding in findings if finding["rule"] not in COMPILES]
    top = others[0] if others else {}
    hit = top.get("rule") == rule and top.get("stage") == STAGES.get(path.stem)
    told = next((f for f in findings if f["rule"] == rule), None)
    line = f"{path.parent.name}/{path.stem:28} {'found' if hit else 'MISSED':7}"
    right = False
    if told is not None and repeat and path.stem not in STARTS_PROCESSES:
        turns = [(_seconds(path), _seconds(twin)) for _ in range(repeat)]
        before, after = (statistics.median(times) for times in zip(*turns, strict=True))
        measured, foretold = before / after, told["expected_speedup"]
        right = abs(foretold / measured - 1) <= RIGHT_WITHIN
        line += f" {told['share']:5.0%} foretold {foretold:5.2f}x measured {measured:5.2f}x"
    print(f"{line}  {top.get('where') or ''}", flush=True)
    says.tell()
    if not hit:
        print("    " + "; ".join(f"{f['rule']} {f['share']:.0%}" for f in findings) + " found")
    return hit, right, _alarms(twin, says)


def _alarms(path: Path, says: "_Xprof") -> int:
    found = [f for f in _advice(path, says)["findings"] if f["rule"] not in COMPILES]
    state = "clear" if not found else "FALSE ALARM"
    print(f"{path.parent.name}/{path.stem:28} {state}", flush=True)
    says.tell()
    for finding in found:
        print(f"    {finding['rule']} {finding['share']:.0%}: {finding['title']}")
    return len(found)


class _Xprof:
    """What XProf says of the recording that was judged last."""

    def __init__(self, python: str | None) -> None:
        self._python, self._told = python, ""

    def look(self, run: str) -> None:
        if self._python:
            done = subprocess.run(
                [self._python, str(HOME / "xprof_says.py"), run], capture_output=True, text=True,
                timeout=LIMIT_S, check=False,
            )  # fmt: skip
            self._told = (done.stdout or done.stderr).strip().rpartition("\n")[2]

    def tell(self) -> None:
        if self._told:
            print(f"    XProf: {self._told}", flush=True)


def _advice(path: Path, says: _Xprof) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        _call("-m", "strobe", "run", "-q", "-o", f"{folder}/run", str(path))
        answer: dict[str, Any] = json.loads(
            _call("-m", "strobe", "advise", f"{folder}/run", "--json")
        )
        says.look(f"{folder}/run")
    return answer


def _seconds(path: Path) -> float:
    """Of the loop past its first steps, by a stopwatch that is not Strobe's."""
    return float(_call(str(HOME / "stopwatch.py"), str(path)).splitlines()[-1])


def _call(*command: str) -> str:
    """Its output. It works in an empty folder, in case a script leaves files."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as place:
        done = subprocess.run(
            [str(python_of("jax")), *command], cwd=place, env=environment(), text=True,
            capture_output=True, timeout=LIMIT_S, check=False,
        )  # fmt: skip
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}\n{done.stderr}")
    return done.stdout


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.zoo_jax", description=__doc__)
    parser.add_argument("--only", metavar="NAME", default="", help="scripts with this in the path")
    parser.add_argument("--repeat", type=int, default=3, metavar="N",
                        help="turns of the stopwatch; 0 for none (default 3)")  # fmt: skip
    parser.add_argument("--xprof", metavar="PYTHON", help="one that has xprof installed")
    return parser.parse_args()


if __name__ == "__main__":
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    main()
