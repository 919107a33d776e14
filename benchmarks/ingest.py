"""How fast, and in how much memory, are traces of others read?

    pip install traceinsight orjson      (traceinsight is HTA; HTA_PYTHON may name another Python)
    python -m benchmarks.ingest [--megabytes 353] [--curve] [--huge-gigabytes 10] [--data FOLDER]

`--megabytes 0 --data FOLDER` compares Strobe with HTA on the traces of a folder alone.

One run, the same files, each side in a process of its own, in turns:
- strobe: `strobe import` to stored tables with parents, launchers, steps; its memory is the sum of
  its processes at the worst moment.
- HTA: loading the trace as its own tutorials do.
- json, orjson: the text to Python objects, and nothing else.
- msgspec into columns: the limit of the design on one core. The text, in chunks, decoded by one
  schema into the same columns (numbers as arrays, texts as codes), and thrown away.
- Strobe's decoder: the same with its shorter schema for operators of the host.
- that on all cores at once, which share caches and memory then, as Strobe's processes do.
- decoding alone: the same by the clock, from the start of Python to its end, unpacking included:
  what a Strobe would take that did nothing else. Of small files that is mostly Python with numpy.

`--curve` reads traces of 0.1 to 10 million events; `--huge-gigabytes` one far larger than memory
should be. Files are made from a real recording of this machine, repeated at other times and under
other numbers.
"""

import argparse
import compileall
import gzip
import os
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import IO

os.environ.setdefault("KINETO_LOG_LEVEL", "99")
MEGABYTE = 1e6


def recorded(path: Path) -> None:
    """A real trace of a CPU, with shapes: 20 steps of the benchmark's model."""
    import torch

    from benchmarks.overhead import SIZES, loop_of

    loop = loop_of(*SIZES["20 ms"])
    loop(3)
    profiler = torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU], record_shapes=True
    )
    profiler.start()
    loop(20)
    profiler.stop()
    profiler.export_chrome_trace(str(path))


def repeated(source: Path, target: Path, copies: int) -> None:
    """The same steps again and again: later in time, under other numbers."""
    text = source.read_bytes()
    start = text.index(b'"traceEvents": [') + len(b'"traceEvents": [')
    end = text.rindex(b'],"traceName"')
    body = text[start:end]
    numbers = {
        name: max(int(n) for n in re.findall(rb'"%s": (\d+)' % name, body)) + 1
        for name in (b"External id", b"Sequence number")
    }
    times = [int(n) for n in re.findall(rb'"ts": (\d+)\.', body)]
    numbers[b"ts"] = max(times) - min(times) + 1000
    pattern = re.compile(rb'"(ts|External id|Sequence number)": (\d+)')
    with target.open("wb") as file:
        file.write(text[:start])
        for copy in range(copies):
            file.write(b"," * bool(copy))
            file.write(
                pattern.sub(
                    lambda m, c=copy: b'"%b": %d' % (m[1], int(m[2]) + c * numbers[m[1]]), body
                )
            )
        file.write(text[end:])


def opened(path: str | Path) -> IO[bytes]:
    return gzip.open(path, "rb") if str(path).endswith(".gz") else open(path, "rb")  # noqa: SIM115


def events_and_bytes(path: Path) -> tuple[int, int]:
    events = size = 0
    with opened(path) as file:
        for block in iter(lambda: file.read(1 << 24), b""):
            events, size = events + block.count(b'"ph"'), size + len(block)
    return events, size


# The sides. Each runs in a process of its own and is timed from outside.


def hta_side(path: str) -> None:
    from hta.trace_analysis import TraceAnalysis

    TraceAnalysis(trace_files={0: path}, trace_dir="")


def json_side(path: str, module: str = "json") -> None:
    loads = __import__(module).loads
    with opened(path) as file:
        loads(file.read())


