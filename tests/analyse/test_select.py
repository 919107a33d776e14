import duckdb
import pytest

from strobe.analyse.select import declared
from strobe.errors import UsageError
from strobe.model.schema import Column, Table

TABLE = Table(
    "things",
    "Things.",
    (Column("name", "str", "Name."), Column("dur_ns", "i64", "Length."), Column("n", "f64", "N.")),
)
QUERY = "SELECT * FROM (VALUES ('a''b', 3::HUGEINT, 1), ('层.β', 7, NULL)) t(name, dur_ns, n)"


def ask(**options):
    with duckdb.connect() as connection:
        relation = declared(connection, TABLE, QUERY, "dur_ns", **options)
        return [str(t) for t in relation.types], relation.fetchall()


def test_types_are_those_declared():
    assert ask() == (["VARCHAR", "BIGINT", "DOUBLE"], [("a'b", 3, 1.0), ("层.β", 7, None)])


def test_any_script_and_quotes_can_be_searched():
    assert ask(name="层β")[1] == [("层.β", 7, None)]
    assert ask(name="'b")[1] == [("a'b", 3, 1.0)]
    assert ask(name="' OR 1=1 --")[1] == []


def test_nulls_come_last_in_any_order():
    assert [row[2] for row in ask(order_by="n")[1]] == [1.0, None]
    assert [row[2] for row in ask(order_by="+n")[1]] == [1.0, None]


@pytest.mark.parametrize("options", [{"scope": "x"}, {"type": "x"}, {"order_by": "durns"}])
def test_what_a_table_does_not_have_is_said(options):
    with pytest.raises(UsageError, match="things"):
        ask(**options)
