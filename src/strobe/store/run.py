"""A run that is open for questions: its manifest, and its tables over all ranks."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from strobe.model.manifest import Manifest
from strobe.model.schema import STORED_TABLES, Table
from strobe.store.columns import SQL_TYPES, Columns, registered, relation_sql

if TYPE_CHECKING:
    import duckdb

TABLES_DIR = "tables"


def part_name(table: str, number: int) -> str:
    """The file of a part of a table; the parts of a long one are in order of time."""
    return f"{table}.{number:04}.parquet" if number else f"{table}.parquet"


class Run:
    """The stored tables of a run as views of one DuckDB connection, named as in the schema."""

    def __init__(
        self,
        path: Path,
        manifest: Manifest,
        rank_dirs: list[Path],
        *,
        held: Sequence[Mapping[str, Columns]] | None = None,
        store: Callable[[], None] = lambda: None,
    ) -> None:
        """The tables lie in the folders of the ranks, or are `held` in memory until `store()`."""
        import duckdb

        self.store = store
        self.path = path
        self.manifest = manifest
        self.rank_dirs = rank_dirs
        self.connection = duckdb.connect()
        self._made: set[str] = set()
        # 64-bit counts all the way: a sum of BIGINT would be a 128-bit HUGEINT otherwise.
        files = _files(rank_dirs)
        for table in STORED_TABLES:
            if held is None:
                source = _stored(table, files.get(table.name, []))
            else:
                source = self._held(
                    table, [part[table.name] for part in held if table.name in part]
                )
            self.connection.execute(f"CREATE VIEW {table.name} AS {source}")

    def sql(self, query: str, params: Any = None) -> "duckdb.DuckDBPyRelation":
        return self.connection.sql(query, params=params)

    def table(self, name: str) -> "duckdb.DuckDBPyRelation":
        return self.connection.table(name)

    def has(self, name: str) -> bool:
        """Whether `make` or `keep` was called for it."""
        return name in self._made

    def make(self, name: str, query: str, kind: str = "TABLE") -> None:
        """Derive a table or a view that several questions need, when the first of them asks.

        Not a temporary one: it would be unknown to the cursors that stream a result.
        """
        if name not in self._made:
            self.connection.execute(f"CREATE {kind} {name} AS {query}")
            self._made.add(name)

    def keep(self, name: str, columns: dict[str, Any]) -> None:
        """Arrays as a derived table."""
        self.make(name, registered(self.connection, f"{name}_columns", columns))
        self.connection.unregister(f"{name}_columns")

    def reopened(self) -> "Run":
        """The same stored tables on a connection of its own, where views may be put over them."""
        return Run(self.path, self.manifest, self.rank_dirs)

    def close(self) -> None:
        self.connection.close()

    def _held(self, table: Table, parts: list[Columns]) -> str:
        queries = [
            f"SELECT * FROM ({relation_sql(self.connection, table, columns, f'held_{number}_')})"
            for number, columns in enumerate(parts)
        ]
        return " UNION ALL ".join(queries) or _stored(table, [])


def _stored(table: Table, files: list[Path]) -> str:
    if files:
        paths = ", ".join("'" + str(f).replace("'", "''") + "'" for f in files)
        return f"SELECT * FROM read_parquet([{paths}])"
    nulls = ", ".join(f'NULL::{SQL_TYPES[c.type]} AS "{c.name}"' for c in table.columns)
    return f"SELECT {nulls} LIMIT 0"


def _files(rank_dirs: list[Path]) -> dict[str, list[Path]]:
    """The parts of each table, rank by rank."""
    found: dict[str, list[Path]] = {}
    for folder in rank_dirs:
        for path in sorted((folder / TABLES_DIR).glob("*.parquet"), key=_place):
            found.setdefault(path.name.partition(".")[0], []).append(path)
    return found


def _place(path: Path) -> tuple[str, str]:
    name, _, number = path.name.removesuffix(".parquet").partition(".")
    return name, number
