"""A run that is open for questions: its manifest, and its tables over all ranks."""

from pathlib import Path
from typing import Any

import duckdb

from strobe.model.manifest import Manifest
from strobe.model.schema import STORED_TABLES, Table
from strobe.store.columns import SQL_TYPES

TABLES_DIR = "tables"


class Run:
    """The stored tables of a run as views of one DuckDB connection, named as in the schema."""

    def __init__(self, path: Path, manifest: Manifest, rank_dirs: list[Path]) -> None:
        self.path = path
        self.manifest = manifest
        self.connection = duckdb.connect()
        # 64-bit counts all the way: a sum of BIGINT would be a 128-bit HUGEINT otherwise.
        for table in STORED_TABLES:
            files = [d / TABLES_DIR / f"{table.name}.parquet" for d in rank_dirs]
            self._add_view(table, [file for file in files if file.exists()])

    def sql(self, query: str, params: Any = None) -> duckdb.DuckDBPyRelation:
        return self.connection.sql(query, params=params)

    def table(self, name: str) -> duckdb.DuckDBPyRelation:
        return self.connection.table(name)

    def close(self) -> None:
        self.connection.close()

    def _add_view(self, table: Table, files: list[Path]) -> None:
        if files:
            paths = ", ".join("'" + str(f).replace("'", "''") + "'" for f in files)
            source = f"SELECT * FROM read_parquet([{paths}])"
        else:
            nulls = ", ".join(f'NULL::{SQL_TYPES[c.type]} AS "{c.name}"' for c in table.columns)
            source = f"SELECT {nulls} LIMIT 0"
        self.connection.execute(f"CREATE VIEW {table.name} AS {source}")
