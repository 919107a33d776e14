import math

import pytest

from strobe.errors import UnreadableTrace
from strobe.model.schema import SCALARS
from strobe.store import columns
from strobe.store.rows import as_columns
from strobe.store.run import Run
from tests.helpers import make_run

ROWS = [
    {"rank": 0, "tag": "loss", "step": 1, "value": 0.1, "source": "strobe.log", "attempt": 1},
    {"rank": 0, "tag": "lr", "value": math.nan, "source": "strobe.log", "attempt": 1, "ts_ns": 7},
]


def write(run: Run, rows) -> None:
    path = run.path / "rank_0" / "tables" / "scalars.parquet"
    columns.write(SCALARS, as_columns(SCALARS, rows), path)


def test_rows_come_back_with_their_nulls_and_every_bit(tmp_path):
    run = make_run(tmp_path, "0/steps step:one 0..1")
    write(run, ROWS)
    first, second = run.reopened().sql("SELECT tag, step, ts_ns, value FROM scalars").fetchall()
    assert first == ("loss", 1, None, 0.1)
    assert second[:3] == ("lr", None, 7) and math.isnan(second[3])


def test_a_row_without_what_every_row_must_have_is_refused(tmp_path):
    run = make_run(tmp_path, "0/steps step:one 0..1")
    with pytest.raises(UnreadableTrace, match="no value in column tag"):
        write(run, [{**ROWS[0], "tag": None}])
    assert as_columns(SCALARS, []) == {}
