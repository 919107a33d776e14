"""How fast metrics are exported, compared with TensorBoard's own writer.

    python -m benchmarks.summary.export [--scalars 1000000] [--turns 3]

A run with this many scalars in five tags is exported as TensorBoard's event files and as
MindSpore's summary, and SummaryWriter of torch writes the same scalars, in turns. Times are of the
clock and of the processor, without the start of Python; the export includes reading the stored
tables. Needs `pip install tensorboard`.
"""

import argparse
import shutil
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np

from strobe.model.manifest import Manifest, Rank
from strobe.model.metric_tables import SCALARS
from strobe.show.formats import mindspore_summary, tensorboard
from strobe.store import columns
from strobe.store.nullable import Nullable
from strobe.store.run import Run
from strobe.store.strings import Strings

TAGS = ["loss", "learning_rate", "gradient_norm", "accuracy/train", "samples_per_second"]


def drawn(folder: Path, count: int) -> Run:
    home = folder / "rank_0" / "tables"
    home.mkdir(parents=True)
    number = np.arange(count)
    tag = (number % len(TAGS)).astype(np.int32)
    values = np.random.default_rng(0).random(count, dtype=np.float32).astype(np.float64)
    zeros = np.zeros(count, dtype=np.int64)
    table = {
        "rank": zeros, "tag": Strings(tag, TAGS), "step": number // len(TAGS),
        "ts_ns": number * 1000, "value": values,
        "source": Strings(zeros.astype(np.int32), ["strobe.log"]), "attempt": zeros + 1,
        "epoch": Nullable(values, np.ones(count, dtype=np.bool_)),
    }  # fmt: skip
    columns.write(SCALARS, table, home / "scalars.parquet")
    manifest = Manifest(started_unix_ns=1_790_000_000 * 10**9, recorded_by="a benchmark")
    manifest.ranks = [Rank(rank=0, pid=1, host="host")]
    return Run(folder, manifest, [folder / "rank_0"])


def with_summary_writer(run: Run, folder: Path) -> float:
    from torch.utils.tensorboard import SummaryWriter

    rows = run.sql("SELECT tag, value, step, ts_ns / 1e9 FROM scalars").fetchall()
    writer = SummaryWriter(str(folder))
    began = time.perf_counter(), time.process_time()
    for tag, value, step, seconds in rows:
        writer.add_scalar(tag, value, step, seconds)
    writer.close()
    return print_row("SummaryWriter.add_scalar", began, len(rows), folder)


def print_row(what: str, began: tuple[float, float], count: int, folder: Path) -> float:
    took, processor = time.perf_counter() - began[0], time.process_time() - began[1]
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    print(
        f"{what:28} {took:8.2f} s {processor:8.2f} s {count / took:12,.0f}/s {size / 1e6:8.1f} MB"
    )
    return took


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scalars", type=int, default=1_000_000)
    parser.add_argument("--turns", type=int, default=3)
    given = parser.parse_args()
    found: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as place:
        run = drawn(Path(place) / "run", given.scalars)
        for _ in range(given.turns):
            for module in (tensorboard, mindspore_summary):
                folder = Path(place) / module.NAME
                began = time.perf_counter(), time.process_time()
                module.write(run, folder)
                took = print_row(f"strobe, {module.NAME}", began, given.scalars, folder)
                found.setdefault(module.NAME, []).append(took)
                shutil.rmtree(folder)
            folder = Path(place) / "writer"
            took = with_summary_writer(run, folder)
            found.setdefault("SummaryWriter.add_scalar", []).append(took)
            shutil.rmtree(folder)
    for name, times in found.items():
        print(f"median, {name}: {statistics.median(times):.2f} s")


if __name__ == "__main__":
    main()
