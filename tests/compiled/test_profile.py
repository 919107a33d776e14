"""strobe.profile_compiled: what operators of compiled functions cost, in a form others can read."""

import json

import pytest

import strobe
from strobe.cli import main
from strobe.compiled import profile as compiled
from strobe.errors import UsageError

torch = pytest.importorskip("torch")

WIDTH, ROWS = 64, 32


@pytest.fixture(scope="module")
def profiled(tmp_path_factory):
    """Of two layers with torch.compile, and where it was saved."""
    path = tmp_path_factory.mktemp("compiled") / "two layers.json"
    net = torch.nn.Sequential(
        torch.nn.Linear(WIDTH, WIDTH), torch.nn.Tanh(), torch.nn.Linear(WIDTH, 1)
    )
    compiled = torch.compile(lambda x: net(x).sum())
    with torch.no_grad():
        return strobe.profile_compiled(compiled, torch.ones(ROWS, WIDTH), repeat=4,
                                       output_path=path), path  # fmt: skip


@pytest.mark.slow
def test_operators_of_torch_compile_have_times_work_and_shapes(profiled):
    answer, _ = profiled
    graph, sections = answer["graph_exec"]["operator"], answer["profiler"]
    assert answer["strobe"]["repeat"] == 4
    types = {operator["type"] for operator in graph.values()}
    assert any("fused" in name for name in types), types
    flops = [found.get("computation", 0) for found in sections["opr_footprint"].values()]
    assert 2 * ROWS * WIDTH * WIDTH in flops or any(f > 2 * ROWS * WIDTH * WIDTH for f in flops)
    for times in sections["host"].values():
        for place in times.values():
            assert 0 <= place["start"] <= place["kern"] <= place["end"] < 60


@pytest.mark.slow
def test_what_is_saved_is_what_is_returned_and_strobe_operators_reads_it(profiled, capsys):
    answer, path = profiled
    assert json.loads(path.read_text()) == answer
    assert main(["operators", str(path), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["ok"] and told["rows"]


def test_a_function_that_is_not_compiled_is_refused():
    with pytest.raises(UsageError, match="is not a compiled function") as error:
        strobe.profile_compiled(len, [1])
    assert "torch.compile" in (error.value.hint or "")


def test_repeat_must_be_a_number_of_calls():
    with pytest.raises(UsageError, match="repeat"):
        strobe.profile_compiled(torch.compile(lambda x: x), torch.ones(1), repeat=0)


def test_operators_follow_each_other_as_they_did_in_every_run():
    """Two, one after the other, in two runs of different length."""
    rows = [
        {"run": run, "run_ns": begins, "ts_ns": begins + at, "host_ns": length, "host_wait_ns": 0,
         "thread": 1}
        for run, begins, first, second in ((0, 0, 100, 40), (1, 1000, 10, 60))
        for at, length in ((0, first), (first, second))
    ]  # fmt: skip
    first, second = (
        compiled._host_times(compiled.Operator("mm", "mm", rows[place::2]))["1"] for place in (0, 1)
    )
    assert first["end"] <= second["start"] + 1e-15
    assert (round(first["end"] * 1e9), round(second["end"] * 1e9)) == (55, 105)
