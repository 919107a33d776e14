"""How quickly an XPlane is read, and how much memory that takes.

    python -m benchmarks.xplane [--events 3200000] [--repeat 3] [--file FILE]

It writes a profile as JAX writes it of a small model on the CPU: a thread of Python that
dispatches, and two threads that run the operations of a program, with the same stats on its events,
and as much of the profiler's own bookkeeping (two events of three). Then, each time in a process of
its own:

- read: from the file to spans with kinds, names, scopes, work and steps;
- import: `strobe import`, to stored tables with parents linked.

Events are those in the file. Seconds are of processor time, for "and core" to mean something; the
time on the clock stands beside them. Memory is the most that the process had at any time.
"""

import argparse
import functools
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.ingest.readers.xspace import (
    PlaneWriter,
    Ref,
    instruction,
    metadata_plane,
    program,
    put,
    space,
    task_plane,
    varint,
)

OPS = 96  # operations of the program, a third each of forward, backward and update
THREADS = 2
PER_STEP = 1070
READ = """
import json, resource, sys, time
from pathlib import Path
from strobe.ingest.trace import span_spool
from strobe.ingest.formats.registry import xplane
from strobe.ingest.importing.sources import Source
from strobe.ingest.trace.spans import Vocabulary
before = time.process_time(), time.perf_counter()
with span_spool.scratch_in(Path(sys.argv[2])):
    trace = xplane.read(Source("xplane", [sys.argv[1]]), Vocabulary())
after = time.process_time(), time.perf_counter()
print(json.dumps({
    "cpu": after[0] - before[0], "wall": after[1] - before[1], "spans": trace.spans.rows,
    "steps": len(trace.steps.step_ts_ns), "problems": len(trace.said.counts),
    "mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
}))
"""
IMPORT = """
import json, resource, sys, time
from strobe.cli import main
before = time.perf_counter()
assert main(["import", sys.argv[1], "-o", sys.argv[2] + "/run", "-q"]) == 0
used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
print(json.dumps({
    "cpu": sum(u.ru_utime + u.ru_stime for u in used), "wall": time.perf_counter() - before,
    "mb": max(u.ru_maxrss for u in used) / 1024,
}))
"""


