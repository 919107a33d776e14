import json

import pytest

from strobe.cli import main
from strobe.ingest.importing.importer import import_traces
from strobe.show.formats import mindspore_summary
from tests.show.event_files.drawings import curve, metrics_run


@pytest.mark.parametrize(
    "name, expected",
    [
        ("chrome_timeline.json", "RUN.chrome_timeline.json"),
        ("csv", "RUN.csv"),
        ("json", "RUN.json"),
    ],
)
def test_each_format_under_its_default_name(strobe, tmp_path, name, expected):
    code, out, _ = strobe("export", "RUN", "--format", name)
    assert (code, out) == (0, f"wrote {expected}\n")
    assert (tmp_path / expected).exists()


def test_an_existing_file_is_kept_unless_forced(strobe, tmp_path):
    (tmp_path / "mine.json").write_text("mine")
    code, _, err = strobe("export", "RUN", "--format", "json", "-o", "mine.json")
    assert code == 2 and "already exists" in err and (tmp_path / "mine.json").read_text() == "mine"
    assert strobe("export", "RUN", "--format", "json", "-o", "mine.json", "--force")[0] == 0
    assert json.loads((tmp_path / "mine.json").read_text())["ok"]


def test_force_never_deletes_a_folder_of_other_things(strobe, tmp_path):
    (tmp_path / "papers").mkdir()
    (tmp_path / "papers" / "thesis.tex").write_text("years of work")
    for name in ("csv", "json"):
        code, _, err = strobe("export", "RUN", "--format", name, "-o", "papers", "--force")
        assert code == 2 and "contains other files" in err
    assert (tmp_path / "papers" / "thesis.tex").exists()


@pytest.mark.parametrize(
    "words, error",
    [
        (["RUN", "--format", "chrome"], "Did you mean chrome_timeline.json?"),
        (["RUN"], "missing arguments: --format"),
        (["nowhere", "--format", "json"], "this run does not exist"),
        (["RUN", "--format", "json", "-o", "absent/x.json"], "cannot write: "),
    ],
)
def test_wrong_input_leaves_nothing(strobe, tmp_path, words, error):
    code, out, err = strobe("export", *words)
    assert (code, out) == (2, "") and error in err
    assert [path.name for path in tmp_path.iterdir()] == ["RUN"]


def test_what_was_written_as_json(strobe):
    out = strobe("export", "RUN", "--format", "json", "-o", "x.json", "--json")[1]
    assert json.loads(out) == {"ok": True, "format": "json", "path": "x.json", "notes": []}


@pytest.fixture
def metrics(tmp_path):
    """A run with a scalar and a fact of lineage."""
    lineage = [{"kind": "custom", "name": "data", "value": "v1"}]
    rows = {"scalars": curve("loss", [1.0, 2.0]), "lineage": lineage}
    mindspore_summary.write(metrics_run(tmp_path / "drawn", rows), tmp_path / "summary")
    import_traces([tmp_path / "summary"], tmp_path / "METRICS")
    return str(tmp_path / "METRICS")


def test_what_a_format_cannot_hold_is_reported_once(metrics, tmp_path, capsys):
    words = ["export", metrics, "--format", "tensorboard", "-o"]
    note = "Lineage is left out, because TensorBoard has no place for it (facts: 1)."
    assert main([*words, str(tmp_path / "text")]) == 0
    assert capsys.readouterr() == (f"wrote {tmp_path / 'text'}\n", f"note: {note}\n")
    assert main([*words, str(tmp_path / "json"), "--json"]) == 0
    out, err = capsys.readouterr()
    assert (json.loads(out)["notes"], err) == ([note], "")


def test_force_replaces_a_folder_of_event_files_and_no_other(metrics, tmp_path, capsys):
    words = ["export", metrics, "--force", "-o", str(tmp_path / "out"), "--format"]
    for name, expected in (("tensorboard", 0), ("tensorboard", 0), ("mindspore_summary", 2)):
        assert main([*words, name]) == expected
    assert "contains other files" in capsys.readouterr().err


def test_a_run_without_metrics_cannot_be_an_event_file(strobe, tmp_path):
    code, _, err = strobe("export", "RUN", "--format", "tensorboard")
    assert code == 4 and "no training metrics" in err
    assert [path.name for path in tmp_path.iterdir()] == ["RUN"]
