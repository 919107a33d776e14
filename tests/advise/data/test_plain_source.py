"""A loop without a data loader, drawn by looks at it."""

import json

import pytest

from strobe.advise.data.plain_source import plain_source
from strobe.advise.rules import data_starvation
from strobe.advise.training import Training
from tests.analyse.data_drawings import MS, step
from tests.helpers import make_run

MAIN = ["/a/train.py", 40, "main"]
MODEL = [["/lib/torch/nn/linear.py", 134, "forward"], ["/a/train.py", 31, "main"], MAIN]
PULLS = [["/a/train.py", 12, "pages"], ["/a/train.py", 29, "main"], MAIN]
LOGS = [["/a/train.py", 20, "log"], ["/a/train.py", 36, "main"], MAIN]
LOOPS = [["/a/train.py", 29, "main"], MAIN]
LIBRARY = [["/lib/stream/reader.py", 7, "__next__"], ["/a/train.py", 29, "main"], MAIN]


FORWARD = [["/lib/python3.11/site-packages/torch/_tensor.py", 40, "norm"],
           ["/a/model.py", 12, "forward"], ["/a/train.py", 29, "main"], MAIN]  # fmt: skip


def source(folder, **drawn):
    return plain_source(looked_at(folder, **drawn))


def looked_at(folder, *, in_gap, on_core=0.0, operators="", links=None, late=None):
    """30 steps of 10 ms, of which the gap takes 4; a look in each gap, and in each forward pass. In
    every other gap it is at `late`, and waited 2 ms for Python's lock."""
    drawing, rows = "", []
    for number in range(30):
        start = number * 10
        drawing += step(number + 1, start, start + 10, 4)
        shown = late if late and number % 2 else in_gap
        rows += [(start + 4, shown, on_core), (start + 10 - 1e-6, MODEL, 6)]
    used, looks = 0.0, []
    for ts, stack, cpu in rows:
        used += cpu
        file, line, function = next(f for f in stack if f[0].startswith("/a/"))
        looks.append((0, int((ts - 1e-3) * MS), "training", f"train.py:{line}", json.dumps(stack),
                      function, int(used * MS), 2 * MS if stack is late else 0))  # fmt: skip
    names = ("rank", "ts_ns", "thread", "place", "stack", "function", "cpu_ns", "waited_ns")
    extra = {"samples": {name: list(column) for name, column in zip(names, zip(*looks, strict=True),
                                                                   strict=True)}}  # fmt: skip
    if links:
        extra["links"] = links
    return Training(make_run(folder, drawing + operators, extra))


def test_a_generator_that_waits_is_reading(tmp_path):
    found = source(tmp_path, in_gap=PULLS)
    assert (found.where, found.function, found.stage) == ("train.py:12", "pages", "reading")
    assert abs(found.share - 0.4) < 0.02


def test_a_generator_that_computes_is_transform(tmp_path):
    assert source(tmp_path, in_gap=PULLS, on_core=4).stage == "transform"


def test_experience_that_a_model_collects_cannot_be_prepared_without_it(tmp_path):
    acts = [["/lib/torch/distributions/categorical.py", 147, "sample"], *PULLS]
    verdict = data_starvation.check(looked_at(tmp_path / "acts", in_gap=acts, on_core=4))
    assert verdict.stage == "acting" and "more environments at once" in verdict.fixes[0]
    assert verdict.title == "The model acts in an environment for 40% of step time."
    assert verdict.speedup_range == pytest.approx((1 / (1 - 0.2), 1 / (1 - 0.348)), rel=0.02)
    plain = data_starvation.check(looked_at(tmp_path / "plain", in_gap=PULLS, on_core=4))
    assert plain.stage == "transform" and "in the training loop" in plain.title


def test_a_library_that_hands_out_data_counts(tmp_path):
    assert abs(source(tmp_path, in_gap=LIBRARY).share - 0.4) < 0.02


def test_what_comes_after_the_model_is_no_data(tmp_path):
    assert source(tmp_path, in_gap=LOGS).share == 0


def test_a_line_of_the_loop_alone_is_no_data(tmp_path):
    assert source(tmp_path, in_gap=LOOPS).share == 0


def test_a_sample_that_waited_for_the_lock_belongs_to_the_source_before_its_line(tmp_path):
    """The line after the source is where the C code of the source gave Python's lock up."""
    after = [["/a/train.py", 30, "main"], MAIN]
    assert abs(source(tmp_path / "after", in_gap=PULLS, late=after).share - 0.4) < 0.02
    before = [["/a/train.py", 28, "main"], MAIN]
    assert abs(source(tmp_path / "before", in_gap=PULLS, late=before).share - 0.2) < 0.02


def test_a_forward_that_is_called_as_a_plain_method_is_no_data(tmp_path):
    assert source(tmp_path, in_gap=FORWARD).share == 0


def linked(count: int) -> tuple[str, dict]:
    """An operator in each gap, with its backward behind it; this many are linked to that."""
    lines = [
        f"0/main op:aten::{name} {(n * 10 + at) * MS}..{(n * 10 + at + 2) * MS} step={n + 1}"
        for n in range(30)
        for name, at in (("mm", 1), ("MmBackward0", 7))
    ]
    first = 30 * 3  # lines of the drawing before them
    ids = [first + 2 * n for n in range(count)]
    return "\n".join(lines), {
        "from_id": ids, "to_id": [id + 1 for id in ids], "kind": ["forward_backward"] * count,
    }  # fmt: skip


def test_where_gradients_flow_through_the_gap_it_cannot_be_told(tmp_path):
    for name, count, is_told in (("all", 30, False), ("few", 5, True)):
        operators, links = linked(count)
        found = source(tmp_path / name, in_gap=PULLS, operators=operators, links=links)
        assert (found is not None) == is_told, name


def test_without_looks_it_cannot_be_told(tmp_path):
    assert plain_source(Training(make_run(tmp_path, step(1, 0, 10, 4)))) is None
