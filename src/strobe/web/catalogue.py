"""The catalogue of all runs below a base directory, with what each of them reached."""

import os
from pathlib import Path
from typing import Any

import duckdb

from strobe.analyse.metrics.catalogue import TABLES, Catalogue
from strobe.errors import UnreadableTrace, UsageError
from strobe.ingest.building.table_state import tables_home
from strobe.model.manifest import MANIFEST_FILE, Manifest, read_manifest
from strobe.web.answering.run_content import state_of, word_of
from strobe.web.base_dir import BaseDir

# Figures of more scalars than this are for SQL; a page shows some columns of them.
MOST_TAGS = 64


class BaseCatalogue:
    """`strobe.open_catalogue(folder)`: its runs, hyperparameters and scalars, for SQL."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        if not os.path.isdir(folder):
            raise UnreadableTrace.of("errors/run.no-directory", where=str(folder))
        self._base = BaseDir(Path(folder))
        self._manifests: dict[Path, tuple[tuple[int, int, int], Manifest]] = {}
        self.catalogue = Catalogue(self._describe, _home)
        self.refresh()

    def refresh(self) -> None:
        """Read again what has changed, and find new runs."""
        self.catalogue.refresh({self._base.name_of(run): run for run in self._base.runs()})

    def sql(self, query: str) -> duckdb.DuckDBPyRelation:
        """Any query over the tables `runs`, `run_hyperparameters` and `run_scalars`."""
        return self.catalogue.connection().sql(query)

    def _describe(self, run: Path) -> tuple[Manifest, str]:
        """From run.json alone where it says that the run is over."""
        try:
            status = os.stat(run / MANIFEST_FILE)
        except FileNotFoundError:
            self._base.refuse_links_that_lead_out(run)
            return state_of(run)
        state = (status.st_ino, status.st_size, status.st_mtime_ns)
        known = self._manifests.get(run)
        if known is None or known[0] != state:
            self._base.refuse_links_that_lead_out(run)
            known = self._manifests[run] = (state, read_manifest(run))
        manifest = known[1]
        if manifest.state == "recording":
            return state_of(run)
        return manifest, word_of(manifest)


def open_catalogue(folder: str | os.PathLike[str]) -> BaseCatalogue:
    """The runs below a directory, side by side. Raises UnreadableTrace if there is none."""
    return BaseCatalogue(folder)


_held: dict[Path, BaseCatalogue] = {}


def answer(base: BaseDir, job: dict[str, Any]) -> dict[str, Any]:
    """Runs, hyperparameters, the tags there are, and the figures of the tags that are asked for.

    `tags` is a list in the parameters of the job; without it, a page learns which there are.
    """
    held = _held.get(base.path)
    if held is None:
        held = _held[base.path] = BaseCatalogue(base.path)
    else:
        held.refresh()
    tags = job["tags"]
    if len(tags) > MOST_TAGS:
        raise UsageError("too many scalars at once", hint=f"at most {MOST_TAGS}")
    rows: dict[str, Any] = {}
    with held.catalogue.connection(tags, job["verdicts"]) as connection:
        for table in TABLES:
            columns = [{"name": c.name, "type": c.type, "doc": c.doc} for c in table.columns]
            found = connection.execute(f"FROM {table.name}").fetchall()
            rows[table.name] = {"columns": columns, "rows": found}
    return {"ok": True, "base_dir": str(base.path), "tags": held.catalogue.tags(), **rows}


def _home(run: Path) -> Path:
    """Tables of a run that cannot be written to are in the user's cache."""
    return run if os.access(run, os.W_OK) else tables_home(run)
