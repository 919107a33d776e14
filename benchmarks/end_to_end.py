"""From the last step to a summary on the screen: Strobe against torch.profiler with HTA.

    pip install traceinsight      (Holistic Trace Analysis; HTA_PYTHON may name another Python)
    python -m benchmarks.end_to_end [--recorded 6,22,88] [--after 400] [--repeat 5]

Both sides run benchmarks/end_to_end_train.py as a user would, as a process of its own, and record
the same steps with the same options: `strobe run --steps A:B`, which ends with its summary; or the
script's own torch.profiler with export_chrome_trace, and HTA on that file when the script has
ended. The clock runs from the moment at which the last step was done, which the script tells,
until the last line of the summary has come through the pipe.

Once the recorded steps are the last of the run; once training goes on for `--after` steps. Sides
take turns. HTA's breakdowns need a GPU: on a CPU trace only its loading and its operator times can
be had, so that is all it is asked for.

Beside the times stands what nobody can go below: the script's own exit without any profiler, and,
where the recorded steps are the last, the stop and export that torch does for the last piece.
"""

import argparse
import gzip
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
TRAIN = HERE / "end_to_end_train.py"
FIRST = 6
HTA = """
import sys
from hta.trace_analysis import TraceAnalysis
analysis = TraceAnalysis(trace_files={0: sys.argv[1]}, trace_dir="")
frame = analysis.t.traces[0]
print(frame.groupby("name")["dur"].agg(["count", "sum"]).nlargest(10, "sum"))
print(len(frame), "events")
"""


@dataclass
class Result:
    seconds: float  # from the last step to the summary
    floor: float  # of which before the trace was on disk
    events: int
    megabytes: float  # of trace, uncompressed


def strobe_side(steps: int, end: int, folder: Path) -> Result:
    run = folder / "run"
    command = [sys.executable, "-m", "strobe", "run", "-o", str(run), "--steps", f"{FIRST}:{end}"]
    said, last_step, _ = watched([*command, str(TRAIN), str(steps)])
    shown = next(at for at, text in reversed(said) if b"strobe: recorded to" in text)
    raw = run / "rank_0" / "raw"
    facts = [json.loads(line) for line in (raw / "facts.jsonl").read_text().splitlines()]
    ended = next(fact["monotonic_ns"] for fact in facts if fact["type"] == "end")
    size = sum(unpacked_bytes(path) for path in raw.glob("window-*.trace.json.gz"))
    line = next(text for _, text in said if b"  events  " in text)
    events = int(line.split()[1].replace(b",", b""))
    return Result((shown - last_step) / 1e9, (ended - last_step) / 1e9, events, size / 1e6)


def torch_side(steps: int, end: int, folder: Path) -> Result:
    trace = folder / "trace.json.gz"
    command = [sys.executable, str(TRAIN), str(steps), f"{FIRST}:{end}", str(trace)]
    _, last_step, exited = watched(command)
    said, _, _ = watched([os.environ.get("HTA_PYTHON", sys.executable), "-c", HTA, str(trace)])
    shown, text = said[-1]
    size = unpacked_bytes(trace)
    events = int(text.split()[0])
    return Result((shown - last_step) / 1e9, (exited - last_step) / 1e9, events, size / 1e6)


def watched(command: list[str]) -> tuple[list[tuple[int, bytes]], int, int]:
    """Run it: the lines it wrote and when each came, when its last step was, when it had ended."""
    source = str(HERE.parent / "src")
    paths = os.pathsep.join(filter(None, [source, os.environ.get("PYTHONPATH", "")]))
    environment = {**os.environ, "KINETO_LOG_LEVEL": "99", "PYTHONPATH": paths}
    said, last_step = [], 0
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            said.append((time.monotonic_ns(), line))
            if line.startswith(b"last step "):
                last_step = int(line.split()[2])
    ended = time.monotonic_ns()
    if process.returncode:
        raise SystemExit(b"".join(line for _, line in said).decode())
    return said, last_step, ended


def unpacked_bytes(path: Path) -> int:
    with gzip.open(path) as file:
        return len(file.read())


def bare_exit(steps: int) -> float:
    """What the script itself takes to leave after its last step, with no profiler at all."""
    _, last_step, ended = watched([sys.executable, str(TRAIN), str(steps)])
    return (ended - last_step) / 1e9


def compare(recorded: int, after: int, repeat: int) -> None:
    end = FIRST + recorded
    steps = end - 1 + after
    results: dict[str, list[Result]] = {"strobe run": [], "torch.profiler + HTA": []}
    for _ in range(repeat):
        for name, side in zip(results, (strobe_side, torch_side), strict=True):
            with tempfile.TemporaryDirectory(prefix="end-to-end-") as folder:
                results[name].append(side(steps, end, Path(folder)))
    ours, theirs = results.values()
    print(f"{recorded} steps recorded, then {after} more: {ours[0].events:,} events,"
          f" {ours[0].megabytes:.0f} MB of trace, {repeat} runs each")  # fmt: skip
    for name, found in results.items():
        floor = statistics.median(result.floor for result in found)
        until = "the trace was written" if found is ours else "the script had ended"
        times = spread([result.seconds for result in found])
        print(f"  {name:22} {times}   {floor:.2f} s of it until {until}")
    ratios = [b.seconds / a.seconds for a, b in zip(ours, theirs, strict=True)]
    median = statistics.median(b.seconds for b in theirs) / statistics.median(
        a.seconds for a in ours
    )
    print(f"  {median:.1f} × as quick by medians; turn by turn {min(ratios):.1f} …"
          f" {max(ratios):.1f} ×", flush=True)  # fmt: skip


def spread(seconds: list[float]) -> str:
    middle = statistics.median(seconds)
    return f"{middle:6.2f} s [{min(seconds):.2f} … {max(seconds):.2f}]"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--recorded", default="6,22,88", help="numbers of steps to record")
    parser.add_argument("--after", type=int, default=400, help="steps that follow them")
    parser.add_argument("--repeat", type=int, default=5)
    args = parser.parse_args()
    exits = [bare_exit(20) for _ in range(args.repeat)]
    print(f"the script without any profiler leaves {spread(exits).strip()} after its last step")
    for recorded in map(int, args.recorded.split(",")):
        for after in (args.after, 0):
            compare(recorded, after, args.repeat)


if __name__ == "__main__":
    main()
