"""What the file holds; that its pages work is seen in tests/browser/test_report.py."""

import base64
import gzip
import hashlib
import html
import json
import re
from pathlib import Path

import pytest

from strobe.analyse.tables.steps import call_history
from strobe.errors import UsageError
from strobe.reading import OpenedRun
from strobe.show.formats import html_report
from tests.analyse.drawings import MODEL, MODEL_ARGS
from tests.helpers import make_run

PAGES = Path(__file__).resolve().parents[3] / "ui" / "src"


@pytest.fixture
def run(tmp_path):
    return make_run(tmp_path / "<b>run", MODEL, MODEL_ARGS)


def held(path: Path) -> dict:
    packed = re.search(r'<script id="strobe-report"[^>]*>([^<]*)</script>', path.read_text())
    return json.loads(gzip.decompress(base64.b64decode(packed[1])))


def test_it_holds_the_answers_of_the_server(run, tmp_path):
    html_report.write(run, tmp_path / "run.html")
    found = held(tmp_path / "run.html")
    assert found["run"] == "<b>run"
    assert {*found["answers"]} == {"", "summary", "advice"}
    assert found["answers"][""]["ranks"] == [0]
    assert "verdict" in found["answers"]["summary"]["summary"]
    assert "data-starvation" in found["rules"]
    operators = found["tables"]["operators"]
    names = [column["name"] for column in operators["columns"]]
    wanted = OpenedRun(run).table("operators").fetchall()
    assert [row[names.index("name")] for row in operators["rows"]] == [row[1] for row in wanted]
    assert operators["total"] == len(wanted)


def test_only_its_own_script_and_style_may_run_and_names_are_no_markup(run, tmp_path):
    html_report.write(run, tmp_path / "run.html")
    text = (tmp_path / "run.html").read_text()
    assert html.escape("<b>run") in text
    assert "<b>run" not in text
    for tag in ("script", "style"):
        (inside,) = re.findall(rf"<{tag}>(.*?)</{tag}>", text, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(inside.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in text


def test_the_licences_of_what_is_in_it_go_with_it(run, tmp_path):
    html_report.write(run, tmp_path / "run.html")
    text = (tmp_path / "run.html").read_text()
    assert "Permission is hereby granted" in text
    assert re.search(r"^preact \d", text, re.MULTILINE)


def test_long_tables_are_cut_and_say_how_long_they_are(run, tmp_path, monkeypatch):
    monkeypatch.setattr(html_report, "MOST_ROWS", 2)
    html_report.write(run, tmp_path / "run.html")
    operators = held(tmp_path / "run.html")["tables"]["operators"]
    assert len(operators["rows"]) == 2
    assert operators["total"] == len(OpenedRun(run).table("operators").fetchall()) > 2


def test_a_file_that_would_be_too_large_holds_fewer_rows(run, tmp_path, monkeypatch):
    html_report.write(run, tmp_path / "whole.html")
    whole = (tmp_path / "whole.html").stat().st_size
    monkeypatch.setattr(html_report, "MOST_BYTES", whole - 1)
    monkeypatch.setattr(html_report, "MOST_ROWS", 6)
    html_report.write(run, tmp_path / "less.html")
    assert (tmp_path / "less.html").stat().st_size < whole
    assert len(held(tmp_path / "less.html")["tables"]["operators"]["rows"]) <= 6


def test_the_calls_of_the_costliest_operators_are_in_it(run, tmp_path):
    html_report.write(run, tmp_path / "run.html")
    calls = held(tmp_path / "run.html")["tables"]["call-history"]
    place = [column["name"] for column in calls["columns"]].index("name")
    assert {row[place] for row in calls["rows"]} == {
        name for (name,) in OpenedRun(run).table("operator-types").project("name").fetchall()
    }
    assert [column["name"] for column in calls["columns"]] == [
        column.name for column in call_history.RESULT.columns
    ]


def test_every_table_that_the_pages_of_a_file_ask_for_is_in_it():
    asked = set()
    for folder in ("overview", "steps", "operators", "pipeline", "memory"):
        for file in [*PAGES.glob(f"pages/{folder}/*.tsx"), *PAGES.glob(f"pages/{folder}.tsx")]:
            text = file.read_text(encoding="utf-8")
            asked |= {*re.findall(r"useTable\(\s*run,\s*'([\w-]+)'", text)}
            asked |= {*re.findall(r'<TableView[^>]*?\bname="([\w-]+)"', text, re.DOTALL)}
    assert len(asked) > 10
    assert asked <= {*html_report.TABLES, call_history.NAME}


def test_an_installation_without_the_pages_says_so(run, tmp_path, monkeypatch):
    monkeypatch.setattr(html_report.resources, "files", lambda package: tmp_path)
    with pytest.raises(UsageError, match="does not contain the web pages"):
        html_report.write(run, tmp_path / "run.html")
    assert not (tmp_path / "run.html").exists()