def limit_side(
    path: str, processes: int = 1, is_plain: bool = False, is_whole: bool = False
) -> None:
    """Each process has its share of the text; what counts is the time of their processors, or, of
    the whole, the time from outside."""
    from strobe.ingest.formats.json_chunks import EventFile
    from strobe.ingest.formats.kineto import batch
    from strobe.ingest.formats.kineto.json_objects import needs_exact

    if is_plain:
        batch.NOT_OF_HOST = b""  # is in every text
    file = EventFile(Path(path))
    chunks = list(file.chunks())
    is_exact = needs_exact(chunks[0])
    told, tell = os.pipe()
    for number in range(processes):
        if not os.fork():
            began = time.process_time()
            for chunk in chunks[number::processes]:
                batch.decode(chunk, file.first_keys, is_exact)
            os.write(tell, b"%f\n" % (time.process_time() - began))
            os._exit(0)
    os.close(tell)
    with open(told) as answers:
        seconds = sum(map(float, answers))
    for _ in range(processes):
        os.wait()
    if not is_whole:
        print(f"seconds {seconds}")


CORES = len(os.sched_getaffinity(0))
DECODING = "decoding alone"
SIDES = {
    "HTA": hta_side,
    "json": json_side,
    "orjson": lambda path: json_side(path, "orjson"),
    "msgspec into columns": lambda path: limit_side(path, is_plain=True),
    "Strobe's decoder": limit_side,
    "that on all cores": lambda path: limit_side(path, CORES),
    DECODING: lambda path: limit_side(path, CORES, is_whole=True),
}
LIMITS = ("msgspec into columns", "Strobe's decoder", "that on all cores")


def measured(side: str, path: Path) -> tuple[float, float, float] | None:
    """Wall seconds, CPU seconds and peak bytes of all processes of a side; None if it failed."""
    with tempfile.TemporaryDirectory() as folder:
        return _measured(side, _command(side, path, Path(folder)))


def _command(side: str, path: Path, folder: Path) -> list[str]:
    if side == "strobe":  # as a user calls it, to the end of its process
        return [
            sys.executable,
            "-m",
            "strobe",
            "import",
            str(path),
            "-o",
            str(folder / "run"),
            "-q",
        ]
    python = os.environ.get("HTA_PYTHON", sys.executable) if side == "HTA" else sys.executable
    return [python, "-m", "benchmarks.ingest", "--side", side, str(path)]


def _measured(side: str, command: list[str]) -> tuple[float, float, float] | None:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    watch = _MemoryWatch(process.pid)
    out, error = process.communicate()
    seconds = time.perf_counter() - began
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    peak = watch.stop()
    if process.returncode:
        print(f"  {side}: not measured: {(error.strip().splitlines() or ['no word'])[-1]}")
        return None
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    if "seconds " in out:  # it has timed itself
        seconds = cpu = float(out.rsplit("seconds ", 1)[1])
    return seconds, cpu, peak


class _MemoryWatch:
    """The largest sum of the memory of a process and all below it, looked at every 20 ms."""

    def __init__(self, pid: int) -> None:
        self._pid, self._peak, self._is_over = pid, 0, False
        self._thread = threading.Thread(target=self._look)
        self._thread.start()

    def stop(self) -> float:
        self._is_over = True
        self._thread.join()
        return float(self._peak)

    def _look(self) -> None:
        while not self._is_over:
            self._peak = max(self._peak, sum(map(_resident, _family(self._pid))))
            time.sleep(0.02)


def _family(pid: int) -> list[int]:
    found = [pid]
    for parent in found:
        try:
            text = Path(f"/proc/{parent}/task/{parent}/children").read_text()
        except OSError:
            continue
        found += map(int, text.split())
    return found


