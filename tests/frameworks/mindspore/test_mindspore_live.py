"""MindSpore trainings as they are, under `strobe run`: steps, phases, operators, ranks."""

import functools
import json
import re
from pathlib import Path

import pytest
from tests.frameworks import environment
from tests.frameworks.mindspore.launching import msrun, path_variable
from tests.frameworks.mindspore.tables import sql, table

TRAININGS = Path(__file__).parent / "trainings"
SHAPES = TRAININGS / "shapes.py"

# As the script is started, and what of its steps the light recording can tell apart.
WAYS = {
    "model in a graph": ["model"],
    "model, sunk": ["model", "--sink"],
    "model without graphs": ["model", "--mode", "pynative"],
    "cell in a graph": ["cell"],
    "functions in graphs": ["functional"],
    "functions without graphs": ["functional", "--mode", "pynative"],
    "one compiled function": ["jit"],
    "one compiled function without graphs": ["jit", "--mode", "pynative"],
}


def record(folder: Path, script: Path, *words: str, options: tuple[str, ...] = ()) -> str:
    done = environment.run(
        "mindspore", "-m", "strobe", "run", "-o", folder, *options, script, *words, timeout_s=300,
        cwd=folder.parent,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "internal error of Strobe" not in done.stderr, done.stderr
    return done.stdout


def losses(printed: str) -> list[str]:
    return re.findall(r"^loss (\S+)$", printed, re.MULTILINE)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory):
    """The run of each way, made when it is first asked for, and what it printed."""
    home = tmp_path_factory.mktemp("recorded")

    @functools.cache
    def run(way: str) -> tuple[Path, str]:
        folder = home / way.replace(" ", "-")
        return folder, record(folder, SHAPES, *WAYS[way])

    return run


@pytest.mark.parametrize("way", WAYS)
def test_every_step_is_seen_with_its_parts(recorded, way):
    folder, printed = recorded(way)
    assert len(losses(printed)) == 20
    steps = table(folder, "steps")
    assert [step["step"] for step in steps] == list(range(1, 21))
    for step in steps[3:]:
        parts = {name: step[f"{name}_ns"] for name in ("gap", "forward", "backward", "update")}
        assert min(parts.values()) > 0, (step["step"], parts)
    assert sql(folder, "select * from problems") == []


@pytest.mark.parametrize("way", WAYS)
def test_operators_of_the_window_have_types_shapes_and_work(recorded, way):
    folder, _ = recorded(way)
    products = sql(
        folder,
        "select e.name, e.step, e.scope, a.flops, a.input_shapes, a.is_backward from events e"
        " join op_args a on a.event_id = e.id where e.kind = 'op' and e.name like '%atMul%'"
        " and e.step between 6 and 10 order by e.ts_ns",
    )
    assert {row["step"] for row in products} == set(range(6, 11))
    if "without" in way and "compiled" not in way:
        # Operators that run alone tell their types and times; cells are known by their order, and
        # what they call with them. The first layer's input has no gradient.
        first, second = 2 * 16 * 32 * 64, 2 * 16 * 64 * 10
        assert [
            (row["scope"].rpartition(".")[2], row["is_backward"], row["flops"]) for row in products
        ] == [
            ("first", False, first), ("second", False, second),
            ("second", True, second), ("second", True, second), ("first", True, first),
        ] * 5  # fmt: skip
        return
    assert {row["is_backward"] for row in products} == {False, True}
    # 16 items through 32 x 64 and 64 x 10: forward once, backward for the weights of both layers
    # and the input of the second.
    step = sorted(row["flops"] for row in products if row["step"] == 8)
    assert step == sorted([2 * 16 * 32 * 64] * 2 + [2 * 16 * 64 * 10] * 3)
    if WAYS[way][0] in ("model", "cell"):  # MindSpore names modules in graphs of cells alone
        assert any("first" in (row["scope"] or "") for row in products)


def test_losses_are_the_same_bit_for_bit(recorded, tmp_path):
    for way in ("model in a graph", "functions without graphs", "one compiled function"):
        plain = environment.run("mindspore", SHAPES, *WAYS[way], timeout_s=300, cwd=tmp_path)
        assert losses(plain.stdout) == losses(recorded(way)[1]) != []


