"""From the last recorded step to numbers on the screen: Strobe against torch.profiler with HTA.

    pip install traceinsight      (Holistic Trace Analysis; HTA_PYTHON may name another Python)
    python -m benchmarks.end_to_end [--steps N] [--repeat N]

Both record the same steps of the same loop. The clock runs from the end of the last step until a
summary of it has been printed. In the first table the recorded steps are the last of the run: the
time holds torch.profiler's own stop on both sides, which nobody can shorten; in the second,
training went on after them, as it does by default, and the trace was written meanwhile. HTA's
breakdowns need a GPU: on a CPU trace only its loading and its operator counts can be had. Each
side runs in a process of its own, in turns.
"""

import argparse
import functools
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

os.environ.setdefault("KINETO_LOG_LEVEL", "99")


def strobe_side(steps: int, after: int, folder: Path) -> float:
    import strobe
    from benchmarks.overhead import SIZES, loop_of

    loop = loop_of(*SIZES["20 ms"])
    loop(3)
    profiler = strobe.Profiler(folder / "run", steps=[1, 100_000])
    profiler.start()
    loop(2)
    windows = profiler._recorder.hooks.windows
    windows._piece_steps = 10**9  # one piece, like the other side
    loop(steps)
    if after:
        windows.end()
        windows._is_over = True
        loop(after)
    began = time.perf_counter()
    profiler.stop()
    profiler._recorder.close("finished")
    subprocess.run([sys.executable, "-m", "strobe", "show", str(folder / "run")], check=True)
    return time.perf_counter() - began


def torch_side(steps: int, after: int, folder: Path, reader: str) -> float:
    import torch

    from benchmarks.overhead import SIZES, loop_of

    loop = loop_of(*SIZES["20 ms"])
    loop(3)
    profiler = torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU], record_shapes=True
    )
    profiler.start()
    loop(2)
    loop(steps)
    trace = str(folder / "rank-0.json.gz")
    began = time.perf_counter()
    profiler.stop()
    profiler.export_chrome_trace(trace)
    if after:
        loop(after)
        began = time.perf_counter()
    if reader == "key_averages":
        print(profiler.key_averages().table(sort_by="self_cpu_time_total", row_limit=10))
    else:
        read = (
            "from hta.trace_analysis import TraceAnalysis\n"
            f"t = TraceAnalysis(trace_files={{0: {trace!r}}}, trace_dir='')\n"
            "frame = t.t.traces[0]\n"
            "print(frame.groupby('name')['dur'].agg(['count', 'sum']).nlargest(10, 'sum'))\n"
        )
        python = os.environ.get("HTA_PYTHON", sys.executable)
        subprocess.run([python, "-c", read], check=True, stderr=subprocess.DEVNULL)
    return time.perf_counter() - began


SIDES = {
    "strobe": strobe_side,
    "torch.profiler + HTA": functools.partial(torch_side, reader="hta"),
    "torch.profiler + key_averages": functools.partial(torch_side, reader="key_averages"),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--after", type=int, default=0, help=argparse.SUPPRESS)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--side", choices=SIDES, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.side:
        with tempfile.TemporaryDirectory() as folder:
            seconds = SIDES[args.side](args.steps, args.after, folder=Path(folder))
        print(f"seconds {seconds}")
        return
    for after in (0, 50):
        print(f"recorded: {args.steps + 2} steps, then {after} more")
        compare(args, after)


def compare(args: argparse.Namespace, after: int) -> None:
    times: dict[str, list[float]] = {side: [] for side in SIDES}
    for _ in range(args.repeat):
        for side in SIDES:
            command = [sys.executable, "-m", "benchmarks.end_to_end", "--side", side]
            command += ["--steps", str(args.steps), "--after", str(after)]
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode:
                print(f"{side}: not measured: {done.stderr.strip().splitlines()[-1]}")
                continue
            times[side].append(float(done.stdout.rsplit("seconds ", 1)[1]))
    for side, seconds in times.items():
        if seconds:
            ratio = statistics.median(seconds) / statistics.median(times["strobe"])
            middle = statistics.median(seconds)
            print(f"  {side:32} {middle:7.2f} s  {ratio:5.1f} × Strobe's  ({len(seconds)} runs)")


if __name__ == "__main__":
    main()
