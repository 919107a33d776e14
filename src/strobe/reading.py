"""Open runs and traces in Python: every table and analysis by name, and the advice."""

import os
import re
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from strobe.advise import Advice, advise, rules_named
from strobe.analyse.comparison.runs import MIN_SHARE, Comparison
from strobe.analyse.comparison.runs import compare as compare_runs
from strobe.analyse.lookup import ANALYSES_BY_NAME, table_names, table_of
from strobe.errors import UsageError
from strobe.ingest.building.opening import open_run_dir
from strobe.ingest.importing.imported_run import run_of
from strobe.model.manifest import Manifest
from strobe.model.new_run import imported_name, new_run_folder
from strobe.store.run import Run

if TYPE_CHECKING:
    import duckdb

Location = str | os.PathLike[str]


class OpenedRun:
    """`run.events`, `run.steps`, `run.operator_types`, ...: DuckDB relations (.df(), .pl())."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.manifest: Manifest = run.manifest
        self.path = run.path
        self._views: set[str] = set()

    def table(self, name: str, /, **options: Any) -> "duckdb.DuckDBPyRelation":
        """A stored table or an analysis; options filter and sort it, see analyse/select.py."""
        return table_of(self.run, name, **options)

    def sql(self, query: str, params: Any = None) -> "duckdb.DuckDBPyRelation":
        """Any query; analyses are tables too, named with underscores."""
        for name in ANALYSES_BY_NAME:
            view = name.replace("-", "_")
            if name not in self._views and re.search(rf"\b{view}\b|\b{name}\b", query, re.I):
                relation = self.table(name)
                relation.create_view(view)
                if view != name:
                    relation.create_view(name)
                self._views.add(name)
        return self.run.sql(query, params)

    def advise(self, *rules: str) -> Advice:
        """Verdict, findings, clear and cannot_tell of these rules, or of all."""
        return advise(self.run, rules_named(rules))

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

    def __getattr__(self, name: str) -> "duckdb.DuckDBPyRelation":
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


def open_run(path: Location) -> OpenedRun:
    """A run, or traces that another tool wrote: a file, a folder or an archive.

    Traces are imported into the user's cache, once for each content.
    """
    return OpenedRun(open_run_dir(run_of(Path(path))))


def import_traces(
    paths: Location | Iterable[Location],
    output: Location | None = None,
    *,
    overwrite: bool = False,
    is_limited: bool = True,
) -> Path:
    """Make a run of traces that another tool wrote, and return its folder, as `strobe import` does.

    `output` is the folder of the run (default: a new one in `strobe-runs/`), `overwrite` replaces
    the run that is there. With `is_limited=False`, folders are searched to their end, however many
    files they contain.
    """
    from strobe.ingest.importing import importer

    given = [Path(path) for path in ([paths] if isinstance(paths, str | os.PathLike) else paths)]
    if not given:
        raise UsageError("no trace to import", hint='strobe.import_traces("trace.json")')
    folder = new_run_folder(output, imported_name(given[0]), overwrite=overwrite)
    importer.import_traces(given, folder, is_limited=is_limited)
    return folder


def advice(path: Location, *rules: str) -> Advice:
    """Why is the run slow? With names of rules, only those are asked."""
    with open_run(path) as opened:
        return opened.advise(*rules)


def compare(a: Location, b: Location, *, min_share: float = MIN_SHARE) -> Comparison:
    """What got slower or faster from run A to run B, and what explains it."""
    with open_run(a) as before, open_run(b) as after:
        return compare_runs(before.run, after.run, min_share)
