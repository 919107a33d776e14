"""Each option of `strobe.Profiler` is seen to change what is recorded of the same training."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.faults.processes import ask, problems, python, said_training, steps, write

pytestmark = pytest.mark.slow

# Options by the name of the run that they give.
GIVEN: dict[str, dict[str, Any]] = {
    "plain": {},
    "op_time": {"op_time": False},
    "light": {"light": True},
    "profile_memory": {"profile_memory": True},
    "profile_communication": {"profile_communication": False},
    "data_process": {"data_process": False},
    "parallel_strategy": {"parallel_strategy": False},
    "framework_time": {"profile_framework": "time"},
    "framework_null": {"profile_framework": None},
    "with_stack": {"with_stack": True, "steps": (2, 4)},
    "record_shapes": {"record_shapes": False},
    "with_flops": {"with_flops": False},
    "modules": {"is_show_op_path": False},
    "is_detail": {"is_detail": False},
    "level_0": {"profiler_level": 0},
    "level_2": {"profiler_level": 2},
    "forward": {"subgraph": "Default"},
    "backward": {"subgraph": "Gradients"},
    "sample_rate": {"sample_rate": 7},
    "hardware_metrics": {"aicore_metrics": 0},
    "sample_stacks": {"sample_stacks": False},
    "sample_ms": {"sample_ms": 10},
    "steps": {"steps": (3, 5)},
    "every": {"every": (4, 1)},
    "schedule": {"schedule": (1, 1, 1, 2, 0)},
    "timeline_limit": {"timeline_limit": 1, "with_stack": True},
    "analyse_mode": {"analyse_mode": "sync", "formats": ["chrome_timeline.json"]},
    "data_simplification": {"data_simplification": True},
    "without_effect": {"hbm_ddr": True},
}

TRAINING = """
import pathlib, sys, torch
import torch.distributed as dist
import strobe
def epoch():
    for (batch,) in torch.utils.data.DataLoader(rows, batch_size=4):
        optimizer.zero_grad()
        net(batch).square().mean().backward()
        optimizer.step()
def is_told(name):
    return any(name in path.read_text() for path in pathlib.Path(name).rglob("facts.jsonl"))
torch.manual_seed(0)
torch.set_num_threads(1)
dist.init_process_group("gloo", init_method=f"file://{sys.argv[1]}", rank=0, world_size=1)
net = torch.nn.parallel.DistributedDataParallel(
    torch.nn.Sequential(torch.nn.Linear(16, 64), torch.nn.Tanh(), torch.nn.Linear(64, 1)))
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
rows = torch.utils.data.TensorDataset(torch.randn(32, 16))
for name, options in GIVEN.items():
    with strobe.Profiler(output_path=name, **options) as profiler:
        assert profiler is not None
        epoch()
        while name == "timeline_limit" and not is_told(name):  # another thread writes and tells
            epoch()
        if name == "timeline_limit":
            epoch()
        # Long enough for the samples of the host and of the stack.
        until = __import__("time").monotonic() + 0.35
        while __import__("time").monotonic() < until:
            pass
