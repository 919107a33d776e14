import json
import subprocess
import sys

import pytest

import strobe
from strobe.cli import main
from strobe.cli.commands.compare import ratio
from strobe.ingest.importing.importer import import_traces
from strobe.show.formats import tensorboard
from tests.advise.drawings import same, steps
from tests.helpers import make_run
from tests.show.event_files.drawings import curve, metrics_run

SCRIPT = """
import sys, time, torch

class Rows(torch.utils.data.Dataset):
    def __len__(self):
        return 40
    def __getitem__(self, index):
        time.sleep(float(sys.argv[1]))
        return torch.ones(8)

model = torch.nn.Linear(8, 8)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for batch in torch.utils.data.DataLoader(Rows()):
    optimizer.zero_grad()
    model(batch).sum().backward()
    optimizer.step()
"""


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """Two recordings alike, of steps that mostly sleep, and a slower one."""
    folder = tmp_path_factory.mktemp("runs")
    (folder / "train.py").write_text(SCRIPT)
    for name, seconds in (("a", 0.05), ("same", 0.05), ("slow", 0.08)):
        command = [sys.executable, "-m", "strobe", "run", "--light", "-q", "-o", folder / name,
                   folder / "train.py", str(seconds)]  # fmt: skip
        assert subprocess.run(command, timeout=120, capture_output=True).returncode == 0
    return folder


@pytest.mark.slow
def test_two_recordings_of_one_script_have_no_difference(recorded, capsys):
    a, same = str(recorded / "a"), str(recorded / "same")
    assert main(["compare", a, same, "--fail-if-slower", "5%"]) == 0
    assert "No difference beyond noise" in capsys.readouterr().out


@pytest.mark.slow
def test_several_are_judged_one_by_one_against_the_first(recorded, capsys):
    a, alike, slow = (str(recorded / name) for name in ("a", "same", "slow"))
    assert main(["compare", a, alike, slow, "--fail-if-slower", "5%"]) == 1
    text = capsys.readouterr().out
    assert "B's step time changes" in text and "C is slower" in text
    assert main(["compare", a, alike, slow, "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert [each["b"] for each in answer["comparisons"]] == [alike, slow]


@pytest.mark.slow
def test_a_slower_one_fails_and_data_explains_it(recorded, capsys):
    a, slow = str(recorded / "a"), str(recorded / "slow")
    assert main(["compare", a, slow, "--fail-if-slower", "10%", "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert told["ok"] and 1.3 < told["step_ratio"] < 1.7
    first = dict(zip((c["name"] for c in told["explanation"]["columns"]),
                     told["explanation"]["rows"][0], strict=True))  # fmt: skip
    assert first["part"] == "data" and first["share"] > 0.9
    assert main(["compare", a, slow, "--fail-if-slower", "200%"]) == 0
    assert main(["compare", slow, a, "--fail-if-slower", "10%"]) == 0


@pytest.mark.slow
def test_in_python(recorded):
    assert strobe.compare(recorded / "a", recorded / "slow").is_slower(0.1)


@pytest.mark.slow
def test_too_few_steps_are_not_judged(recorded, tmp_path, capsys, monkeypatch):
    run = make_run(tmp_path, steps(*same({"forward": 30}, 3)))
    from strobe.cli.commands import compare
    from strobe.reading import OpenedRun

    monkeypatch.setattr(compare, "open_run", lambda path: OpenedRun(run))
    assert main(["compare", "a", "b", "--fail-if-slower", "5%"]) == 0
    assert "not judged: too few steps" in capsys.readouterr().err


@pytest.mark.parametrize(("text", "value"), [("5%", 0.05), ("5%", 0.05), ("0.05", 0.05)])
def test_ratios(text, value):
    assert ratio(text) == pytest.approx(value)


@pytest.mark.slow
def test_wrong_usage_ends_with_2(recorded, capsys):
    a = str(recorded / "a")
    assert main(["compare", a]) == 2
    assert main(["compare", a, a, "--fail-if-slower", "fast"]) == 2
    assert main(["compare", a, str(recorded / "none"), "--json"]) == 2
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["ok"] is False


def test_runs_of_metrics_alone(tmp_path, capsys):
    paths = []
    for name, end in (("a", 1.0), ("b", 0.5)):
        rows = curve("loss", [end + 4.0 * 0.5**step for step in range(100)])
        tensorboard.write(metrics_run(tmp_path / f"drawn-{name}", {"scalars": rows}),
                          tmp_path / name)  # fmt: skip
        import_traces([tmp_path / name], tmp_path / f"run-{name}")
        paths.append(str(tmp_path / f"run-{name}"))
    assert main(["compare", *paths, "--fail-if-slower", "5%"]) == 0
    out, err = capsys.readouterr()
    assert "loss: B ends better, at 0.5 instead of 1." in out
    assert err == "strobe: not judged: not both runs have training steps\n"
    assert main(["compare", *paths, "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["verdict"].startswith("loss: B ends better") and answer["step_ratio"] is None
    assert answer["prediction"] is None
    columns = [column["name"] for column in answer["metrics"]["columns"]]
    (row,) = (dict(zip(columns, row, strict=True)) for row in answer["metrics"]["rows"])
    assert (row["a_final"], row["b_final"], row["is_different"]) == (1.0, 0.5, True)
