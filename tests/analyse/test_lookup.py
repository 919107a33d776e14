"""Tables by name: as they are declared, whether or not they have rows."""

import contextlib

import pytest

from strobe.analyse.lookup import declaration, table_names, table_of
from strobe.errors import UsageError
from strobe.store.columns import SQL_TYPES
from tests.analyse.drawings import MODEL, MODEL_ARGS
from tests.helpers import make_run


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    with contextlib.closing(make_run(tmp_path_factory.mktemp("run"), MODEL, MODEL_ARGS)) as run:
        yield run


@pytest.mark.parametrize("name", table_names())
def test_every_table_has_exactly_its_declared_columns_and_types(drawn, name):
    relation, table = table_of(drawn, name), declaration(name)
    assert tuple(relation.columns) == table.column_names
    assert [str(t) for t in relation.types] == [SQL_TYPES[c.type] for c in table.columns]
    assert all(column.doc.endswith((".", "...")) for column in table.columns)
    required = [i for i, column in enumerate(table.columns) if not column.nullable]
    assert all(row[i] is not None for row in relation.fetchall() for i in required)


def test_every_table_can_be_empty(tmp_path):
    with contextlib.closing(make_run(tmp_path / "empty", "")) as run:
        assert [name for name in table_names() if table_of(run, name).fetchall()] == []


def test_a_misspelt_table_names_the_nearest():
    assert declaration("operator_types") is declaration("operator-types")
    with pytest.raises(UsageError, match="unknown table: operatrs") as caught:
        declaration("operatrs")
    assert caught.value.hint.startswith("Did you mean operators? Tables: ")
