"""Does a run of days open as one of minutes does? A recorded training, as often as wanted in a row.

    python -m benchmarks.long_run [--steps N …] [--keep FOLDER]

A small training is recorded once, for real; its journal is then written again and again, each time
later, until there are so many steps. For each number of steps: the size of the recording, the time
until the summary is there (tables are built first), the time of asking again, and the memory.
"""

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from strobe.model.journal import FACTS_FILE, HEADER, HEADER_BYTES, MAGIC, RECORD, Mark

RECORDED_STEPS = 10_000
SEGMENT_BYTES = 1 << 20
TRAINING = f"""
import torch
torch.set_num_threads(1)
model = torch.nn.Linear(8, 8)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
samples = torch.utils.data.TensorDataset(torch.randn({2 * RECORDED_STEPS}, 8))
for (x,) in torch.utils.data.DataLoader(samples, batch_size=2):
    optimizer.zero_grad()
    model(x).square().mean().backward()
    optimizer.step()
"""


def record(there: Path) -> None:
    script = there.with_suffix(".py")
    script.write_text(TRAINING)
    subprocess.run(
        [sys.executable, "-m", "strobe", "run", "-q", "--light", "-o", str(there), str(script)],
        check=True,
    )


def repeat(recorded: Path, there: Path, times: int) -> None:
    """The recording as if its training had gone on, `times` as long."""
    shutil.copytree(recorded, there, ignore=shutil.ignore_patterns("journal-*", "tables"))
    raw, words = there / "rank_0" / "raw", RECORD.size // 8
    records = np.concatenate([
        np.fromfile(path, dtype=np.int64, offset=HEADER_BYTES)[: _capacity() * words]
        for path in sorted((recorded / "rank_0" / "raw").glob("journal-*.bin"))
    ]).reshape(-1, words)  # fmt: skip
    records = records[records[:, 0] > 0]
    span_ns = int(np.ptp(records[:, 0])) + 1_000_000
    is_clock = records[:, 2] >> 48 == Mark.CLOCK  # its value is the time of day
    filled, number = np.empty((0, words), dtype=np.int64), 0
    for turn in range(times):
        later = records.copy()
        later[:, 0] += turn * span_ns
        later[is_clock, 1] += turn * span_ns
        filled = np.concatenate([filled, later])
        while len(filled) >= _capacity() or (turn == times - 1 and len(filled)):
            number += 1
            _write_segment(raw, number, filled[: _capacity()])
            filled = filled[_capacity() :]
    _end_later(raw / FACTS_FILE, (times - 1) * span_ns)


def _capacity() -> int:
    return (SEGMENT_BYTES - HEADER_BYTES) // RECORD.size


def _write_segment(raw: Path, number: int, records: "np.ndarray") -> None:
    segment = bytearray(SEGMENT_BYTES)
    header = json.dumps({"segment": number, "pid": os.getpid()}).encode()
    HEADER.pack_into(segment, 0, MAGIC, len(header))
    segment[HEADER.size : HEADER.size + len(header)] = header
    segment[HEADER_BYTES : HEADER_BYTES + records.nbytes] = records.tobytes()
    (raw / f"journal-{number:04}.bin").write_bytes(segment)


def _end_later(path: Path, by_ns: int) -> None:
    facts = [json.loads(line) for line in path.read_text().splitlines()]
    for fact in facts:
        if fact["type"] == "end":
            fact["monotonic_ns"] += by_ns
            fact["unix_ns"] += by_ns
    path.write_text("".join(json.dumps(fact) + "\n" for fact in facts))


def measure(there: Path, steps: int) -> None:
    took = {}
    for which in ("first", "again"):
        began = time.perf_counter()
        subprocess.run([sys.executable, "-m", "strobe", "show", str(there)], check=True,
                       stdout=subprocess.DEVNULL)  # fmt: skip
        took[which] = time.perf_counter() - began
    bytes_of = {name: _bytes(there, name) for name in ("journal-*.bin", "*.parquet")}
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1e6
    journal = bytes_of["journal-*.bin"]
    print(
        f"{steps:>10,} steps  journal {journal / 1e6:7.1f} MB ({journal / steps:.0f} B a step)  "
        f"tables {bytes_of['*.parquet'] / 1e6:6.1f} MB  summary {took['first']:6.1f} s "
        f"({took['first'] / steps * 1e6:.0f} us a step), again {took['again']:5.1f} s  "
        f"peak {peak:.2f} GB",
        flush=True,
    )


def _bytes(there: Path, pattern: str) -> int:
    return sum(path.stat().st_size for path in there.rglob(pattern))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.long_run", description=__doc__)
    parser.add_argument("--steps", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--keep", type=Path, metavar="FOLDER")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        home = args.keep or Path(folder)
        home.mkdir(parents=True, exist_ok=True)
        if not (home / "recorded").is_dir():
            record(home / "recorded")
        for steps in args.steps:
            there = home / f"steps-{steps}"
            shutil.rmtree(there, ignore_errors=True)
            repeat(home / "recorded", there, max(1, round(steps / RECORDED_STEPS)))
            measure(there, steps)


if __name__ == "__main__":
    main()
