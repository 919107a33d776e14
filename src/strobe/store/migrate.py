"""Runs recorded by other versions of Strobe: refuse the newer, bring the older up to date.

raw/ is the truth and tables/ follow from it, so the usual step is no step: tables of another
version are built anew when the run is opened. Only a change to what lies outside tables/ needs
a function here.
"""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from strobe.errors import UnreadableTrace
from strobe.model.manifest import MANIFEST_FILE, read_manifest, write_manifest
from strobe.model.schema import SCHEMA_VERSION


class Migration(NamedTuple):
    from_version: int
    step: Callable[[Path], None]  # given the run's directory; leads to from_version + 1


MIGRATIONS: tuple[Migration, ...] = ()  # keep sorted


def migrate(
    run: Path,
    migrations: tuple[Migration, ...] = MIGRATIONS,
    target: int = SCHEMA_VERSION,
) -> bool:
    """Bring a run's directory to the target version; whether there was anything to do."""
    manifest = read_manifest(run)
    refuse_newer(manifest.schema_version, run / MANIFEST_FILE, target)
    if manifest.schema_version == target:
        return False
    _refuse_without_raw(run, manifest.schema_version)
    steps = {migration.from_version: migration.step for migration in migrations}
    for version in range(manifest.schema_version, target):
        if version in steps:
            steps[version](run)
    manifest = read_manifest(run)  # a step may have changed it
    manifest.schema_version = target
    write_manifest(run, manifest)
    return True


def refuse_newer(version: int, path: Path, target: int = SCHEMA_VERSION) -> None:
    if version > target:
        raise UnreadableTrace.of(
            "errors/run.newer", where=str(path), version=version, target=target
        )


def _refuse_without_raw(run: Path, version: int) -> None:
    ranks = [rank for rank in run.glob("rank_*") if rank.is_dir()]
    bare = [rank.name for rank in ranks if not (rank / "raw").is_dir()]
    if bare:
        raise UnreadableTrace.of("errors/run.older", where=str(run / bare[0]), version=version)
