"""Runs and traces in Python: opened, asked, imported."""

from pathlib import Path

import pytest

import strobe
from strobe.analyse.tables import ANALYSES
from strobe.cli import main
from strobe.errors import UsageError
from strobe.reading import OpenedRun
from tests.analyse.drawings import MODEL, MODEL_ARGS
from tests.helpers import make_run
from tests.ingest.importing.test_importer import trace


@pytest.fixture
def opened(tmp_path):
    with OpenedRun(make_run(tmp_path, MODEL, MODEL_ARGS)) as opened:
        yield opened


@pytest.mark.parametrize("name", [analysis.NAME for analysis in ANALYSES])
def test_every_analysis_is_a_table_in_sql_after_it_was_asked_for_too(opened, name):
    whole = len(opened.table(name).fetchall())
    found = opened.sql(f"SELECT count(*) FROM {name.replace('-', '_')}").fetchall()
    assert found == [(whole,)]


def test_tables_are_attributes_and_analyses_are_tables_in_sql(opened):
    assert opened.operator_types.fetchall()[0][1] == "aten::mm"
    assert opened.sql("SELECT count(*) FROM steps JOIN operators ON true").fetchall() == [(12,)]
    assert opened.sql('SELECT count(*) FROM "step-statistics"').fetchall() == [(9,)]
    assert opened.sql("SELECT count(*) FROM Steps").fetchall() == [(2,)]
    assert "operator_types" in dir(opened)


def test_a_misspelt_table_names_the_nearest(opened):
    with pytest.raises(AttributeError, match="Did you mean operators"):
        opened.operatrs  # noqa: B018
    with pytest.raises(UsageError, match="unknown table: stepz"):
        opened.table("stepz")


def test_a_locked_run_reads_itself_and_nothing_else(opened, tmp_path):
    secret = tmp_path.parent / "secret.txt"
    secret.write_text("secret")
    opened.lock()
    assert len(opened.sql("SELECT * FROM operators").fetchall()) == 6
    with pytest.raises(Exception, match="disabled by configuration"):
        opened.sql(f"SELECT * FROM read_text('{secret}')").fetchall()
    with pytest.raises(Exception, match="locked"):
        opened.run.connection.execute("SET enable_external_access = true")


# --- opening and importing ----------------------------------------------------------------


@pytest.fixture
def trace_file(tmp_path, monkeypatch):
    cache = tmp_path / "cache"
    cache.mkdir()
    monkeypatch.setattr("strobe.ingest.importing.imported_run.user_cache", lambda: cache)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "trace.json").write_bytes(trace("mm", "add"))
    return tmp_path / "trace.json"


def test_a_trace_is_opened_like_a_run(trace_file):
    with strobe.open_run(str(trace_file)) as opened:
        assert opened.sql("SELECT count(*) FROM operators").fetchall() == [(2,)]
        assert opened.advise().verdict
    assert strobe.advice(trace_file).verdict
    with strobe.open_run(trace_file.parent / "trace.json") as again:
        assert again.path == opened.path


def test_what_does_not_exist_is_one_error_in_python_and_on_the_command_line(tmp_path, capsys):
    with pytest.raises(strobe.StrobeError) as caught:
        strobe.open_run(tmp_path / "nowhere")
    assert main(["show", str(tmp_path / "nowhere")]) == caught.value.exit_code == 2
    assert capsys.readouterr().err.strip() == str(caught.value)


def test_traces_are_imported_into_a_new_run(trace_file, tmp_path):
    run = strobe.import_traces(trace_file)
    assert run.parent == Path("strobe-runs") and run.name.startswith("trace-")
    with strobe.open_run(run) as opened:
        assert len(opened.events.fetchall()) == 2
    assert strobe.import_traces(trace_file) != run


@pytest.mark.slow
def test_a_run_is_only_replaced_if_that_is_allowed(trace_file, tmp_path):
    other = tmp_path / "other.json"
    other.write_bytes(trace("relu", rank=1))
    strobe.import_traces([trace_file], tmp_path / "run")
    with pytest.raises(UsageError, match="already contains a run"):
        strobe.import_traces([other], tmp_path / "run")
    strobe.import_traces([trace_file, other], tmp_path / "run", overwrite=True)
    with strobe.open_run(tmp_path / "run") as opened:
        names = opened.sql("SELECT DISTINCT name FROM op_args JOIN events ON id = event_id")
        assert sorted(names.fetchall()) == [("add",), ("mm",), ("relu",)]


def test_nothing_to_import_is_a_mistake():
    with pytest.raises(UsageError, match="no trace to import"):
        strobe.import_traces([])
