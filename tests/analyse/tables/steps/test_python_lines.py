import json

from strobe.analyse.tables.steps import gaps, python_lines
from tests.helpers import make_run

DRAWING = """
    0/steps  annotation:strobe~window~1  0..400000
    0/steps  step:step~1       0..400000       step=1
    0/steps  phase:gap         0..200000       step=1
    0/steps  phase:forward     200000..400000  step=1
    0/main   data:next~batch   0..50000        step=1
    0/main   op:first          50000..60000    step=1
    0/main   op:second         190000..400000  step=1
"""
LOG = json.dumps([["/job/train.py", 9, "log"], ["/job/train.py", 20, "fit"]])
MODEL = json.dumps([["/lib/site-packages/torch/conv.py", 5, "forward"], ["/job/net.py", 3, "f"]])


def looks(*rows: tuple) -> dict:
    """(moment, place, stack, cpu time)"""
    ts, place, stack, cpu = zip(*rows, strict=True)
    count = len(rows)
    return {"samples": {
        "rank": [0] * count, "ts_ns": list(ts), "thread": ["training"] * count,
        "place": list(place), "function": [None if p is None else "f" for p in place],
        "stack": list(stack), "cpu_ns": list(cpu), "waited_ns": [0] * count,
    }}  # fmt: skip


SEEN = looks(
    (10_000, "train.py:9", LOG, 1_000),
    (40_000, "train.py:20", LOG, 11_000),
    (100_000, "train.py:9", LOG, 71_000),
    (180_000, "train.py:9", LOG, 72_000),
    (300_000, "net.py:3", MODEL, 192_000),
    (500_000, "net.py:3", MODEL, 292_000),
)


def test_a_look_stands_for_the_time_since_the_one_before(tmp_path):
    run = make_run(tmp_path, DRAWING, SEEN)
    relation = python_lines.run(run)
    rows = [dict(zip(relation.columns, row, strict=True)) for row in relation.fetchall()]
    # The first has none before it, the last is behind the last step.
    found = {row["place"]: row for row in rows}
    assert [row["place"] for row in rows] == ["train.py:9", "net.py:3", "train.py:20"]
    assert found["train.py:9"]["samples"] == 2 and found["train.py:9"]["total_ns"] == 140_000
    assert found["train.py:9"]["gap_ns"] == 140_000 and found["train.py:9"]["data_ns"] == 0
    assert abs(found["train.py:9"]["cpu_ratio"] - 61_000 / 140_000) < 1e-9
    assert found["train.py:20"]["data_ns"] == 30_000 and found["train.py:20"]["gap_ns"] == 0
    assert found["net.py:3"]["forward_ns"] == 120_000
    assert found["net.py:3"]["below"] == "conv.py:5 forward"
    assert abs(sum(row["share_ratio"] for row in rows) - 1) < 1e-9
    assert abs(found["net.py:3"]["share_ratio"] - 120 / 290) < 1e-9


def test_looks_at_other_threads_are_not_the_trainings(tmp_path):
    other = {"samples": {**SEEN["samples"], "thread": ["data worker 0"] * 6}}
    assert python_lines.run(make_run(tmp_path, DRAWING, other)).fetchall() == []


def test_without_samples_there_is_nothing_to_say(tmp_path):
    assert python_lines.run(make_run(tmp_path, DRAWING)).fetchall() == []


def test_gaps_without_stacks_tell_the_line_that_was_seen(tmp_path):
    run = make_run(tmp_path, DRAWING, SEEN)
    relation = gaps.run(run)
    rows = [dict(zip(relation.columns, row, strict=True)) for row in relation.fetchall()]
    assert [(row["ts_ns"], row["python"]) for row in rows] == [
        (60_000, "train.py:9 f"),
        (0, "train.py:20 f"),
    ]
