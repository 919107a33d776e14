import json

import pytest

from strobe.errors import UnreadableTrace
from strobe.ingest.building.opening import open_run_dir
from strobe.ingest.building.table_state import is_current
from strobe.model.manifest import Manifest, read_manifest, write_manifest
from strobe.model.schema import SCHEMA_VERSION
from strobe.store.migrate import MIGRATIONS, Migration, migrate
from tests.ingest.runs import plain_steps, write_raw


def write_run(run, version: int, *, raw: bool = True) -> None:
    (run / "rank_0" / ("raw" if raw else "tables")).mkdir(parents=True)
    manifest = Manifest(started_unix_ns=1, recorded_by="a test", schema_version=version)
    write_manifest(run, manifest)


def test_an_older_run_takes_every_step_in_order(tmp_path):
    write_run(tmp_path, 3)
    taken = []
    steps = tuple(
        Migration(version, lambda run, v=version: taken.append((v, run))) for version in (5, 1, 3)
    )
    assert migrate(tmp_path, steps, target=6)
    assert taken == [(3, tmp_path), (5, tmp_path)]
    assert read_manifest(tmp_path).schema_version == 6
    assert not migrate(tmp_path, steps, target=6)
    assert len(taken) == 2


def test_a_step_may_change_the_manifest(tmp_path):
    write_run(tmp_path, 1)

    def rename(run):
        manifest = read_manifest(run)
        manifest.recorded_by = "renamed"
        write_manifest(run, manifest)

    migrate(tmp_path, (Migration(1, rename),), target=2)
    assert read_manifest(tmp_path).recorded_by == "renamed"


def test_a_failed_step_leaves_the_version_as_it_was(tmp_path):
    write_run(tmp_path, 1)
    with pytest.raises(ZeroDivisionError):
        migrate(tmp_path, (Migration(1, lambda run: 1 / 0),), target=2)
    assert read_manifest(tmp_path).schema_version == 1


def test_a_newer_run_is_refused_with_what_to_do(tmp_path):
    write_run(tmp_path, SCHEMA_VERSION + 1)
    with pytest.raises(UnreadableTrace) as caught:
        migrate(tmp_path)
    assert f"schema version {SCHEMA_VERSION + 1}" in caught.value.what
    assert "upgrade" in caught.value.hint


def test_an_older_run_without_raw_data_cannot_be_rebuilt(tmp_path):
    write_run(tmp_path, 1, raw=False)
    with pytest.raises(UnreadableTrace, match="no raw data"):
        migrate(tmp_path, target=2)


def test_the_registry_is_sorted_and_leads_no_further_than_this_version():
    versions = [migration.from_version for migration in MIGRATIONS]
    assert versions == sorted(set(versions))
    assert all(version < SCHEMA_VERSION for version in versions)


def test_an_older_run_is_rebuilt_when_opened(tmp_path):
    write_raw(tmp_path, plain_steps(2))
    open_run_dir(tmp_path)
    built = tmp_path / "rank_0" / "tables" / "built.json"
    stamp = json.loads(built.read_text())
    built.write_text(json.dumps({**stamp, "schema_version": SCHEMA_VERSION - 1}))
    manifest = read_manifest(tmp_path)
    manifest.schema_version = SCHEMA_VERSION - 1
    write_manifest(tmp_path, manifest)
    (tmp_path / "rank_0" / "tables" / "events.parquet").write_bytes(b"an older format")
    assert not is_current(tmp_path)
    assert len(open_run_dir(tmp_path).sql("SELECT * FROM events").fetchall()) > 2
    assert read_manifest(tmp_path).schema_version == SCHEMA_VERSION
