"""Runs that logged scalars, drawn from columns."""

import numpy as np

from strobe.model.schema import SCALARS
from strobe.store import columns
from strobe.store.strings import Strings
from tests.helpers import make_run


def logged_run(folder, *series, rank=0):
    """Each series has `tag` and `value`; `step`, `ts_ns`, `attempt`, `source` if they matter."""
    drawing = "\n".join(f"{number}/main op:x 0..10" for number in range(rank + 1))
    make_run(folder, drawing).close()
    return write_scalars(folder, *series, rank=rank)


def write_scalars(folder, *series, rank=0):
    """The run again, with these scalars instead of those it had."""
    parts = [_columns(one) for one in series]
    tags = list(dict.fromkeys(one["tag"] for one in series))
    joined = {name: np.ma.concatenate([part[name] for part in parts]) for name in parts[0]}
    codes = [np.full(len(one["value"]), tags.index(one["tag"])) for one in series]
    sources = list(dict.fromkeys(one.get("source", "test") for one in series))
    by_source = [
        np.full(len(one["value"]), sources.index(one.get("source", "test"))) for one in series
    ]
    count = len(joined["value"])
    columns.write(
        SCALARS,
        {
            **joined,
            "rank": np.full(count, rank),
            "tag": Strings(np.concatenate(codes).astype(np.int32), tags),
            "source": Strings(np.concatenate(by_source).astype(np.int32), sources),
        },
        folder / f"rank_{rank}" / "tables" / "scalars.parquet",
    )
    return make_run(folder, "\n".join(f"{number}/main op:x 0..10" for number in range(rank + 1)))


def _columns(one):
    count = len(one["value"])
    return {
        "value": np.asarray(one["value"], dtype=np.float64),
        "step": _nullable(one.get("step", range(count))),
        "ts_ns": _nullable(one.get("ts_ns", range(0, 1000 * count, 1000))),
        "attempt": np.full(count, one.get("attempt", 1)),
    }


def _nullable(values):
    values = list(values)
    known = [0 if value is None else value for value in values]
    mask = [value is None for value in values]
    return np.ma.masked_array(np.array(known, dtype=np.int64), mask=mask)
