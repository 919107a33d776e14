"""A loop without a data loader, drawn by looks at it."""

import json

from strobe.advise.plain_source import plain_source
from strobe.advise.training import Training
from tests.analyse.data_drawings import MS, step
from tests.helpers import make_run

MAIN = ["/a/train.py", 40, "main"]
MODEL = [["/lib/torch/nn/linear.py", 134, "forward"], ["/a/train.py", 31, "main"], MAIN]
PULLS = [["/a/train.py", 12, "pages"], ["/a/train.py", 29, "main"], MAIN]
LOGS = [["/a/train.py", 20, "log"], ["/a/train.py", 36, "main"], MAIN]
LOOPS = [["/a/train.py", 29, "main"], MAIN]
LIBRARY = [["/lib/stream/reader.py", 7, "__next__"], ["/a/train.py", 29, "main"], MAIN]


def source(folder, *, in_gap, on_core=0.0):
    """30 steps of 10 ms, of which the gap takes 4; a look in each gap, and in each forward pass."""
    drawing, rows = "", []
    for number in range(30):
        start = number * 10
        drawing += step(number + 1, start, start + 10, 4)
        rows += [(start + 4, in_gap, on_core), (start + 10 - 1e-6, MODEL, 6)]
    used, looks = 0.0, []
    for ts, stack, cpu in rows:
        used += cpu
        file, line, function = next(f for f in stack if f[0].startswith("/a/"))
        looks.append((0, int((ts - 1e-3) * MS), "training", f"train.py:{line}", json.dumps(stack),
                      function, int(used * MS), 0))  # fmt: skip
    names = ("rank", "ts_ns", "thread", "place", "stack", "function", "cpu_ns", "waited_ns")
    extra = {"samples": {name: list(column) for name, column in zip(names, zip(*looks, strict=True),
                                                                   strict=True)}}  # fmt: skip
    return plain_source(Training(make_run(folder, drawing, extra)))


def test_a_generator_that_waits_is_reading(tmp_path):
    found = source(tmp_path, in_gap=PULLS)
    assert (found.where, found.function, found.stage) == ("train.py:12", "pages", "reading")
    assert abs(found.share - 0.4) < 0.02


def test_a_generator_that_computes_is_transform(tmp_path):
    assert source(tmp_path, in_gap=PULLS, on_core=4).stage == "transform"


def test_a_library_that_hands_out_data_counts(tmp_path):
    assert abs(source(tmp_path, in_gap=LIBRARY).share - 0.4) < 0.02


def test_what_comes_after_the_model_is_no_data(tmp_path):
    assert source(tmp_path, in_gap=LOGS).share == 0


def test_a_line_of_the_loop_alone_is_no_data(tmp_path):
    assert source(tmp_path, in_gap=LOOPS).share == 0


def test_without_looks_it_cannot_be_told(tmp_path):
    assert plain_source(Training(make_run(tmp_path, step(1, 0, 10, 4)))) is None
