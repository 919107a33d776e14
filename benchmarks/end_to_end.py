"""From the last recorded step to numbers on the screen: Strobe against torch.profiler with HTA.

    pip install traceinsight      (Holistic Trace Analysis; HTA_PYTHON may name another Python)
    python -m benchmarks.end_to_end [--steps N] [--repeat N]

Both record the same steps of the same loop. The clock runs from the end of the last step until a
summary of it has been printed: for Strobe that is ending the window, writing the trace,
building the tables and the summary; for the others it is torch.profiler's stop,
export_chrome_trace, and either its own key_averages table or HTA loading the trace. (HTA's
breakdowns need a GPU: on a CPU trace only its loading and its operator counts can be had.)
Each side runs in a process of its own, in turns.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

os.environ.setdefault("KINETO_LOG_LEVEL", "99")


def strobe_side(steps: int, folder: Path) -> float:
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
    began = time.perf_counter()
    profiler.stop()
    profiler._recorder.close("finished")
    subprocess.run([sys.executable, "-m", "strobe", "show", str(folder / "run")], check=True)
    return time.perf_counter() - began


def torch_side(steps: int, folder: Path, reader: str) -> float:
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
    began = time.perf_counter()
    profiler.stop()
    profiler.export_chrome_trace(str(folder / "rank-0.json.gz"))
    if reader == "key_averages":
        print(profiler.key_averages().table(sort_by="self_cpu_time_total", row_limit=10))
    else:
        read = (
            "from hta.trace_analysis import TraceAnalysis\n"
            f"t = TraceAnalysis(trace_files={{0: {str(folder / 'rank-0.json.gz')!r}}}, trace_dir='')\n"
            "frame = t.t.traces[0]\n"
            "print(frame.groupby('name')['dur'].agg(['count', 'sum']).nlargest(10, 'sum'))\n"
        )
        python = os.environ.get("HTA_PYTHON", sys.executable)
        subprocess.run([python, "-c", read], check=True, stderr=subprocess.DEVNULL)
    return time.perf_counter() - began


SIDES = {
    "strobe": strobe_side,
    "torch.profiler + HTA": lambda steps, folder: torch_side(steps, folder, "hta"),
    "torch.profiler + key_averages": lambda steps, folder: torch_side(
        steps, folder, "key_averages"
    ),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--side", choices=SIDES, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.side:
        with tempfile.TemporaryDirectory() as folder:
            seconds = SIDES[args.side](args.steps, Path(folder))
        print(f"seconds {seconds}")
        return
    times: dict[str, list[float]] = {side: [] for side in SIDES}
    for _ in range(args.repeat):
        for side in SIDES:
            done = subprocess.run(
                [sys.executable, "-m", "benchmarks.end_to_end", "--side", side,
                 "--steps", str(args.steps)],
                capture_output=True, text=True,
            )  # fmt: skip
            if done.returncode:
                print(f"{side}: not measured: {done.stderr.strip().splitlines()[-1]}")
                continue
            times[side].append(float(done.stdout.rsplit("seconds ", 1)[1]))
    for side, seconds in times.items():
        if seconds:
            ratio = statistics.median(seconds) / statistics.median(times["strobe"])
            print(
                f"{side:32} {statistics.median(seconds):7.2f} s  ({ratio:.1f} × Strobe's;"
                f" {len(seconds)} runs, {args.steps + 2} steps)"
            )


if __name__ == "__main__":
    main()
