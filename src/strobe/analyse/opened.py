"""A run opened for Python: every stored table and every analysis, by name."""

import difflib
import re
from types import TracebackType
from typing import Any

import duckdb

from strobe.analyse.select import declared
from strobe.analyse.tables import ANALYSES, Analysis
from strobe.errors import UsageError
from strobe.messages import message
from strobe.model.manifest import Manifest
from strobe.model.schema import STORED_TABLES, Table
from strobe.store.run import Run

_ANALYSES: dict[str, Analysis] = {analysis.NAME: analysis for analysis in ANALYSES}
_STORED: dict[str, Table] = {table.name: table for table in STORED_TABLES}


def table_names() -> list[str]:
    """Everything that can be shown, analyses first."""
    return [*_ANALYSES, *_STORED]


def declaration(name: str) -> Table:
    """The declared table with this name; hyphens and underscores are equivalent."""
    hyphens, underscores = name.replace("_", "-"), name.replace("-", "_")
    if hyphens in _ANALYSES:
        return _ANALYSES[hyphens].RESULT
    if underscores in _STORED:
        return _STORED[underscores]
    near = difflib.get_close_matches(name.lower(), table_names(), 1)
    known = ", ".join(table_names())
    hint = message("errors/names.near-table", near=near[0], known=known) if near else ""
    raise UsageError.of("errors/names.unknown-table", name=name, known=known, hint=hint)


class OpenedRun:
    """`run.events`, `run.steps`, `run.operator_types`, ...: DuckDB relations (.df(), .pl())."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.manifest: Manifest = run.manifest
        self.path = run.path
        self._named: set[str] = set()

    def table(self, name: str, /, **options: Any) -> duckdb.DuckDBPyRelation:
        """A stored table or an analysis; options filter and sort it, see analyse/select.py."""
        table = declaration(name)
        if table.name in _ANALYSES:
            return _ANALYSES[table.name].run(self.run, **options)
        if not any(value is not None for value in options.values()):
            return self.run.table(table.name)
        return declared(self.run.connection, table, f"FROM {table.name}", "", **options)

    def sql(self, query: str, params: Any = None) -> duckdb.DuckDBPyRelation:
        """Any query; analyses are tables too, named with underscores."""
        for name in _ANALYSES:
            view = name.replace("-", "_")
            if name not in self._named and re.search(rf"\b{view}\b|\b{name}\b", query, re.I):
                relation = self.table(name)
                relation.create_view(view)
                if view != name:
                    relation.create_view(name)
                self._named.add(name)
        return self.run.sql(query, params)

    def lock(self) -> None:
        """From now on, no query can read or write anything but this run's own files."""
        folder = str(self.path.resolve()).replace("'", "''")
        given = str(self.path).replace("'", "''")
        for setting in (
            f"allowed_directories = ['{folder}', '{given}']",
            "python_enable_replacements = false",
            "enable_external_access = false",
            "lock_configuration = true",
        ):
            self.run.connection.execute(f"SET {setting}")

    def close(self) -> None:
        self.run.close()

    def __getattr__(self, name: str) -> duckdb.DuckDBPyRelation:
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            return self.table(name)
        except UsageError as error:
            raise AttributeError(f"{error.what}; {error.hint}") from None

    def __dir__(self) -> list[str]:
        tables = [name.replace("-", "_") for name in table_names()]
        return [*super().__dir__(), *tables]

    def __enter__(self) -> "OpenedRun":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
