import duckdb
import pytest

from strobe.errors import UsageError
from strobe.ingest.building.opening import open_run_dir
from strobe.model.schema import STORED_TABLES
from strobe.web.served_run import ServedRun
from tests.web.served import write_run

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    opened = ServedRun(open_run_dir(write_run(tmp_path_factory.mktemp("run"), ranks=2)))
    yield opened
    opened.close()


def count(run, query):
    ((number,),) = run.run.sql(query).fetchall()
    return number


def test_without_a_part_it_is_itself(run):
    assert run.narrowed("", "") is run


@pytest.mark.parametrize("table", [table.name for table in STORED_TABLES])
def test_every_stored_table_can_be_narrowed(run, table):
    part = run.narrowed("3:5", "1")
    assert count(part, f"SELECT count(*) FROM {table}") <= count(
        run, f"SELECT count(*) FROM {table}"
    )


def test_steps_phases_operators_and_waits_are_those_of_the_range(run):
    part = run.narrowed("3:5", "")
    steps = part.run.sql("SELECT DISTINCT step FROM events WHERE step IS NOT NULL ORDER BY step")
    assert steps.fetchall() == [(3,), (4,), (5,)]
    assert count(part, "SELECT count(*) FROM events WHERE kind = 'step'") == 6  # of two ranks
    assert count(part, "SELECT count(DISTINCT rank) FROM tracks") == 2
    waits = "SELECT count(*) FROM events WHERE kind = 'data'"
    assert (count(part, waits), count(run, waits)) == (6, 40)
    queues = "SELECT count(*) FROM queues"
    assert (count(part, queues), count(run, queues)) == (6, 40)


def test_what_is_in_no_step_belongs_where_it_lies_in_time(run):
    before = "SELECT count(*) FROM events WHERE name = 'aten::before_all_steps' AND step IS NULL"
    assert count(run, before) == 2
    assert count(run.narrowed("3:5", ""), before) == 0
    assert count(run.narrowed("", "1"), before) == 1


def test_ranges_may_be_open(run):
    assert count(run.narrowed("18:", ""), "SELECT min(step) FROM events") == 18
    assert count(run.narrowed(":2", ""), "SELECT max(step) FROM events") == 2


def test_a_rank_that_is_not_there_is_nothing(run):
    assert count(run.narrowed("", "7"), "SELECT count(*) FROM events") == 0


@pytest.mark.parametrize(("steps", "rank"), [("1", ""), ("a:b", ""), ("5:1", ""), ("", "x")])
def test_what_is_no_part_is_refused(run, steps, rank):
    with pytest.raises(UsageError):
        run.narrowed(steps, rank)


def test_parts_and_answers_are_forgotten_in_time(run):
    for first in range(1, 12):
        run.narrowed(f"{first}:", "")
    assert len(run._parts) <= 4
    for number in range(40):
        run.kept(run.run.sql(f"SELECT {number} AS n"))
    tables = "SELECT count(*) FROM duckdb_tables() WHERE starts_with(table_name, 'answer_')"
    assert count(run, tables) <= 24


def test_no_query_reaches_other_files(run, tmp_path):
    (tmp_path / "secret.csv").write_text("secret\n1\n")
    for query in (
        f"FROM read_csv('{tmp_path}/secret.csv')",
        f"COPY (SELECT 1) TO '{tmp_path}/written.csv'",
        "SET enable_external_access = true",
        "INSTALL httpfs",
    ):
        with pytest.raises(duckdb.Error):
            run.run.connection.execute(query)
    assert not (tmp_path / "written.csv").exists()


def test_advice_is_worked_out_once(run):
    assert run.advice is run.advice
