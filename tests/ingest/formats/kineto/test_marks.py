"""Steps and phases of traces that others recorded; times in microseconds."""

import gzip
import json
from itertools import pairwise

import pytest

from strobe.ingest.formats.kineto import marks, reader
from tests.ingest.imports import imported, shared, span, write

PHASES = """
    SELECT step, name, sum(dur_ns) // 1000 AS us FROM events WHERE kind = 'phase'
    GROUP BY ALL ORDER BY 1, 2
"""
FORWARD = {"Sequence number": 1, "Fwd thread id": 0}
NODE = {"Sequence number": 1, "Fwd thread id": 1}


def phases(run) -> dict[int, dict[str, int]]:
    found: dict[int, dict[str, int]] = {}
    for step, name, us in run.sql(PHASES).fetchall():
        found.setdefault(step, {})[name] = int(us)
    return found


def steps(run) -> list[tuple[int, int]]:
    rows = run.sql("SELECT ts_ns, dur_ns FROM events WHERE kind = 'step' ORDER BY id").fetchall()
    return [(ts // 1000, dur // 1000) for ts, dur in rows]


def one_step(at: float, backward_thread: int = 9) -> list[dict]:
    """100 µs: data 10, a copy 5, forward 30, zero_grad 5 in it, backward 40, update 10, rest 5."""
    node = {"tid": backward_thread, **NODE}
    return [
        span("enumerate(DataLoader)#It.__next__", at, at + 10, "user_annotation"),
        span("aten::mm", at + 4, at + 6, **FORWARD),  # of a transform
        span("aten::to", at + 10, at + 15, **FORWARD),
        span("aten::linear", at + 15, at + 25, **FORWARD),
        span("aten::addmm", at + 16, at + 24, **FORWARD),
        span("Optimizer.zero_grad#SGD.zero_grad", at + 30, at + 35, "user_annotation"),
        span("autograd::engine::evaluate_function: A", at + 45, at + 60, **node),
        span("aten::add_", at + 61, at + 62, tid=backward_thread),
        span("autograd::engine::evaluate_function: B", at + 65, at + 85, **node),
        span("Optimizer.step#SGD.step", at + 85, at + 95, "user_annotation"),
        span("aten::mean", at + 96, at + 97, **FORWARD),  # of a metric
    ]


@pytest.mark.parametrize("backward_thread", [7, 9])
def test_profiler_steps_are_the_steps(tmp_path, backward_thread):
    marks = [span(f"ProfilerStep#{5 + i}", 110 * i, 110 * i + 100, "user_annotation")
             for i in range(3)]  # fmt: skip
    work = [event for i in range(3) for event in one_step(110 * i, backward_thread)]
    run = imported(write(tmp_path / "a.json", marks + work), tmp_path)
    assert steps(run) == [(0, 100), (110, 100), (220, 100)]
    expected = {"gap": 15, "forward": 25, "backward": 40, "update": 10, "rest": 10}
    assert phases(run) == dict.fromkeys((1, 2, 3), expected)
    names = run.sql("SELECT name FROM events WHERE kind = 'annotation' AND name LIKE 'Prof%'")
    assert {name for (name,) in names.fetchall()} == {f"ProfilerStep#{i}" for i in (5, 6, 7)}


def test_without_them_updates_end_the_steps(tmp_path):
    work = [event for i in range(3) for event in one_step(110 * i)]
    run = imported(write(tmp_path / "a.json", work), tmp_path)
    assert steps(run) == [(0, 95), (95, 110), (205, 110)]
    assert phases(run)[2] == {"gap": 30, "forward": 25, "backward": 40, "update": 10, "rest": 5}


def test_a_last_profiler_step_without_work_is_none(tmp_path):
    marks = [span("ProfilerStep#1", 0, 100, "user_annotation"),
             span("ProfilerStep#2", 101, 102, "user_annotation")]  # fmt: skip
    run = imported(write(tmp_path / "a.json", marks + one_step(0)), tmp_path)
    assert steps(run) == [(0, 100)]
    ((what,),) = run.sql("SELECT what FROM problems").fetchall()
    assert "the last ProfilerStep" in what


def test_a_step_that_shows_nothing_else_is_rest(tmp_path):
    run = imported(
        write(tmp_path / "a.json", [span("ProfilerStep#1", 0, 50, "user_annotation")]), tmp_path
    )
    assert phases(run) == {1: {"rest": 50}}


def test_an_inference_has_forward_passes_only(tmp_path):
    marks = [span("ProfilerStep#1", 0, 50, "user_annotation")]
    work = [span("aten::to", 1, 5), span("aten::linear", 10, 40)]
    run = imported(write(tmp_path / "a.json", marks + work), tmp_path)
    assert phases(run) == {1: {"gap": 10, "forward": 30, "rest": 10}}


def test_traces_without_marks_have_no_steps(tmp_path):
    run = imported(write(tmp_path / "a.json", [span("aten::linear", 10, 40)]), tmp_path)
    assert steps(run) == [] and run.sql("SELECT * FROM problems").fetchall() == []


def test_outermost_optimizers_update(tmp_path):
    work = [event for i in range(2) for event in one_step(100 * i)]
    nested = [span("Optimizer.step#Outer.step", 100 * i + 84, 100 * i + 96, "user_annotation")
              for i in range(2)]  # fmt: skip
    run = imported(write(tmp_path / "a.json", work + nested), tmp_path)
    assert steps(run) == [(0, 96), (96, 100)]


def test_the_steps_of_a_real_resnet_by_hand(tmp_path):
    """2021, V100, data loaded in the training process: the second ProfilerStep, span by span.

    From its start: data 66..68843; two copies; the first convolution at 71239; zero_grad
    112594..118608; the first node of backward at 118870, the last ends at 154836; the update
    ends at 173981; the step at 173992.
    """
    path = shared("kineto/resnet50_num_workers_0.1623143089861.pt.trace.json.gz")
    run = imported(path, tmp_path)
    assert [dur for _, dur in steps(run)] == [176078, 173992, 176918, 181259, 176468, 164261]
    assert phases(run)[2] == {
        "gap": 71239,
        "forward": 112594 - 71239 + 118870 - 118608,
        "rest": 118608 - 112594 + 173992 - 173981,
        "backward": 154836 - 118870,
        "update": 173981 - 154836,
    }


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("kineto/resnet50_num_workers_4.1623212756351.pt.trace.json.gz", 6),
        ("hta/nccl_data.json.gz", 3),
        ("hta/two_ranks/rank-0.json.gz", 2),
        ("hta/trace_diff/control.json.gz", 6),
        ("tracelens/mi300_resnet_act_checkpoint.json.gz", 3),
        ("tracelens/h100_bert-small.json.gz", 1),
        ("hta/critical_path_alexnet.json.gz", 0),
        ("tracelens/mi210_gpu_only_trace.json.gz", 0),
    ],
)
def test_steps_of_real_traces_are_their_marks_and_phases_tile_them(tmp_path, name, count):
    path = shared(name)
    run = imported(path, tmp_path)
    events = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
    marks = [e for e in events if str(e.get("name")).startswith("ProfilerStep#")]
    lengths = [round(e["dur"] * 1000) for e in sorted(marks, key=lambda e: e["ts"])
               if e["cat"] != "gpu_user_annotation"]  # fmt: skip
    rows = run.sql("SELECT dur_ns FROM events WHERE kind = 'step' ORDER BY id").fetchall()
    assert [dur for (dur,) in rows] == lengths and len(lengths) == count
    sums = run.sql(
        "SELECT s.dur_ns, sum(p.dur_ns) FROM events s JOIN events p USING (step)"
        " WHERE s.kind = 'step' AND p.kind = 'phase' GROUP BY s.id, s.dur_ns"
    ).fetchall()
    assert all(step == parts for step, parts in sums)


