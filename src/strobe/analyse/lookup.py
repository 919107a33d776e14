"""Every stored table and every analysis, by name."""

import difflib
from typing import TYPE_CHECKING, Any

from strobe.analyse.select import declared
from strobe.analyse.tables import ANALYSES, Analysis
from strobe.errors import UsageError
from strobe.messages import message
from strobe.model.schema import STORED_TABLES, Table
from strobe.store.run import Run

if TYPE_CHECKING:
    import duckdb

ANALYSES_BY_NAME: dict[str, Analysis] = {analysis.NAME: analysis for analysis in ANALYSES}
_STORED: dict[str, Table] = {table.name: table for table in STORED_TABLES}


def table_names() -> list[str]:
    """Everything that can be shown, analyses first."""
    return [*ANALYSES_BY_NAME, *_STORED]


def declaration(name: str) -> Table:
    """The declared table with this name; hyphens and underscores are equivalent."""
    hyphens, underscores = name.replace("_", "-"), name.replace("-", "_")
    if hyphens in ANALYSES_BY_NAME:
        return ANALYSES_BY_NAME[hyphens].RESULT
    if underscores in _STORED:
        return _STORED[underscores]
    near = difflib.get_close_matches(name.lower(), table_names(), 1)
    known = ", ".join(table_names())
    hint = message("errors/names.near-table", near=near[0], known=known) if near else ""
    raise UsageError.of("errors/names.unknown-table", name=name, known=known, hint=hint)


def table_of(run: Run, name: str, /, **options: Any) -> "duckdb.DuckDBPyRelation":
    """A stored table or an analysis of a run; options filter and sort it, see analyse/select.py."""
    table = declaration(name)
    if table.name in ANALYSES_BY_NAME:
        return ANALYSES_BY_NAME[table.name].run(run, **options)
    if not any(value is not None for value in options.values()):
        return run.table(table.name)
    return declared(run.connection, table, f"FROM {table.name}", "", **options)