def _resident(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * resource.getpagesize()
    except (OSError, IndexError):
        return 0


Medians = dict[str, tuple[float, float, float]]


def compare(path: Path, sides: list[str], repeat: int) -> Medians:
    events, size = events_and_bytes(path)
    print(f"\n{path.name}: {size / MEGABYTE:,.1f} MB of text, {events:,} events")
    found: dict[str, list[tuple[float, float, float]]] = {side: [] for side in sides}
    for _ in range(repeat):
        for side in sides:
            result = measured(side, path)
            if result:
                found[side].append(result)
    medians: Medians = {}
    for side, results in found.items():
        if results:
            wall, cpu, peak = (statistics.median(column) for column in zip(*results, strict=True))
            medians[side] = wall, cpu, peak
    for side in medians:
        print(f"  {side:<22}", *_told(side, medians, events, size), flush=True)
    return medians


def _told(side: str, medians: Medians, events: int, size: int) -> list[str]:
    wall, cpu, peak = medians[side]
    words = [
        f"{size / MEGABYTE / wall:7.1f} MB/s", f"{events / wall / 1e6:6.2f} M events/s",
        f"{wall:7.2f} s wall", f"{cpu:7.2f} s CPU", f"{peak / MEGABYTE:7,.0f} MB",
    ]  # fmt: skip
    hta = medians.get("HTA")
    if hta and side in ("strobe", DECODING):
        words.append(f"{hta[0] / wall:.1f} x HTA ({hta[1] / cpu:.1f} by CPU)")
    shares = [f"{medians[limit][1] / cpu:.0%}" for limit in LIMITS if limit in medians]
    if shares and side == "strobe":
        words.append(f"{', '.join(shares)} of the limits a core")
    return words


def compare_all(paths: list[Path], repeat: int) -> None:
    """Every file, and all of them together where both sides could read them."""
    found = [compare(path, ["strobe", "HTA", DECODING], repeat) for path in paths]
    both = [medians for medians in found if len(medians) == 3]
    if not both:
        return
    print(f"\nall {len(both)} files that both read")
    for number, what in enumerate(("wall", "CPU")):
        strobe, hta, least = (
            sum(m[side][number] for m in both) for side in ("strobe", "HTA", DECODING)
        )
        print(
            f"  {what}: HTA {hta:.2f} s, strobe {strobe:.2f} s ({hta / strobe:.1f} x), "
            f"{DECODING} {least:.2f} s ({hta / least:.1f} x)"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=353)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--curve", action="store_true")
    parser.add_argument("--huge-gigabytes", type=float, default=0)
    parser.add_argument("--data", type=Path, help="a folder of further traces: *.json.gz")
    parser.add_argument("--only", default="", help="of those, the ones with this in their path")
    parser.add_argument("--side", choices=SIDES, help=argparse.SUPPRESS)
    parser.add_argument("path", nargs="?", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.side:
        SIDES[args.side](args.path)
        return
    with tempfile.TemporaryDirectory() as name:
        _run(args, Path(name))


def _run(args: argparse.Namespace, folder: Path) -> None:
    import strobe

    compileall.compile_dir(Path(strobe.__file__).parent, quiet=1)  # as an installed package is
    one = folder / "one.json"
    events = size = 0
    if args.megabytes or args.curve or args.huge_gigabytes:
        recorded(one)
        events, size = events_and_bytes(one)
    if args.megabytes:
        path = folder / f"cpu_{args.megabytes}MB.json"
        repeated(one, path, max(1, round(args.megabytes * MEGABYTE / size)))
        compare(path, ["strobe", *SIDES], args.repeat)
        path.unlink()
    if args.data:
        paths = [path for path in sorted(args.data.rglob("*.json.gz")) if args.only in str(path)]
        compare_all(paths, args.repeat)
    for wanted in (1e5, 3e5, 1e6, 3e6, 1e7) if args.curve else ():
        path = folder / f"{wanted:.0e}_events.json"
        repeated(one, path, max(1, round(wanted / events)))
        compare(path, ["strobe"], 1)
        path.unlink()
    if args.huge_gigabytes:
        path = folder / f"{args.huge_gigabytes:g}GB.json"
        repeated(one, path, round(args.huge_gigabytes * 1e9 / size))
        compare(path, ["strobe"], 1)


if __name__ == "__main__":
    main()
