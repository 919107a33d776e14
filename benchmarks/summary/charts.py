"""How long do charts of many points take? `python -m benchmarks.summary.charts [--points N]`

A noisy loss with one spike and one NaN is drawn at every zoom, around the spike and around the NaN,
with and without smoothing. Both must be visible in each chart. Times are printed as the clock and
the processor's own time: on a machine that is busy with other work they differ.
"""

import argparse
import os
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np

from strobe.analyse.metrics.chart import Charts, Curve, open_charts
from strobe.analyse.metrics.pyramid import FILE
from strobe.analyse.metrics.smoothing import Smoothing
from strobe.model.manifest import Manifest
from strobe.model.schema import SCALARS
from strobe.store import columns
from strobe.store.run import TABLES_DIR, Run
from strobe.store.strings import Strings

SPIKE = 1e6
PIXELS = 1000
REPEATS = 3
SMOOTHINGS = {
    "none": None,
    "weight 0.9": Smoothing(0.9),
    "half-life 1 s": Smoothing(half_life_ns=1e9),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--points", type=int, default=10_000_000)
    points = parser.parse_args().points
    with tempfile.TemporaryDirectory(prefix="strobe-charts-") as scratch:
        run = drawn(Path(scratch), points)
        print(f"load of the machine: {os.getloadavg()[0]:.1f}; {points:,} points")
        begun = _now()
        charts = open_charts(run)
        _print("build the pyramid", _since(begun))
        size = (Path(scratch) / "rank_0" / FILE).stat().st_size
        print(f"its file: {size / 2**20:.0f} MiB, {size / points:.1f} bytes per point")
        begun = _now()
        charts = open_charts(run)
        _print("open it again", _since(begun))
        for name, smoothing in SMOOTHINGS.items():
            begun = _now()
            charts.chart(["loss"], pixels=PIXELS, smoothing=smoothing)
            _print(f"first chart, smoothing {name}", _since(begun))
            _zoom(charts, points, name, smoothing)


def drawn(folder: Path, points: int) -> Run:
    """A run of one rank with one tag: a point per millisecond."""
    random = np.random.default_rng(1)
    value = random.normal(size=points)
    value[points // 3], value[points // 7] = SPIKE, np.nan
    tables = folder / "rank_0" / TABLES_DIR
    tables.mkdir(parents=True)
    code, number = np.zeros(points, dtype=np.int32), np.arange(points)
    scalars = {
        "rank": np.zeros(points, dtype=np.int64),
        "tag": Strings(code, ["loss"]),
        "step": number,
        "ts_ns": number * 1_000_000,
        "value": value,
        "source": Strings(code, ["benchmark"]),
        "attempt": np.ones(points, dtype=np.int64),
    }
    columns.write(SCALARS, scalars, tables / "scalars.parquet")
    manifest = Manifest(started_unix_ns=0, recorded_by="a benchmark", state="finished")
    return Run(folder, manifest, [folder / "rank_0"])


def _zoom(charts: Charts, points: int, name: str, smoothing: Smoothing | None) -> None:
    spent: list[tuple[float, float]] = []
    for zoom in range(points.bit_length() - 2):
        width = points >> zoom
        for at, is_visible in ((points // 3, _shows_spike), (points // 7, _shows_nan)):
            begin = max(0, at - width // 2)
            tries = []
            for _ in range(REPEATS):
                begun = _now()
                (curve,) = charts.chart(
                    ["loss"], begin=begin, end=begin + width, pixels=PIXELS, smoothing=smoothing
                )
                tries.append(_since(begun))
            spent.append(tuple(map(min, zip(*tries, strict=True))))  # type: ignore[arg-type]
            assert is_visible(curve), f"hidden at zoom {zoom}"
    for clock, of in zip(("clock", "processor"), zip(*spent, strict=True), strict=True):
        print(
            f"{len(spent)} charts, smoothing {name}, {clock}: median "
            f"{1e3 * statistics.median(of):.2f} ms, longest {1e3 * max(of):.2f} ms"
        )


def _shows_spike(curve: Curve) -> bool:
    return SPIKE in curve.columns["value" if curve.is_exact else "max"]


def _shows_nan(curve: Curve) -> bool:
    if curve.is_exact:
        return bool(np.isnan(curve.columns["value"]).any())
    return bool(curve.columns["nan_count"].any())


def _now() -> tuple[float, float]:
    return time.perf_counter(), time.process_time()


def _since(begun: tuple[float, float]) -> tuple[float, float]:
    now = _now()
    return now[0] - begun[0], now[1] - begun[1]


def _print(what: str, spent: tuple[float, float]) -> None:
    print(f"{what}: {spent[0]:.2f} s by the clock, {spent[1]:.2f} s of processor time")


if __name__ == "__main__":
    main()
