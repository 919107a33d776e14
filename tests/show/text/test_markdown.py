import io

from strobe.model.schema import Column, Table
from strobe.show.text.markdown import write_markdown

TABLE = Table("t", "A table.", (
    Column("name", "str", "A name."), Column("time_ns", "i64", "A time."),
    Column("scope", "str", "Nothing.", nullable=True),
))  # fmt: skip


def test_columns_that_say_something_with_their_units():
    out = io.StringIO()
    write_markdown(TABLE, [("a|b<c>", 1500, None), ("x\ny", 0, None)], out)
    assert out.getvalue() == (
        "| name | time |\n| --- | ---: |\n| a\\|b&lt;c> | 1.50 µs |\n| x y | 0 ns |\n"
    )


def test_no_rows_leave_the_heading():
    out = io.StringIO()
    write_markdown(TABLE, [], out)
    assert out.getvalue() == "| name | time | scope |\n| --- | ---: | --- |\n"
