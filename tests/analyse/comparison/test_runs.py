import pytest

from strobe.analyse.comparison.operators import Operator
from strobe.analyse.comparison.runs import TABLES, compare, explained
from strobe.errors import MissingData
from tests.advise.drawings import same, steps
from tests.helpers import make_run
from tests.ingest.imports import imported, shared


def drawn(folder, parts, count=40):
    return make_run(folder, steps(*same(parts, count)))


def test_a_run_against_itself_has_no_difference(tmp_path):
    run = drawn(tmp_path, {"gap": 10, "forward": 30, "backward": 60})
    found = compare(run, run)
    assert not found.is_different and not found.is_slower(0.0)
    assert found.verdict.startswith("no difference beyond noise: B's step time changes by +0.0%")
    assert {row[3] for row in found.steps} == {0}


def test_parts_add_up_to_the_difference_of_the_step(tmp_path):
    a = drawn(tmp_path / "a", {"gap": 10, "forward": 30, "backward": 60})
    b = drawn(tmp_path / "b", {"gap": 5, "forward": 55, "backward": 60})
    found = compare(a, b)
    assert found.steps[0] == ("step", 100_000, 120_000, 20_000, 1.2)
    assert sum(row[3] for row in found.steps[1:]) == 20_000
    assert found.explanation == [
        ("forward", "all of it", 30_000, 55_000, 25_000, 1.25),
        ("gap", "all of it", 10_000, 5_000, -5_000, -0.25),
        ("backward", "all of it", 60_000, 60_000, 0, 0.0),
    ]
    assert found.is_slower(0.05) and not found.is_slower(0.17) and not found.is_faster()
    assert found.verdict.startswith(
        "B is slower: 20% more time per step (95% confidence interval 1"
    )
    assert compare(b, a).is_faster()


def busy(run, milli):
    """A run on a machine with so many thousandths of cores busy, none of them its own."""
    run.connection.execute(f"""
        CREATE OR REPLACE VIEW counters AS
        SELECT 0::BIGINT AS rank, unnest([0, 1000])::BIGINT AS ts_ns,
               'process_cpu_ns_total' AS name, 5.0::DOUBLE AS value
        UNION ALL SELECT 0, 0, 'cores_busy_milli', {milli}
    """)
    return run


def test_a_machine_that_others_kept_busy_is_told_with_the_verdict(tmp_path):
    a = busy(drawn(tmp_path / "a", {"forward": 30}), 100)
    b = busy(drawn(tmp_path / "b", {"forward": 40}), 1900)
    told = "; but while B ran, other programs used 1.8 more cores than during A"
    assert compare(a, b).verdict.endswith(told)
    assert compare(busy(a, 1800), b).verdict.endswith("%)")
    assert "while A ran" in compare(b, busy(a, 100)).verdict


def test_a_difference_as_two_runs_alike_have_is_none_however_steady_the_steps(tmp_path):
    a = drawn(tmp_path / "a", {"forward": 1000})
    b = drawn(tmp_path / "b", {"forward": 1030})
    c = drawn(tmp_path / "c", {"forward": 1035})
    assert not compare(a, b).is_different and compare(a, c).is_different


def test_operators_explain_a_part_and_the_remainder_is_a_row():
    operators = [
        Operator("forward", "net.a", "mm", None, 1, 1, 40, 90),
        Operator("forward", "net.a", "mm", "[[2]]", 1, 1, 0, 10),
        Operator("forward", None, "add", None, 1, 1, 20, 21),
        Operator("backward", "net.a", "mm", None, 1, 1, 30, 10),
        Operator("gap", None, "item", None, 1, 1, 5, 500),
    ]
    parts = {"gap": (10, 20), "forward": (100, 170), "backward": (100, 90), "rest": (0, 0)}
    rows = explained(parts, operators, smallest_ns=5)
    assert rows == [
        ("forward", "mm in net.a", 40, 100, 60, 60 / 70),
        ("backward", "mm in net.a", 30, 10, -20, -20 / 70),
        ("gap", "all of it", 10, 20, 10, 10 / 70),
        ("forward", "the rest of it", 60, 70, 10, 10 / 70),
        ("backward", "the rest of it", 70, 80, 10, 10 / 70),
    ]
    assert sum(row[4] for row in rows) == (20 + 170 + 90) - (10 + 100 + 100)


def test_too_few_steps_say_so(tmp_path):
    run = drawn(tmp_path, {"forward": 30}, count=3)
    found = compare(run, run)
    assert found.verdict.startswith("too few steps to compare: 3 and 3") and not found.is_slower(
        0.0
    )


def test_a_run_without_steps_cannot_be_compared(tmp_path):
    run = drawn(tmp_path / "a", {"forward": 30})
    with pytest.raises(MissingData):
        compare(run, make_run(tmp_path / "b", "0/main op:aten::mm 0..10"))


def test_json_holds_every_table_with_its_columns(tmp_path):
    run = drawn(tmp_path, {"forward": 30})
    told = compare(run, run).to_json()
    for table in TABLES:
        found = told[table.name.removeprefix("compare-")]
        assert [column["name"] for column in found["columns"]] == list(table.column_names)
        assert all(len(row) == len(table.columns) for row in found["rows"])
        assert all(column.doc.endswith(".") for column in table.columns)


def test_a_real_pair_the_loader_without_workers_is_what_costs(tmp_path):
    alone = imported(shared("kineto/resnet50_num_workers_0.1623143089861.pt.trace.json.gz"),
                     tmp_path / "a")  # fmt: skip
    workers = imported(shared("kineto/resnet50_num_workers_4.1623212756351.pt.trace.json.gz"),
                       tmp_path / "b")  # fmt: skip
    found = compare(alone, workers)
    assert found.is_faster() and 0.7 < found.step_ratio.ratio < 0.8
    assert found.explanation[0][:2] == ("data", "all of it")
    assert sum(row[4] for row in found.explanation) == found.steps[0][3]
    idle = {row[0]: row[3] for row in found.devices}["idle"]
    assert idle < -30e6
