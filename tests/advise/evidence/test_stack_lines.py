import json

from strobe.advise.evidence.stack_lines import (
    TYPICAL_LOOKS,
    cpu_ratio,
    function_at,
    line_of,
    own_python,
    users_frames,
)
from strobe.advise.training import Training
from tests.advise.drawings import of_framework, same, steps
from tests.helpers import make_run

TORCH = "/lib/site-packages/torch/nn/modules/module.py"
LOOP = ["/job/train.py", 40, "fit"]
CALL = [TORCH, 7, "_call_impl"]


def looks(*rows: tuple[int, list], cpu_ns=None, waited_ns=None) -> dict:
    """(moment in us, frames innermost first)"""
    count = len(rows)
    return {"samples": {
        "rank": [0] * count, "ts_ns": [us * 1000 for us, _ in rows],
        "thread": ["training"] * count, "place": ["x"] * count, "function": ["f"] * count,
        "stack": [json.dumps(frames) for _, frames in rows],
        "cpu_ns": cpu_ns or [0] * count, "waited_ns": waited_ns or [0] * count,
    }}  # fmt: skip


def trained(tmp_path, extra) -> Training:
    return Training(make_run(tmp_path, steps(*same({"gap": 60, "forward": 40}, 10)), extra))


def test_the_innermost_line_that_most_agree_on(tmp_path):
    log = ["/job/log.py", 9, "log"]
    rows = [(10 + 100 * k, [["/job/log.py", k % 2, "format"], log, LOOP]) for k in range(10)]
    found = line_of(trained(tmp_path, looks(*rows)), "phase = 'gap'")
    # Which line of format() it was, they do not agree on: the one that calls it is named.
    assert found is not None and str(found) == "log.py:9"
    assert found.function == "log" and found.ratio == 1.0 and found.looks == 9


def test_the_callers_line_where_the_way_in_differs(tmp_path):
    rows = [(10 + 100 * k, [["/job/a.py", k, "a"], LOOP]) for k in range(10)]
    found = line_of(trained(tmp_path, looks(*rows)), "phase = 'gap'")
    assert str(found) == "train.py:40"


def test_looks_that_came_after_a_long_stretch_of_python_count_for_it(tmp_path):
    """Of looks at 10 ms of Python half must wait until something else gives the lock up."""
    counting, clearing = ["/job/train.py", 9, "count"], ["/job/train.py", 31, "clear"]
    ways = [(5_200_000, counting)] * 6 + [(2_000_000, clearing)] * 5
    rows = [(10 + 100 * k, [way, LOOP]) for k, (_, way) in enumerate(ways)]
    waited_ns = [wait for wait, _ in ways]
    found = line_of(trained(tmp_path / "a", looks(*rows, waited_ns=waited_ns)), "phase = 'gap'")
    assert str(found) == "train.py:9" and found is not None and found.ratio == 1.0
    # Where few caught it the stretches are short: what follows them is all that was seen.
    ways = [(2_000_000, clearing)] * 8 + [(5_200_000, counting)] * 2
    rows = [(10 + 100 * k, [way, LOOP]) for k, (_, way) in enumerate(ways)]
    waited_ns = [wait for wait, _ in ways]
    found = line_of(trained(tmp_path / "b", looks(*rows, waited_ns=waited_ns)), "phase = 'gap'")
    assert str(found) == "train.py:31"


def test_time_in_the_users_own_python_is_told_from_calls_of_the_framework(tmp_path):
    mining = ["/job/train.py", 46, "mine"]
    call = ["/lib/site-packages/mindspore/api.py", 9, "call"]
    rows = [(70 + 100 * k, [["/lib/site-packages/numpy/n.py", 2, "sum"], mining, LOOP])
            for k in range(6)]  # fmt: skip
    rows += [(670 + 100 * k, [call, ["/job/train.py", 50, "main"]]) for k in range(3)]
    found = trained(tmp_path, looks(*rows))
    of_framework(found.run, "mindspore")
    ratio, line = own_python(found, ("forward",))
    assert line == "train.py:46" and 0.3 < ratio < 0.8
    assert own_python(trained(tmp_path / "b", looks()), ("forward",)) == (0.0, None)


def test_a_model_is_not_looked_into_unless_asked_for():
    stack = [["/job/net.py", 3, "forward"], CALL, ["/job/train.py", 17, "evaluate"], LOOP]
    assert users_frames(stack, into_modules=False) == [
        ("/job/train.py", 40, "fit"), ("/job/train.py", 17, "evaluate"),
    ]  # fmt: skip
    assert users_frames(stack)[-1] == ("/job/net.py", 3, "forward")


def test_one_look_says_nothing(tmp_path):
    assert line_of(trained(tmp_path, looks((10, [LOOP]), (20, [LOOP]))), "phase = 'gap'") is None


def test_looks_at_the_first_steps_may_be_left_out(tmp_path):
    compiling = [(10 + 5 * k, [["/job/train.py", 12, "compile"]]) for k in range(12)]
    rows = [*compiling, *((10 + 100 * k, [LOOP]) for k in range(5, 10))]
    training = trained(tmp_path, looks(*rows))
    assert str(line_of(training, "phase = 'gap'", looks=TYPICAL_LOOKS)) == "train.py:40"
    assert str(line_of(training, "phase = 'gap' AND step = 1")) == "train.py:12"


def test_cpu_time_is_told_apart_by_the_part_of_the_step(tmp_path):
    # In forward all the time, in the gap a tenth of it.
    rows, cpu_ns, at_us = [], [], 0
    for number in range(12):
        at_us += 37 + 13 * (number % 3)
        rows.append((at_us, [LOOP]))
        whole, part = divmod(at_us, 100)
        gap_us = whole * 60 + min(part, 60)
        cpu_ns.append(round((at_us - gap_us) * 1000 + gap_us * 100))
    training = trained(tmp_path, looks(*rows, cpu_ns=cpu_ns))
    assert abs((cpu_ratio(training, ("gap", "rest")) or 0) - 0.1) < 0.02
    assert abs((cpu_ratio(training, ("forward",)) or 0) - 1.0) < 0.02


def test_cpu_time_is_unknown_without_looks(tmp_path):
    assert cpu_ratio(trained(tmp_path, {}), ("gap",)) is None


def test_the_function_around_a_line_and_its_part_of_the_step(tmp_path):
    norm = ["/job/net.py", 36, "norm"]
    other = ["/job/net.py", 39, "norm"]
    rows = [(70 + 100 * k, [norm if k % 2 else other, ["/job/net.py", 50, "forward"], LOOP])
            for k in range(10)]  # fmt: skip
    rows += [(40 + 100 * k, [LOOP]) for k in range(10)]
    training = trained(tmp_path, looks(*sorted(rows)))
    found = function_at(training, "net.py:36")
    assert found is not None and found[0] == "norm" and 0.2 < found[1] < 0.8
    assert function_at(training, "net.py:50") is None  # the forward pass itself
    assert function_at(training, "net.py:7") is None