@pytest.mark.parametrize("step", [3, 6])  # before the window begins, and inside it
def test_an_operator_that_fails_fails_the_script(tmp_path, step):
    """It fails behind the line that called it: whoever waits first is told, and nobody else."""
    words = ("-m", "strobe", "run", "-o", tmp_path / "run", "--steps", "5:6")
    done = environment.run(
        "mindspore", *words, TRAININGS / "fails.py", str(step), timeout_s=300, cwd=tmp_path
    )
    assert done.returncode == 1 and "after the failure" not in done.stdout
    assert "RuntimeError" in done.stderr and "must be in" in done.stderr


@pytest.mark.parametrize("made", ["cells", "functions"])
def test_two_optimizers_in_turns_make_one_step(tmp_path, made):
    record(tmp_path / "run", TRAININGS / "two.py", made)
    assert len(table(tmp_path / "run", "steps")) == 15


def test_evaluation_between_epochs_is_no_step(tmp_path):
    record(tmp_path / "run", SHAPES, "model", "--evaluate", "--epochs", "2", "--steps", "8")
    assert len(table(tmp_path / "run", "steps")) == 16


def test_a_map_that_sleeps_is_named(tmp_path):
    """MindSpore's own analysis of the same pipeline blames the operation behind it."""
    folder = tmp_path / "run"
    words = ("model", "--delay", "0.004", "--steps", "80", "--width", "16")
    record(folder, SHAPES, *words)
    advice = json.loads(environment.strobe("mindspore", "advise", folder, "--json"))
    finding = advice["findings"][0]
    assert (finding["rule"], finding["stage"]) == ("data-starvation", "transform")
    assert "prepare" in finding["why"] and finding["where"].startswith("shapes.py:")
    at_fault = [row["stage"] for row in table(folder, "data-pipeline") if row["is_at_fault"]]
    assert [stage.partition("_")[0] for stage in at_fault] == ["MapOp"]


def test_what_a_pipeline_computes_is_told_beside_training(tmp_path):
    folder = tmp_path / "run"
    record(folder, SHAPES, "model", "--compute", "0.001", "--steps", "240", options=("--light",))
    told = sql(folder, "select name, max(value) as ns from counters group by name")
    ns = {row["name"]: row["ns"] for row in told}
    made = 240 * 16 * 1_000_000  # of the whole epoch; the first and last of it were not looked at
    assert 0.3 * made < ns["data_threads_cpu_ns_total"] < 2 * made
    assert ns["training_threads_cpu_ns_total"] > 0


def test_ranks_of_msrun_exchange_gradients(tmp_path):
    folder = tmp_path / "run"
    done = environment.run(
        "mindspore", "-m", "strobe", "run", "-o", folder, "--", *msrun(2), TRAININGS / "ranks.py",
        timeout_s=300, cwd=tmp_path, PATH=path_variable(),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    steps = table(folder, "steps")
    assert [step["rank"] for step in steps] == [0] * 12 + [1] * 12
    assert min(step["all_reduce_ns"] for step in steps if step["step"] > 6) > 0
    found = sql(
        folder,
        "select t.rank, count(distinct e.step) as steps from events e join tracks t"
        " on t.id = e.track_id where e.kind = 'collective' and e.name = 'AllReduce'"
        " and e.step between 6 and 10 group by 1 order by 1",
    )
    assert found == [{"rank": 0, "steps": 5}, {"rank": 1, "steps": 5}]


@pytest.mark.parametrize("mode", ["graph", "pynative"])
def test_operators_of_a_graph_that_outlasts_its_call_are_in_its_step_and_phase(tmp_path, mode):
    folder = tmp_path / "run"
    record(folder, TRAININGS / "unread.py", mode)
    assert len(table(folder, "steps")) == 14
    found = sql(folder, """
        SELECT o.step, o.name, p.name AS phase, count(*) AS n
        FROM events o JOIN events p ON p.kind = 'phase' AND p.step = o.step
             AND o.ts_ns >= p.ts_ns AND o.ts_ns < p.ts_ns + p.dur_ns
        WHERE o.kind = 'op' AND o.name IN ('SGD', 'ReluGrad', 'ReLU') GROUP BY ALL
    """)  # fmt: skip
    assert {(row["name"], row["phase"]) for row in found} == {
        ("SGD", "update"), ("ReluGrad", "backward"), ("ReLU", "forward"),
    }  # fmt: skip
    assert {row["n"] for row in found if row["name"] == "SGD"} == {6}
