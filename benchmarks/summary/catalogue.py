"""How long does a list of many runs take? `python -m benchmarks.summary.catalogue [--runs N]`

Each run has as many scalars as `--tags`, with `--points` values each. Its tables are written as
when a run is built, and the summary that the list is read from once more by itself. Then the list
is read by a new process, and again without a change.
Times are printed as the clock and the processor's own time: on a busy machine they differ.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from strobe.ingest.building.rank_tables import write_rank
from strobe.model.manifest import Manifest, Rank, write_manifest
from strobe.store.metric_summary import MetricSummary
from strobe.store.run import TABLES_DIR
from strobe.store.run_folder import RAW_DIR
from strobe.store.strings import Strings

_START_NS = 1_700_000_000 * 10**9
# What a new process does for a page: find the runs, read the list, give the figures of one scalar.
_LIST = """
import sys, time
from strobe.web.catalogue import open_catalogue
import duckdb
begun = time.perf_counter(), time.process_time()
opened = open_catalogue(sys.argv[1])
read = time.perf_counter(), time.process_time()
tags = len(opened.catalogue.tags())
with opened.catalogue.connection(["scalar_1"]) as connection:
    one = connection.execute("FROM run_scalars").fetchall()
    runs = connection.execute("FROM runs").fetchall()
shown = time.perf_counter(), time.process_time()
everything = len(opened.catalogue.scalars()["count"])
whole = time.perf_counter(), time.process_time()
assert len(one) == len(runs), (len(one), len(runs))
for what, a, b in (("a new process reads the list", begun, read),
                   ("gives runs, tags and one scalar of each", read, shown),
                   (f"gives all {everything:,} figures as columns", shown, whole)):
    print(f"{what}: {b[0] - a[0]:.2f} s by the clock, {b[1] - a[1]:.2f} s of processor time")
begun = time.perf_counter(), time.process_time()
opened.refresh()
end = time.perf_counter(), time.process_time()
print(f"reads it again, nothing changed: {end[0] - begun[0]:.2f} s by the clock, "
      f"{end[1] - begun[1]:.2f} s of processor time")
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for name, number in (("--runs", 1000), ("--tags", 1000), ("--points", 20)):
        parser.add_argument(name, type=int, default=number)
    given = parser.parse_args()
    print(f"load of the machine: {os.getloadavg()[0]:.1f}; {given.runs:,} runs of {given.tags:,} "
          f"scalars with {given.points:,} values")  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="strobe-catalogue-") as scratch:
        base = Path(scratch)
        _draw(base, given.runs, given.tags, given.points)
        done = subprocess.run([sys.executable, "-c", _LIST, str(base)], check=True)
        assert not done.returncode
        print(f"load of the machine at the end: {os.getloadavg()[0]:.1f}")


def _draw(base: Path, runs: int, tags: int, points: int) -> None:
    random = np.random.default_rng(1)
    whole, summary = np.zeros(2), np.zeros(2)
    for number in range(runs):
        run = base / f"run_{number}"
        tables = run / "rank_0" / TABLES_DIR
        tables.mkdir(parents=True)
        (run / "rank_0" / RAW_DIR).mkdir()
        parts = list(_parts(random, tags, points))
        begun = np.array([time.perf_counter(), time.process_time()])
        write_rank(iter(parts), tables)
        written = np.array([time.perf_counter(), time.process_time()])
        gathered = MetricSummary()
        for part in parts:
            for name, columns in part.items():
                gathered.add(name, columns)
        gathered.write(tables)
        whole += written - begun
        summary += np.array([time.perf_counter(), time.process_time()]) - written
        write_manifest(run, _manifest())
    _print(f"write the tables of {runs:,} runs with their summaries", whole)
    _print(f"their {runs:,} summaries alone", summary)
    size = sum(path.stat().st_size for path in base.glob("*/rank_0/tables/metrics.summary"))
    print(f"a summary has {size / runs / 1024:.0f} KiB")


def _parts(random: np.random.Generator, tags: int, points: int) -> Iterator[dict[str, Any]]:
    count = tags * points
    step = np.repeat(np.arange(points), tags)
    yield {
        "scalars": {
            "rank": np.zeros(count, dtype=np.int64),
            "tag": Strings(
                np.tile(np.arange(tags, dtype=np.int32), points),
                [f"scalar_{number}" for number in range(tags)],
            ),
            "step": step,
            "ts_ns": step * 1_000_000,
            "value": random.normal(size=count),
            "source": Strings(np.zeros(count, dtype=np.int32), ["benchmark"]),
            "attempt": np.ones(count, dtype=np.int64),
        }
    }


def _manifest() -> Manifest:
    manifest = Manifest(started_unix_ns=_START_NS, recorded_by="a benchmark", state="finished")
    manifest.ended_unix_ns = _START_NS + 10**9
    manifest.ranks = [Rank(0, 1, "here", "finished", frameworks={"torch": "2.13.0"})]
    return manifest


def _print(what: str, spent: Any) -> None:
    print(f"{what}: {spent[0]:.2f} s by the clock, {spent[1]:.2f} s of processor time")


if __name__ == "__main__":
    main()