def write(path: Path, events: int) -> None:
    """A profile of about so many events."""
    host = PlaneWriter("/host:CPU")
    lines = []
    for thread in range(THREADS + 1):
        parts = []
        for step in range(events // PER_STEP):
            written = _dispatch(host, step) if thread == 0 else _operations(host, step, thread)
            parts.append(b"".join(put(4, event) for event in written))
        name = "python" if thread == 0 else f"tf_XLAEigen/{thread}"
        lines.append(put(1, thread) + put(2, name) + put(3, 0) + b"".join(parts))
    host.lines = lines
    names = [_op_name(number) for number in range(OPS)]
    given = [instruction(n, f"fusion.{n}", "fusion", names[n], (128, 256)) for n in range(OPS)]
    module = metadata_plane(("jit_train_step", 7, program("jit_train_step", *given)))
    path.write_bytes(space(module, host, task_plane()))


def _op_name(number: int) -> str:
    passes = ("jvp(Net)", "transpose(jvp(Net))", "")
    around = passes[number * 3 // OPS]
    layer = f"/{around}/Block_{number % 8}/Dense_0" if around else ""
    return f"jit(train_step){layer}/dot_general"


def _event(host: PlaneWriter, name: str, start_ns: int, dur_ns: int, stats: bytes) -> bytes:
    length = b"\x18" + _varint(dur_ns * 1000) if dur_ns else b""
    id, start = _varint(host.event_id(name)), varint(start_ns * 1000)
    return b"\x08" + id + b"\x10" + start + length + stats


_varint = functools.lru_cache(varint)


def _dispatch(host: PlaneWriter, step: int) -> list[bytes]:
    """What the thread of Python does in a step: 106 events."""
    start = step * 3_000_000
    announced = put(4, host.stat("_r", 1)) + put(4, host.stat("step_num", step))
    found = [_event(host, "train", start, 2_900_000, announced)]
    for number in range(105):
        name = ("PjitFunction(train_step)", "Wait for usage holds", "$core.py:12 get")[number % 3]
        found.append(_event(host, name, start + 1000 + number * 9000, 4000, b""))
    return found


def _operations(host: PlaneWriter, step: int, thread: int) -> list[bytes]:
    """What one thread does in a step: 144 operations, each with its end and marks around it."""
    run = put(4, host.stat("run_id", 508_908_652 + step))
    source = put(4, host.stat("_src", Ref("xla/backends/cpu/runtime/thunk_executor.cc")))
    module = put(4, host.stat("hlo_module", Ref("jit_train_step")))
    around = module + put(4, host.stat("program_id", 7)) + run
    around += put(4, host.stat("device_ordinal", 0)) + source
    found = []
    for number in range(482 // 3):
        op = f"fusion.{number * OPS // 161}"
        at = step * 3_000_000 + number * 17_000
        named, begins, ends = _flow(host, op, number + (thread << 33))
        found.append(_event(host, op, at, 12_000, named + around + begins))
        found.append(_event(host, f"end: {op}", at + 12_000, 300, ends + source))
        found.append(_event(host, "ThreadpoolListener::Record", at + 13_000, 0, begins + source))
    return found


@functools.lru_cache(maxsize=1024)
def _flow(host: PlaneWriter, op: str, flow: int) -> tuple[bytes, bytes, bytes]:
    """An operation's name, and the numbers that its beginning and its end have in common."""
    begins = put(4, host.stat("_pt", 0)) + put(4, host.stat("_p", flow))
    ends = put(4, host.stat("_ct", 0)) + put(4, host.stat("_c", flow))
    return put(4, host.stat("hlo_op", Ref(op))), begins, ends


def measured(script: str, file: Path) -> dict[str, float]:
    with tempfile.TemporaryDirectory(prefix="xplane-") as folder:
        command = [sys.executable, "-c", script, str(file), folder]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def compare(file: Path, events: int, repeat: int) -> None:
    size = file.stat().st_size
    print(f"{file.name}: {events:,} events, {size / 1e6:.0f} MB")
    for name, script in (("read", READ), ("import", IMPORT)):
        found = sorted((measured(script, file) for _ in range(repeat)), key=lambda r: r["cpu"])
        best, most = found[0], max(result["mb"] for result in found)
        print(
            f"  {name:7} {best['cpu']:6.2f} s of processor time ({best['wall']:.2f} s),"
            f" {events / best['cpu'] / 1e6:5.2f} million events a second and core,"
            f" {size / best['cpu'] / 1e6:4.0f} MB/s, {most:5.0f} MB at most",
            flush=True,
        )
        if "spans" in best:
            print(f"          {best['spans']:,.0f} spans, {best['steps']:,.0f} steps,"
                  f" {best['problems']:.0f} problems")  # fmt: skip


def counted(file: Path) -> int:
    """How many events a file holds."""
    from strobe.ingest.formats.xplane.events import Wanted, blocks
    from strobe.ingest.formats.xplane.file import XFile, line, outline

    with XFile(file) as opened:
        return sum(
            len(block.metadata) + block.left_out
            for plane in outline(opened).planes
            for place in plane.lines
            for block in blocks(opened, line(opened, *place), Wanted(plane))
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--events", type=int, default=3_200_000)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--file", type=Path, help="a profile that is there already")
    parser.add_argument("--write", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.write:
        write(args.write, args.events)
        return
    if args.file:
        compare(args.file, counted(args.file), args.repeat)
        return
    with tempfile.TemporaryDirectory(prefix="xplane-") as folder:
        file = Path(folder) / "generated.xplane.pb"
        # A process begins with the most memory that the one that started it ever had.
        command = [sys.executable, "-m", "benchmarks.xplane", "--write", str(file)]
        subprocess.run([*command, "--events", str(args.events)], check=True)
        compare(file, counted(file), args.repeat)


if __name__ == "__main__":
    main()
