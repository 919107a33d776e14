import math

from strobe.analyse.tables.training import metrics
from tests.helpers import make_run

ROWS = [
    # rank, tag, step, ts_ns, value, attempt
    (0, "loss", 1, 10, 3.0, 1),
    (0, "loss", 2, 20, math.nan, 1),
    (0, "loss", 3, 30, 1.0, 1),
    (0, "loss", 4, 40, 1.0, 1),
    (0, "loss", 2, 50, math.inf, 2),
    (0, "loss", 3, 60, 2.0, 2),
    (0, "only nan", None, 70, math.nan, 1),
]


def found(tmp_path):
    names = ("rank", "tag", "step", "ts_ns", "value", "attempt")
    columns = dict(zip(names, map(list, zip(*ROWS, strict=True)), strict=True))
    columns["source"] = ["strobe.log"] * len(ROWS)
    run = make_run(tmp_path, "0/main op:a 0..1", {"scalars": columns})
    relation = metrics.run(run)
    return [dict(zip(relation.columns, row, strict=True)) for row in relation.fetchall()]


def test_first_last_and_extremes(tmp_path):
    loss, only_nan = found(tmp_path)
    expected = {
        "count": 6, "first_step": 1, "last_step": 4, "first": 3.0, "last": 2.0, "min": 1.0,
        "min_step": 3, "max": 3.0, "max_step": 1, "nan_count": 1, "infinite_count": 1,
    }  # fmt: skip
    assert {name: loss[name] for name in expected} == expected
    assert (only_nan["tag"], only_nan["min"], only_nan["nan_count"]) == ("only nan", None, 1)
    assert math.isnan(only_nan["last"])
