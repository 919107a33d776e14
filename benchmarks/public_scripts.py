"""Public training scripts: what Strobe says of them, and what recording costs.

CASES is a JSON file, a list of scripts:

    [{"name": "mnist", "cwd": "…", "python": "…", "env": {}, "launcher": [], "args": ["main.py"],
      "long_args": ["main.py", "--epochs", "5"], "steps": 120, "ranks": 1}]

Each script runs once under `strobe run` without options; `steps` is the true number of updates per
rank (null: unknown). With --overhead, scripts that have `long_args` run bare and recorded in turns
instead, and the time of the whole command counts: until the script has ended, and until Strobe has
printed its verdict. One line of JSON per script goes to --output; a script that is already there is
not run again.
"""

import argparse
import json
import os
import statistics
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.blind import answer, call, names_in
from benchmarks.crowd import crowded


def main() -> None:
    args = _arguments()
    done = names_in(args.output)
    with crowded(args.crowded):
        for case in json.loads(args.cases.read_text()):
            if case["name"] in done or args.only not in case["name"]:
                continue
            if args.overhead and not case.get("long_args"):
                continue
            row = _overhead(case, args.repeat) if args.overhead else _judged(case, args.keep)
            with args.output.open("a") as file:
                file.write(json.dumps(row) + "\n")
            _print(row)


def _judged(case: dict[str, Any], keep: Path | None) -> dict[str, Any]:
    row = {"name": case["name"], "steps": case.get("steps"), "note": case.get("note")}
    with tempfile.TemporaryDirectory() as temporary:
        run = str((keep or Path(temporary)) / case["name"])
        try:
            call(_recorded(case, "args", run), case["cwd"], _environment(case))
            row.update(answer(case["python"], run))
        except subprocess.SubprocessError as error:
            row["problem"] = str(error)
    return row


def _overhead(case: dict[str, Any], repeat: int) -> dict[str, Any]:
    """Seconds of the whole command, bare and recorded in turns."""
    bare, recorded = [], []
    with tempfile.TemporaryDirectory() as temporary:
        for turn in range(repeat):
            bare.append(_seconds(case, _bare(case, "long_args")))
            run = f"{temporary}/{turn}"
            recorded.append(_seconds(case, _recorded(case, "long_args", run)))
    times = {"bare_s": bare, "recorded_s": recorded}
    ratio = statistics.median(recorded) / statistics.median(bare) - 1
    return {"name": case["name"], **times, "overhead": ratio}


def _seconds(case: dict[str, Any], command: list[str]) -> float:
    began = time.monotonic()
    call(command, case["cwd"], _environment(case))
    return time.monotonic() - began


def _bare(case: dict[str, Any], which: str) -> list[str]:
    return [case["python"], *case.get("launcher", []), *case[which]]


def _recorded(case: dict[str, Any], which: str, run: str) -> list[str]:
    return [case["python"], "-m", "strobe", "run", "-o", run, "--", *_bare(case, which)]


def _environment(case: dict[str, Any]) -> dict[str, str]:
    """With the modules that stand in for missing ones before those of ours."""
    given = dict(case.get("env") or {})
    paths = [given.get("PYTHONPATH"), os.environ.get("PYTHONPATH")]
    return {**given, "PYTHONPATH": os.pathsep.join(path for path in paths if path)}


def _print(row: dict[str, Any]) -> None:
    print(f"\n== {row['name']}: {row.get('problem') or row.get('note') or ''}")
    if "overhead" in row:
        print(f"   bare {row['bare_s']} s, recorded {row['recorded_s']} s: {row['overhead']:+.1%}")
    if "verdict" in row:
        print(f"   steps {row['recorded_steps']}, true {row['steps']}\n   {row['verdict']}")
        for found in row["findings"]:
            print(f"   - {found['rule']} {found['share']:.0%} {found['where'] or ''}", flush=True)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.public_scripts", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("cases", type=Path)
    parser.add_argument(
        "--output", type=Path, required=True, help="file for the rows, as JSON lines"
    )
    parser.add_argument("--only", default="", help="scripts with this in the name")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="keep the recordings there")
    parser.add_argument("--overhead", action="store_true", help="measure the cost of recording")
    parser.add_argument("--repeat", type=int, default=2, help="timings per script (default: 2)")
    parser.add_argument("--crowded", action="store_true", help="run alongside two busy loops")
    return parser.parse_args()


if __name__ == "__main__":
    main()
