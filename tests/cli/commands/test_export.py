import json

import pytest


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
    assert json.loads(out) == {"ok": True, "format": "json", "path": "x.json"}
