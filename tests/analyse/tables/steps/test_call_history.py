from strobe.analyse.stretches import MOST_STRETCHES
from strobe.analyse.tables.operators import operators
from strobe.analyse.tables.steps import call_history
from tests.analyse.drawings import DEVICE, MODEL, MODEL_ARGS
from tests.helpers import make_run, text


def test_the_calls_that_the_table_of_operators_counts(tmp_path):
    """Step 2 was recorded in full; a call that repeats its parent is part of it."""
    drawing = MODEL + "    0/main op:aten::relu 1330..1370 step=2 scope=net parent=8\n"
    run = make_run(tmp_path, drawing, MODEL_ARGS)
    ((calls,),) = operators.run(run, name="aten::relu").project("calls").fetchall()
    found = call_history.run(run, name="aten::relu").project("event_id, calls").fetchall()
    assert found == [(8, calls)]


def test_every_call_of_an_operator_in_order_of_time(tmp_path):
    run = make_run(tmp_path, MODEL, MODEL_ARGS)
    assert text(call_history.run(run, name="aten::relu", all_steps=True)) == (
        "rank name device ts_ns dur_ns step scope calls total_ns min_ns event_id track_id\n"
        "0 aten::relu cpu 100 50 1 - 1 50 50 3 1\n"
        "0 aten::relu cpu 1320 60 2 net 1 60 60 8 1"
    )


def test_a_name_need_not_be_exact_but_an_exact_one_wins(tmp_path):
    run = make_run(tmp_path, "0/main op:aten::mm 0..5\n0/main op:aten::addmm 10..90")
    names = [call_history.run(run, name=n).project("name").fetchall() for n in ("mm", "aten::mm")]
    assert names == [[("aten::addmm",)], [("aten::mm",)]]


def test_only_calls_in_a_module_and_below_it(tmp_path):
    run = make_run(tmp_path, MODEL, MODEL_ARGS)
    found = call_history.run(run, name="aten::relu", scope="net").project("event_id")
    assert found.fetchall() == [(8,)]


def test_a_kernel_has_its_calls_too(tmp_path):
    run = make_run(tmp_path, DEVICE)
    found = call_history.run(run, name="gemm").project("device, ts_ns, dur_ns").fetchall()
    assert found == [("cuda:0", 100, 200), ("cuda:0", 800, 300)]


def test_without_a_name_it_is_the_operator_with_most_self_time(tmp_path):
    run = make_run(tmp_path, MODEL, MODEL_ARGS)
    assert call_history.run(run).project("name").distinct().fetchall() == [("aten::mm",)]


def test_many_calls_are_told_by_the_longest_of_each_stretch(tmp_path):
    count = 3 * MOST_STRETCHES
    drawing = "\n".join(f"0/main op:a {10 * i}..{10 * i + 1 + i % 3} step=1" for i in range(count))
    found = call_history.run(make_run(tmp_path, drawing), name="a")
    rows = found.aggregate("count(*), sum(calls), sum(total_ns), max(dur_ns), min(min_ns)")
    ((drawn, calls, total_ns, longest_ns, shortest_ns),) = rows.fetchall()
    assert drawn <= MOST_STRETCHES
    assert (calls, total_ns, longest_ns, shortest_ns) == (count, 2 * count, 3, 1)


def test_a_run_without_operators_has_none(tmp_path):
    assert call_history.run(make_run(tmp_path, "0/main mark:a 0..1")).fetchall() == []
