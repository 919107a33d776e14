import numpy as np
import pytest

from strobe.errors import UnreadableTrace
from strobe.store import metric_summary
from strobe.store.metric_summary import FILE, MetricSummary
from strobe.store.nullable import UNKNOWN, Nullable
from strobe.store.strings import Strings


def part(rows):
    """Columns of `scalars` from rows (tag, step, value) or (tag, step, value, attempt)."""
    tags = sorted({row[0] for row in rows})
    step = [row[1] for row in rows]
    return {
        "tag": Strings(np.array([tags.index(row[0]) for row in rows], dtype=np.int32), tags),
        "step": Nullable(
            np.array([0 if n is None else n for n in step]), np.array([n is None for n in step])
        ),
        "ts_ns": np.arange(len(rows)),
        "value": np.array([row[2] for row in rows], dtype=np.float64),
        "attempt": np.array([row[3] if len(row) > 3 else 1 for row in rows]),
        "source": Strings(np.zeros(len(rows), dtype=np.int32), ["test"]),
    }


def summary_of(folder, *parts):
    gathered = MetricSummary()
    for rows in parts:
        gathered.add("scalars", part(rows))
    gathered.write(folder)
    found = metric_summary.read(folder)
    names = ("count", "last", "last_step", "min", "min_step", "max", "max_step",
             "lowest_step", "highest_step", "nan_count", "infinite_count")  # fmt: skip
    return {
        tag: tuple(found.columns[name][row].item() for name in names)
        for row, tag in enumerate(found.tags)
    }


ROWS = [
    ("loss", 1, 4.0), ("lr", 1, 0.1), ("loss", 2, np.nan), ("loss", 3, 2.0), ("lr", 2, 0.1),
    ("loss", 4, 2.0), ("loss", 5, np.inf), ("loss", 6, 3.0),
]  # fmt: skip
EXPECTED = {
    "loss": (6, 3.0, 6, 2.0, 3, 4.0, 1, 1, 6, 1, 1),
    "lr": (2, 0.1, 2, 0.1, 1, 0.1, 1, 1, 2, 0, 0),
}


@pytest.mark.parametrize("cut", range(len(ROWS)))
def test_the_figures_of_a_tag_do_not_depend_on_the_parts(tmp_path, cut):
    parts = [rows for rows in (ROWS[:cut], ROWS[cut:]) if rows]
    assert summary_of(tmp_path, *parts) == EXPECTED


def test_the_last_value_is_that_of_the_last_attempt(tmp_path):
    rows = [("loss", 5, 1.0, 2), ("loss", 6, 9.0, 1), ("loss", 6, 2.0, 2), ("loss", 9, 8.0, 1)]
    found = summary_of(tmp_path, rows, [("loss", 10, 7.0, 1)])
    assert found["loss"][:3] == (5, 2.0, 6)
    assert found["loss"][7:9] == (5, 10)


def test_a_tag_without_steps_or_finite_values_has_none(tmp_path):
    found = summary_of(tmp_path, [("loss", None, np.nan), ("loss", None, -np.inf)])
    count, last, *rest = found["loss"]
    assert (count, last) == (2, -np.inf)
    assert np.isnan([rest[1], rest[3]]).all()
    assert (rest[0], rest[2], rest[4], rest[5], rest[6]) == (UNKNOWN,) * 5
    assert rest[7:] == [1, 1]


def test_a_tag_without_scalars_is_not_there(tmp_path):
    gathered, columns = MetricSummary(), part(ROWS)
    columns["tag"].values.insert(0, "weights")
    columns["tag"] = columns["tag"]._replace(codes=columns["tag"].codes + np.int32(1))
    gathered.add("scalars", columns)
    gathered.write(tmp_path)
    assert metric_summary.read(tmp_path).tags == ["loss", "lr"]


def test_steps_may_be_unknown_in_one_part_only(tmp_path):
    found = summary_of(tmp_path, [("loss", None, 1.0)], [("loss", -3, 2.0)], [("loss", None, 3.0)])
    assert found["loss"][7:9] == (-3, -3)


def test_hyperparameters_are_texts(tmp_path):
    gathered = MetricSummary()
    names = Strings(np.array([0, 1], dtype=np.int32), ["lr", "optimizer"])
    values = Strings(np.array([1, 0], dtype=np.int32), ["adam", "0.1"])
    gathered.add("hyperparameters", {"name": names, "value": values})
    gathered.add("hyperparameters", {})
    gathered.write(tmp_path)
    found = metric_summary.read(tmp_path)
    assert found.hyperparameters == {"lr": "0.1", "optimizer": "adam"} and found.tags == []


def test_a_rank_that_logged_nothing_has_no_file(tmp_path):
    gathered = MetricSummary()
    gathered.add("events", {"id": np.arange(3)})
    gathered.write(tmp_path)
    assert list(tmp_path.iterdir()) == []
    assert metric_summary.read(tmp_path) is None


def test_a_damaged_file_is_reported(tmp_path):
    (tmp_path / FILE).write_bytes(b"something else")
    with pytest.raises(UnreadableTrace, match="damaged"):
        metric_summary.read(tmp_path)


def test_what_is_automatic_and_what_the_script_logs_are_apart(tmp_path):
    gathered, columns = MetricSummary(), part([("loss", 1, 1.0), ("loss", 1, 5.0)])
    columns["source"] = Strings(np.array([1, 0], dtype=np.int32), ["automatic", "strobe.log"])
    gathered.add("scalars", columns)
    gathered.write(tmp_path)
    found = metric_summary.read(tmp_path)
    rows = zip(found.tags, found.sources, found.columns["last"].tolist(), strict=True)
    assert sorted(rows) == [("loss", "automatic", 5.0), ("loss", "strobe.log", 1.0)]