dist.destroy_process_group()
"""


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    script = write(folder, f"GIVEN = {GIVEN!r}\n{TRAINING}")
    done = python(script, folder / "meeting", cwd=folder)
    assert done.returncode == 0, done.stderr
    (folder / "stderr").write_text(done.stderr)
    return folder


@pytest.fixture(scope="module")
def value(runs: Path) -> Callable[[str, str], Any]:
    """The one value of a question, asked of the run that an option gave."""
    return lambda name, query: ask(runs / name, query)[0][0]


OPERATORS = "select count(*) from events where kind = 'op'"
COUNTERS = "select count(*) from counters where name "


def test_all_runs_have_the_same_steps(runs: Path):
    alike = [name for name in GIVEN if name != "timeline_limit"]
    assert {name: steps(runs / name) for name in alike} == dict.fromkeys(alike, {0: 8})


def test_op_time_and_light_leave_no_operators(value):
    assert value("plain", OPERATORS) > 100
    assert value("op_time", OPERATORS) == value("light", OPERATORS) == 0


def test_profile_memory_gives_allocations(value):
    query = "select count(*) from allocations"
    assert (value("plain", query), value("profile_memory", query) > 50) == (0, True)


def test_profile_communication_gives_collectives(value):
    for query in (
        "select count(*) from collective_args",
        "select count(*) from events where kind = 'collective'",
    ):
        assert value("plain", query) > 0
        assert value("profile_communication", query) == 0


def test_data_process_gives_waits_and_batches(value):
    for query in (
        "select count(*) from events where kind = 'data'",
        "select count(*) from batches",
    ):
        assert value("plain", query) >= 8
        assert value("data_process", query) == 0


def test_parallel_strategy_tells_how_work_is_shared(runs: Path):
    from strobe.model.manifest import read_manifest

    ask(runs / "plain", "select 1"), ask(runs / "parallel_strategy", "select 1")
    told = read_manifest(runs / "plain").ranks[0].parallel
    assert (told["mode"], told["backend"], told["world_size"]) == ("distributed", "gloo", 1)
    (wrapper,) = told["wrappers"]
    assert wrapper["wrapper"] == "DistributedDataParallel"
    assert wrapper["module"] == "Sequential" and wrapper["bucket_bytes_cap"] > 0
    assert read_manifest(runs / "parallel_strategy").ranks[0].parallel == {}


def test_profile_framework_says_what_of_the_host_is_sampled(value):
    found = {
        name: (value(name, COUNTERS + "= 'process_cpu_ns_total'") > 0,
               value(name, COUNTERS + "= 'rss_bytes'") > 0)
        for name in ("plain", "framework_time", "framework_null")
    }  # fmt: skip
    assert found == {
        "plain": (True, True), "framework_time": (True, False), "framework_null": (False, False)
    }  # fmt: skip


def test_with_stack_gives_python_functions(value):
    query = "select count(*) from events where kind = 'python'"
    assert (value("plain", query), value("with_stack", query) > 10) == (0, True)


def test_record_shapes_and_with_flops(value):
    shapes = "select count(input_shapes) from op_args"
    flops = "select count(flops) from op_args"
    assert value("plain", shapes) > 0 and value("plain", flops) > 0
    assert value("record_shapes", shapes) == value("record_shapes", flops) == 0
    assert value("with_flops", shapes) > 0 and value("with_flops", flops) == 0


def test_modules_types_only_and_levels(value):
    scopes = "select count(scope) from events where kind = 'op'"
    shapes = "select count(input_shapes) from op_args"
    assert value("plain", scopes) > 0
    assert value("modules", scopes) == 0 and value("modules", shapes) > 0
    for name in ("is_detail", "level_0"):
        assert value(name, scopes) == value(name, shapes) == 0
        assert value(name, OPERATORS) > 100
    assert value("level_2", "select count(*) from allocations") > 0
    assert value("level_2", scopes) > 0


def test_subgraph_keeps_the_operators_of_one_pass(value):
    backward = "select count(*) from op_args where is_backward"
    forward = "select count(*) from op_args where not is_backward"
    assert value("plain", backward) > 0 and value("plain", forward) > 0
    assert value("forward", backward) == 0 and value("forward", forward) > 0
    assert value("backward", backward) > 0 and value("backward", forward) == 0
    dangling = """select count(*) from events e where parent_id is not null
        and not exists (from events p where p.id = e.parent_id)"""
    assert value("forward", dangling) == value("backward", dangling) == 0


def test_sample_rate_gives_a_curve_and_no_allocations(value):
    curve = COUNTERS + "= 'cpu memory_bytes'"
    operators = value("sample_rate", OPERATORS)
    assert value("plain", curve) == 0
    # Windows are written in pieces, each of which counts anew.
    assert operators // 7 - 4 <= value("sample_rate", curve) <= operators // 7
    assert value("sample_rate", "select count(*) from allocations") == 0


def test_hardware_metrics_are_counted_or_it_is_said_why_not(runs: Path, value):
    counted = value("hardware_metrics", COUNTERS + "in ('cycles_total', 'instructions_total')")
    said = [what for what in problems(runs / "hardware_metrics") if "hardware counters" in what]
    assert bool(counted) != bool(said)
    assert value("plain", COUNTERS + "in ('cycles_total', 'task_clock_ns_total')") == 0
    times = (runs / "stderr").read_text().count("hardware counters (cycles, instructions)")
    assert times == bool(said)


def test_samples(value):
    query = "select count(*) from samples"
    assert value("plain", query) > 0 and value("sample_stacks", query) == 0
    clock = COUNTERS + "= 'process_cpu_ns_total'"
    assert value("sample_ms", clock) > 2 * value("plain", clock)


@pytest.mark.parametrize(
    "name, expected", [("steps", {3, 4}), ("every", {4, 8}), ("schedule", {3, 6})]
)
def test_which_steps(name: str, expected: set[int], runs: Path):
    found = {step for (step,) in ask(runs / name, "select step from events where kind = 'module'")}
    # The step before a window takes the cost of starting up.
    assert expected <= found <= expected | {step - 1 for step in expected}


def test_timeline_limit_ends_full_recording(runs: Path, value):
    assert any("timeline_limit (1 MB)" in what for what in problems(runs / "timeline_limit"))
    last = value("timeline_limit", "select max(step) from events where kind = 'module'")
    assert last < steps(runs / "timeline_limit")[0]


def test_analyse_mode_and_formats_write_files(runs: Path):
    assert (runs / "analyse_mode" / "rank_0" / "tables" / "events.parquet").exists()
    assert (runs / "analyse_mode" / "chrome_timeline.json").stat().st_size > 1000


def test_data_simplification_drops_traces_and_keeps_the_run_whole(runs: Path, value):
    raw = runs / "data_simplification" / "rank_0" / "raw"
    assert not list(raw.glob("*.trace.json*")) and (raw / "facts.jsonl").exists()
    assert list((runs / "plain" / "rank_0" / "raw").glob("*.trace.json.gz"))
    assert abs(value("data_simplification", OPERATORS) - value("plain", OPERATORS)) < 50
    assert problems(runs / "data_simplification") == problems(runs / "plain")


def test_what_has_no_effect_is_said_once_and_kept(runs: Path):
    said = "hbm_ddr has no effect: memory of Ascend devices is not measured"
    assert said in problems(runs / "without_effect")
    assert (runs / "stderr").read_text().count(said) == 1


def test_scopes_analysis_in_the_background_and_configurations(tmp_path: Path):
    (tmp_path / "off.yaml").write_text("profile: false\n")
    text = """
with strobe.Profiler(output_path="data") as profiler:
    with strobe.scope("mine"):
        train(3)
    @strobe.scope("decorated")
    def decorated():
        train(1)
    decorated()
profiler.analyse(mode="async")
print(profiler.is_recording)
with strobe.Profiler.from_config("off.yaml") as off:
    train(2)
off.analyse()
with strobe.scope("outside"):
    pass
try:
    profiler.analyse(mode="sometimes")
except strobe.StrobeError as error:
    print(error)
"""
    done = python(said_training(tmp_path, text), cwd=tmp_path)
    assert done.stdout == (
        "False\nerror: analyse has no mode 'sometimes'\n  help: Modes: sync, async\n"
    )
    assert done.stderr == ""
    found = ask(tmp_path / "data", "select name from events where kind = 'annotation' order by id")
    assert found == [("mine",), ("decorated",)]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data", "off.yaml", "train.py"]
