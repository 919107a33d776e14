"""Judge the advice on scripts that other people wrote.

FOLDER/NAME/ has `truth.json` and either `fault.py` with `fixed.py`, or `healthy.py`. Each script
prints `train_seconds X` at its end. The truth is written by the author of the script:

    {"kind": "fault", "ranks": 1, "fault": "…", "line": "fault.py:31", "fix": "…", "steps": 120}

A script is recorded once, without options, and what Strobe answers first is what counts. The gain
is measured without Strobe, faulty and fixed script in turns. One line of JSON per case goes to
--output; a case that is already there is not run again. Whether the first finding names the
author's fault is for a person to decide: both are printed side by side.
"""

import argparse
import json
import os
import re
import signal
import statistics
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.crowd import crowded

# Far above what a script needs, on a machine that does other work too.
LIMIT_S = 600


def main() -> None:
    args = _arguments()
    done = names_in(args.output)
    with crowded(args.crowded):
        for truth in sorted(args.folder.glob("*/truth.json")):
            case = truth.parent
            if case.name in done or args.only not in case.name:
                continue
            row = _judge(case, json.loads(truth.read_text()), args)
            with args.output.open("a") as file:
                file.write(json.dumps(row) + "\n")
            _print(row)


def _judge(case: Path, truth: dict[str, Any], args: argparse.Namespace) -> dict[str, Any]:
    row: dict[str, Any] = {"name": case.name, **truth}
    script = case / ("fault.py" if truth["kind"] == "fault" else "healthy.py")
    launch = _launch(args.python, truth.get("ranks", 1))
    try:
        row.update(_recorded(script, launch, args))
        if truth["kind"] == "fault" and args.repeat:
            turns = [
                [_seconds(case / name, launch) for name in ("fault.py", "fixed.py")]
                for _ in range(args.repeat)
            ]
            row["seconds"] = turns
            before, after = (statistics.median(column) for column in zip(*turns, strict=True))
            row["measured"] = before / after
    except subprocess.SubprocessError as error:
        row["problem"] = str(error)
    return row


def _recorded(script: Path, launch: list[str], args: argparse.Namespace) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as temporary:
        run = str(args.keep / script.parent.name) if args.keep else f"{temporary}/run"
        call([args.python, "-m", "strobe", "run", "-q", "-o", run, "--", *launch, str(script)])
        return answer(args.python, run)


def answer(python: str, run: str) -> dict[str, Any]:
    """What Strobe says of a recording: steps of each rank, verdict and findings."""
    strobe = [python, "-m", "strobe"]
    advice = json.loads(call([*strobe, "advise", run, "--json"]))
    counted = json.loads(call([
        *strobe, "sql", run, "select rank, count(*) from steps group by rank", "--json",
    ]))  # fmt: skip
    return {
        "recorded_steps": [count for _, count in counted["rows"]],
        "verdict": advice["verdict"],
        "conditions": [finding["rule"] for finding in advice["conditions"]],
        "findings": [
            {key: finding[key] for key in ("rule", "title", "share", "expected_speedup",
                                           "speedup_range", "where", "stage", "fixes",
                                           "is_warning", "saves_at_start_ns")}
            for finding in advice["findings"]
        ],
    }  # fmt: skip


def _seconds(script: Path, launch: list[str]) -> float:
    """What the script itself measured, without Strobe."""
    output = call([*launch, str(script)])
    found = re.findall(r"train_seconds[ =:]+([0-9.]+)", output)
    if not found:
        raise subprocess.SubprocessError(f"{script.name} did not print train_seconds")
    return max(float(seconds) for seconds in found)


def _launch(python: str, ranks: int) -> list[str]:
    if ranks == 1:
        return [python]
    return [python, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks)]


def call(command: list[str], cwd: str | None = None, env: dict[str, str] | None = None) -> str:
    """Its output. Without `cwd` it works in an empty folder, in case a script leaves files."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as place:
        cache = {"TORCHINDUCTOR_CACHE_DIR": f"{place}/cache"}
        process = subprocess.Popen(
            command, cwd=cwd or place, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            start_new_session=True, env={**os.environ, **cache, **(env or {})},
        )  # fmt: skip
        try:
            output, errors = process.communicate(timeout=LIMIT_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)  # with everything it started
            raise
    if process.returncode:
        last = (errors.strip() or "no message").splitlines()[-1]
        raise subprocess.SubprocessError(f"{' '.join(command[-3:])}: {last}")
    return output


def _print(row: dict[str, Any]) -> None:
    print(f"\n== {row['name']}: {row.get('fault') or row['kind']} ({row.get('line', '')})")
    if problem := row.get("problem"):
        print(f"   FAILED: {problem}")
    if "verdict" not in row:
        return
    is_right = all(count == row["steps"] for count in row["recorded_steps"])
    expected = "" if is_right else f", EXPECTED {row['steps']}"
    print(f"   steps {row['recorded_steps']}{expected}")
    print(f"   {row['verdict']}")
    for found in row["findings"]:
        gain = f"{found['expected_speedup']:.2f}x"
        if found["speedup_range"]:
            gain += " ({:.2f} to {:.2f})".format(*found["speedup_range"])
        print(f"   - {found['rule']} {found['share']:.0%} {gain} {found['where'] or ''}")
    if "measured" in row:
        print(f"   measured {row['measured']:.2f}x", flush=True)


def names_in(output: Path) -> set[str]:
    """Cases that were judged before."""
    if not output.exists():
        return set()
    return {json.loads(line)["name"] for line in output.read_text().splitlines()}


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.blind", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("folder", type=Path)
    parser.add_argument("--python", required=True, help="interpreter with the framework and Strobe")
    parser.add_argument(
        "--output", type=Path, required=True, help="file for the rows, as JSON lines"
    )
    parser.add_argument("--only", default="", help="cases with this in the name")
    parser.add_argument("--repeat", type=int, default=2, help="timings per script (default: 2)")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="keep the recordings there")
    parser.add_argument("--crowded", action="store_true", help="run alongside two busy loops")
    return parser.parse_args()


if __name__ == "__main__":
    main()
