import csv
import json

from strobe.analyse.lookup import table_names
from strobe.show.formats import FORMATS, csv_folder, json_file
from tests.analyse.drawings import MODEL, MODEL_ARGS
from tests.helpers import make_run


def test_every_format_has_a_name_and_a_sentence():
    assert [known.NAME for known in FORMATS] == [
        "chrome_timeline.json", "csv", "html", "json", "memory_flow.svg", "mindspore_summary",
        "tensorboard",
    ]  # fmt: skip
    assert all(known.DOC for known in FORMATS)


def test_csv_is_a_folder_of_every_table_and_replaces_an_older_one(tmp_path):
    run = make_run(tmp_path / "run", MODEL, MODEL_ARGS)
    for _ in range(2):
        csv_folder.write(run, tmp_path / "out")
    assert sorted(p.stem for p in (tmp_path / "out").iterdir()) == sorted(table_names())
    with (tmp_path / "out" / "steps.csv").open() as file:
        assert [row["step"] for row in csv.DictReader(file)] == ["1", "2"]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["out", "run"]


def test_json_holds_the_summary_and_every_table(tmp_path):
    json_file.write(make_run(tmp_path / "run", MODEL, MODEL_ARGS), tmp_path / "all.json")
    data = json.loads((tmp_path / "all.json").read_text())
    assert data["ok"] and list(data["tables"]) == table_names()
    assert data["summary"]["steps"]["count"] == 2