def test_steps_of_a_real_training_without_profiler_steps(tmp_path):
    """MI300X: each step ends with an update, and begins where the one before it ended."""
    path = shared("tracelens/mi300_ddp_resnet18.json.gz")
    events = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
    updates = sorted(
        (e["ts"], e["dur"]) for e in events
        if str(e.get("name")).startswith("Optimizer.step#") and e["cat"] == "user_annotation"
    )  # fmt: skip
    ends = [ts + dur for ts, dur in updates]
    run = imported(path, tmp_path)
    found = run.sql("SELECT dur_ns FROM events WHERE kind = 'step' ORDER BY id").fetchall()
    assert len(found) == 5
    for (dur,), (one, other) in zip(found[1:], pairwise(ends), strict=True):
        assert dur == pytest.approx((other - one) * 1000, abs=2000)
    parts = phases(run)
    assert all(parts[step]["update"] >= updates[step - 1][1] // 1 for step in parts)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        "kineto/resnet50_num_workers_0.1623143089861.pt.trace.json.gz",
        "tracelens/mi300_ddp_resnet18.json.gz",
        "hta/trace_diff/control.json.gz",
    ],
)
def test_long_traces_whose_operators_are_kept_as_runs_have_the_same_steps(
    tmp_path, monkeypatch, name
):
    query = "SELECT name, ts_ns, dur_ns FROM events WHERE kind IN ('step', 'phase') ORDER BY id"
    whole = imported(shared(name), tmp_path / "whole").sql(query).fetchall()
    kept = []
    runs = marks.runs
    monkeypatch.setattr(reader, "_MOST_TELLING", -1)
    monkeypatch.setattr(
        marks, "runs", lambda found, words: kept.append((len(found), found := runs(found, words)))
        or found
    )  # fmt: skip
    assert imported(shared(name), tmp_path / "runs").sql(query).fetchall() == whole and whole
    assert all(len(after) < before / 2 for before, after in kept)
