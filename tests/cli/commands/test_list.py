import json

import pytest

from strobe.cli import main
from tests.analyse.metrics.test_catalogue import write_run


@pytest.fixture
def listed(tmp_path, monkeypatch, capsys):
    """Call `strobe list` where there are runs: (exit code, stdout, stderr)."""
    base = tmp_path / "runs"
    write_run(base / "a", {"loss": [3, 1, 2], "lr": [1e-5]})
    write_run(base / "group" / "b", {"loss": [5, float("nan"), 4]}, state="killed")
    write_run(base / "c", {})
    (base / "broken").mkdir()
    (base / "broken" / "run.json").write_text("{ this is not JSON")
    for name in ("a", "c", "group/b"):  # what the web pages call a run has raw files
        (base / name / "rank_0" / "raw").mkdir()
    monkeypatch.chdir(base)

    def call(*words):
        code = main(["list", *words])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


def test_a_list_of_runs_says_which_metrics_there_are(listed):
    code, out, _ = listed("--width", "160")
    assert code == 0
    rows = {line.split()[0]: line.split() for line in out.splitlines()[1:-1]}
    assert set(rows) == {"a", "group/b", "c", "broken"}
    assert rows["group/b"][1] == "killed" and rows["broken"][1] == "broken"
    assert "Metrics (number of runs): loss (2), lr (1)." in out.splitlines()[-1]


def test_values_are_shown_and_ordered(listed):
    _, out, _ = listed("--tags", "loss,lr", "--order-by", "+loss", "--columns",
                       "run,loss,loss_min,loss_max,loss_max_step,loss_nan_count,lr")  # fmt: skip
    assert [line.split() for line in out.splitlines()[:3]] == [
        ["run", "loss", "loss_min", "loss_max", "loss_max_step", "loss_nan_count", "lr"],
        ["a", "2", "1", "3", "1", "0", "1e-05"],
        ["group/b", "4", "4", "5", "1", "1"],
    ]


def test_nan_is_shown_where_there_is_one(listed):
    assert "loss_nan_count" in listed("--tags", "loss")[1]
    assert "lr_nan_count" not in listed("--tags", "lr")[1]


def test_json_has_every_run_and_figure(listed):
    answer = json.loads(listed("--tags", "loss", "--json")[1])
    names = [column["name"] for column in answer["columns"]]
    rows = {row[0]: dict(zip(names, row, strict=True)) for row in answer["rows"]}
    assert answer["ok"] and len(rows) == 4
    assert rows["a"]["loss_min"] == 1 and rows["a"]["loss_min_step"] == 2
    assert rows["c"]["loss"] is None and rows["broken"]["problem"]


def test_the_first_runs_alone(listed):
    _, out, _ = listed("--top", "1", "--csv", "--columns", "run", "--order-by", "run")
    assert out == "run\na\n"


@pytest.mark.parametrize(
    "words, error",
    [
        (["nowhere"], "this directory does not exist"),
        (["--tags", "los"], "no run has a metric named 'los'"),
        (["--columns", "nope"], "table runs has no column nope"),
        (["--order-by", "nope"], "table runs has no column nope"),
    ],
)
def test_what_cannot_be_listed_is_refused(listed, words, error):
    code, _, err = listed(*words)
    assert code and error in err


def test_a_directory_without_runs(tmp_path, capsys):
    assert main(["list", str(tmp_path)]) == 0
    assert capsys.readouterr().out == "no rows: One row for each run.\n"
