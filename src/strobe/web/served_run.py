"""A run as the pages ask for it: narrowed to some steps or a rank, and answers kept for paging.

The stored tables of a narrowed run are put behind views of the same name, so that every analysis,
which asks for `events` or `counters`, sees only what is asked about.
"""

import functools
import hashlib
import os
import re
from typing import TYPE_CHECKING, Any

from strobe.advise import Advice, advise
from strobe.analyse.select import quoted
from strobe.errors import UsageError
from strobe.model.schema import STORED_TABLES, Table
from strobe.reading import OpenedRun
from strobe.store.run import Run

if TYPE_CHECKING:
    import duckdb

# Of the machine's memory, what DuckDB may take for one run before it spills to disk.
MEMORY_RATIO = 0.25
# Narrowed runs that are kept at once: what a person clicks back and forth between.
_MOST_PARTS = 4
# Tables kept at once: the orders and filters of what a person looks at.
_MOST_KEPT = 24
_MOST_COUNTS = 256


class ServedRun(OpenedRun):
    """An open run, with what was derived of it."""

    def __init__(self, run: Run) -> None:
        super().__init__(run)
        _confine(run)
        self._parts: dict[tuple[str, str], ServedRun] = {}
        self._kept: list[str] = []
        self._sources: dict[tuple[Any, ...], str] = {}
        self._counts: dict[str, int] = {}

    def narrowed(self, steps: str, rank: str) -> "ServedRun":
        """The run itself, or the part of it that `steps` ("10:20") and `rank` ("0") name."""
        first, last = _range(steps)
        if rank and not re.fullmatch(r"\d{1,6}", rank, re.ASCII):
            raise UsageError.of(
                "errors/pages.not-int", name="rank", value=repr(rank[:40]), example=0
            )
        if not steps and not rank:
            return self
        key = (f"{first}:{last}", rank)
        if key not in self._parts:
            while len(self._parts) >= _MOST_PARTS:
                self._parts.pop(next(iter(self._parts))).close()
            part = self.run.reopened()
            _narrow(part, first, last, int(rank) if rank else None)
            self._parts[key] = ServedRun(part)
        return self._parts[key]

    @functools.cached_property
    def advice(self) -> Advice:
        """What every rule says of it: asked once, told on several pages."""
        return advise(self.run)

    def source(self, table: Table, options: dict[str, Any]) -> str:
        """The rows of a table under a name; an analysis is worked out once for all its pages."""
        if table in STORED_TABLES and not options:
            return table.name
        key = (table.name, *sorted(options.items()))
        if self._sources.get(key) not in self._kept:
            self._sources[key] = self.kept(self.table(table.name, **options))
        return self._sources[key]

    def count(self, query: str) -> int:
        """How many rows `FROM ... WHERE ...` has: the same on every page of it."""
        if query not in self._counts:
            if len(self._counts) >= _MOST_COUNTS:
                self._counts.clear()
            found = self.run.connection.execute(f"SELECT count(*) {query}").fetchall()
            self._counts[query] = int(found[0][0])
        return self._counts[query]

    def kept(self, relation: "duckdb.DuckDBPyRelation") -> str:
        """The rows of a relation as a table of its own, made when first asked for."""
        query = relation.sql_query()
        name = f"answer_{hashlib.sha256(query.encode()).hexdigest()[:24]}"
        if name in self._kept:
            self._kept.remove(name)
        else:
            while len(self._kept) >= _MOST_KEPT:
                self.run.connection.execute(f"DROP TABLE IF EXISTS {self._kept.pop(0)}")
            self.run.connection.execute(f"CREATE OR REPLACE TABLE {name} AS {query}")
        self._kept.append(name)
        return name

    def close(self) -> None:
        for part in self._parts.values():
            part.close()
        self._parts.clear()
        super().close()


def _confine(run: Run) -> None:
    """No more memory than its share, and no other files than the tables of the run."""
    memory_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    folders = ", ".join(quoted(str(folder)) for folder in run.rank_dirs)
    for setting in (
        f"memory_limit = '{int(memory_bytes * MEMORY_RATIO)}B'",
        "enable_progress_bar = false",
        f"allowed_directories = [{folders}]",
        "python_enable_replacements = false",
        "enable_external_access = false",
        "lock_configuration = true",
    ):
        run.connection.execute(f"SET {setting}")


def _range(steps: str) -> tuple[int | None, int | None]:
    if not steps:
        return None, None
    match = re.fullmatch(r"(\d{0,12}):(\d{0,12})", steps, re.ASCII)
    if match is None:
        raise UsageError.of("errors/pages.bad-steps", value=repr(steps[:40]))
    first, last = (int(text) if text else None for text in match.groups())
    if first is not None and last is not None and first > last:
        raise UsageError.of("errors/pages.steps-reversed", first=first, last=last)
    return first, last


def _narrow(run: Run, first: int | None, last: int | None, rank: int | None) -> None:
    sql = run.connection.execute
    for table in STORED_TABLES:
        sql(f"ALTER VIEW {table.name} RENAME TO whole_{table.name}")
    is_rank = "true" if rank is None else f"rank = {rank}"
    sql(f"CREATE VIEW tracks AS FROM whole_tracks WHERE {is_rank}")
    has_steps = first is not None or last is not None
    if has_steps:
        in_steps = _within("e.step", first, last)
        sql(f"""
            CREATE TABLE part_ranks AS
            SELECT t.rank, min(e.ts_ns) AS begin_ns, max(e.ts_ns + e.dur_ns) AS end_ns
            FROM whole_events e JOIN tracks t ON t.id = e.track_id
            WHERE e.kind = 'step' AND {in_steps} GROUP BY t.rank
        """)
    else:
        in_steps = "true"
        sql("""CREATE TABLE part_ranks AS SELECT DISTINCT rank, -9223372036854775807 AS begin_ns,
               9223372036854775807 AS end_ns FROM tracks""")
    # What belongs to no step by its number does by its time. Windows stay: they tell which steps
    # were recorded in full.
    sql(f"""
        CREATE VIEW events AS SELECT e.* FROM whole_events e
        JOIN tracks t ON t.id = e.track_id JOIN part_ranks p ON p.rank = t.rank
        WHERE {in_steps} OR (e.step IS NULL AND (e.ts_ns >= p.begin_ns AND e.ts_ns < p.end_ns
              OR (e.kind = 'annotation' AND starts_with(e.name, 'strobe window'))))
    """)
    for table in STORED_TABLES:
        if table.name not in ("events", "tracks"):
            sql(f"CREATE VIEW {table.name} AS {_view(table.name, set(table.column_names))}")


def _view(name: str, columns: set[str]) -> str:
    whole = f"whole_{name}"
    if {"rank", "ts_ns"} <= columns:
        return f"""SELECT w.* FROM {whole} w JOIN part_ranks p ON p.rank = w.rank
                   WHERE w.ts_ns >= p.begin_ns AND w.ts_ns < p.end_ns"""
    if "rank" in columns:
        return f"FROM {whole} WHERE rank IS NULL OR rank IN (SELECT rank FROM tracks)"
    if "event_id" in columns:
        return f"FROM {whole} WHERE event_id IN (SELECT id FROM events)"
    return f"FROM {whole} WHERE from_id IN (SELECT id FROM events)"  # links


def _within(column: str, first: int | None, last: int | None) -> str:
    conditions = [f"{column} >= {first}"] if first is not None else []
    conditions += [f"{column} <= {last}"] if last is not None else []
    return " AND ".join(conditions) or "true"
