import pytest

from strobe.analyse.opened import OpenedRun, declaration, table_names
from strobe.analyse.tables import ANALYSES
from strobe.errors import UsageError
from strobe.store.columns import SQL_TYPES
from tests.analyse.drawings import MODEL, MODEL_ARGS
from tests.helpers import make_run


@pytest.fixture
def opened(tmp_path):
    with OpenedRun(make_run(tmp_path, MODEL, MODEL_ARGS)) as opened:
        yield opened


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    with OpenedRun(make_run(tmp_path_factory.mktemp("run"), MODEL, MODEL_ARGS)) as opened:
        yield opened


@pytest.mark.parametrize("name", table_names())
def test_every_table_has_exactly_its_declared_columns_and_types(shared, name):
    relation, table = shared.table(name), declaration(name)
    assert tuple(relation.columns) == table.column_names
    assert [str(t) for t in relation.types] == [SQL_TYPES[c.type] for c in table.columns]
    assert all(column.doc.endswith((".", "...")) for column in table.columns)
    required = [i for i, column in enumerate(table.columns) if not column.nullable]
    assert all(row[i] is not None for row in relation.fetchall() for i in required)


def test_every_table_can_be_empty(tmp_path):
    with OpenedRun(make_run(tmp_path / "empty", "")) as opened:
        assert [name for name in table_names() if opened.table(name).fetchall()] == []


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
    with pytest.raises(AttributeError, match="did you mean operators"):
        opened.operatrs  # noqa: B018
    with pytest.raises(UsageError, match="no table named 'stepz'"):
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
