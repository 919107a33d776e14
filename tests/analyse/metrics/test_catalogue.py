import shutil

import numpy as np
import pytest

from strobe.analyse.metrics import catalogue as module
from strobe.analyse.metrics.catalogue import RUN_SCALARS, RUNS, Catalogue
from strobe.model.manifest import MANIFEST_FILE, Manifest, Rank, read_manifest, write_manifest
from strobe.store.metric_summary import FILE, MetricSummary
from strobe.store.strings import Strings

START_NS = 1_700_000_000 * 10**9


def write_run(folder, values, rank=0, hyperparameters=None, **manifest):
    """A run whose tables have been built, with these values of its scalars."""
    tables = folder / f"rank_{rank}" / "tables"
    tables.mkdir(parents=True, exist_ok=True)
    write_summary(tables, values, hyperparameters or {})
    given = {"state": "finished", "ended_unix_ns": START_NS + 5, **manifest}
    described = Manifest(started_unix_ns=START_NS, recorded_by="a test", **given)
    described.ranks = [Rank(0, 1, "here", frameworks={"torch": "2.13.0"})]
    write_manifest(folder, described)
    return folder


def write_summary(tables, values, hyperparameters=None):
    gathered = MetricSummary()
    for tag, of_tag in values.items():
        count = len(of_tag)
        gathered.add("scalars", {
            "tag": Strings(np.zeros(count, dtype=np.int32), [tag]),
            "step": np.arange(1, count + 1), "ts_ns": np.arange(count) * 10,
            "value": np.array(of_tag, dtype=np.float64), "attempt": np.ones(count, dtype=np.int64),
            "source": Strings(np.zeros(count, dtype=np.int32), ["test"]),
        })  # fmt: skip
    gathered.hyperparameters.update(hyperparameters or {})
    gathered.write(tables)


def described(run):
    manifest = read_manifest(run)
    return manifest, manifest.state


def refreshed(catalogue, base):
    catalogue.refresh({path.name: path for path in sorted(base.iterdir())})
    return catalogue


@pytest.fixture
def base(tmp_path):
    write_run(tmp_path / "a", {"loss": [3, 1, 2], "lr": [0.1]}, hyperparameters={"seed": "1"})
    write_run(tmp_path / "b", {"loss": [5, np.nan]}, state="killed", ended_unix_ns=None)
    write_run(tmp_path / "c", {})
    return tmp_path


def rows_of(catalogue, tags=None):
    with catalogue.connection(tags) as connection:
        return connection.execute(
            "SELECT run, rank, tag, count, nan_count, last, last_step, min, min_step, max, "
            "max_step FROM run_scalars ORDER BY run, rank, tag"
        ).fetchall()


def test_each_scalar_of_each_run_has_its_figures(base):
    catalogue = refreshed(Catalogue(described), base)
    assert rows_of(catalogue)[0] == ("a", 0, "loss", 3, 0, 2.0, 3, 1.0, 2, 3.0, 1)
    assert rows_of(catalogue)[1] == ("a", 0, "lr", 1, 0, 0.1, 1, 0.1, 1, 0.1, 1)
    run, *_, nan_count, last, last_step, low, _, _, _ = rows_of(catalogue)[2]
    assert (run, nan_count, last_step, low) == ("b", 1, 2, 5.0) and np.isnan(last)
    assert catalogue.tags() == {"loss": 2, "lr": 1}
    assert catalogue.hyperparameters() == [{"run": "a", "name": "seed", "value": "1"}]


def test_only_the_wanted_tags_are_given(base):
    catalogue = refreshed(Catalogue(described), base)
    assert [row[:3] for row in rows_of(catalogue, ["lr", "nothing"])] == [("a", 0, "lr")]
    assert rows_of(catalogue, []) == []


def test_states_lengths_and_frameworks_come_from_the_manifest(base):
    runs = {row["run"]: row for row in refreshed(Catalogue(described), base).runs({"a": "Fine."})}
    assert runs["a"]["state"] == "finished" and runs["a"]["dur_ns"] == 5
    assert runs["a"]["frameworks"] == "torch 2.13.0" and runs["a"]["scalars"] == 2
    assert (runs["a"]["verdict"], runs["b"]["verdict"]) == ("Fine.", None)
    assert runs["b"]["state"] == "killed" and runs["b"]["dur_ns"] == 10  # its last value
    assert runs["c"]["scalars"] == 0


def test_only_what_has_changed_is_read_again(base, monkeypatch):
    read = []
    whole = module.metric_summary.read
    monkeypatch.setattr(
        module.metric_summary, "read", lambda folder: read.append(folder) or whole(folder)
    )
    catalogue = refreshed(Catalogue(described), base)
    assert len(read) == 2
    write_summary(base / "b" / "rank_0" / "tables", {"loss": [5, 4, 3]})
    refreshed(catalogue, base)
    assert read[2:] == [base / "b" / "rank_0" / "tables"]
    assert rows_of(catalogue, ["loss"])[1][:6] == ("b", 0, "loss", 3, 0, 3.0)


def test_runs_come_and_go(base):
    catalogue = refreshed(Catalogue(described), base)
    shutil.rmtree(base / "a")
    write_run(base / "d", {"loss": [7]})
    refreshed(catalogue, base)
    assert {row["run"] for row in catalogue.runs()} == {"b", "c", "d"}
    assert [row[0] for row in rows_of(catalogue)] == ["b", "d"]


def test_a_run_that_is_removed_while_it_is_read_is_left_out(base):
    catalogue = Catalogue(described)
    catalogue.refresh({"a": base / "a", "gone": base / "gone"})
    assert [row["run"] for row in catalogue.runs()] == ["a"]


def test_a_broken_run_does_not_hide_the_others(base):
    (base / "a" / MANIFEST_FILE).write_text("{ this is not JSON")
    (base / "b" / "rank_0" / "tables" / FILE).write_bytes(b"something else")
    runs = {row["run"]: row for row in refreshed(Catalogue(described), base).runs()}
    assert runs["a"]["state"] == "broken" and "cannot be read" in runs["a"]["problem"]
    assert runs["b"]["state"] == "killed" and "damaged" in runs["b"]["problem"]
    assert runs["c"]["problem"] is None


def test_ranks_are_apart_and_their_hyperparameters_are_not(base):
    write_run(base / "a", {"loss": [9]}, rank=1, hyperparameters={"seed": "2", "rank": "1"})
    catalogue = refreshed(Catalogue(described), base)
    assert [row[:3] for row in rows_of(catalogue, ["loss"])][:2] == [
        ("a", 0, "loss"), ("a", 1, "loss")
    ]  # fmt: skip
    found = {(h["run"], h["name"]): h["value"] for h in catalogue.hyperparameters()}
    assert found == {("a", "seed"): "1", ("a", "rank"): "1"}


def test_links_are_not_followed(base, tmp_path_factory):
    outside = write_run(tmp_path_factory.mktemp("outside") / "run", {"secret": [1]})
    (base / "c" / "rank_1").symlink_to(outside / "rank_0")
    write_run(base / "d", {})
    shutil.rmtree(base / "d" / "rank_0" / "tables")
    (base / "d" / "rank_0" / "tables").symlink_to(outside / "rank_0" / "tables")
    catalogue = refreshed(Catalogue(described), base)
    assert "secret" not in catalogue.tags()


def test_tables_are_typed_where_there_are_no_rows(tmp_path):
    with Catalogue(described).connection() as connection:
        for table in (RUNS, RUN_SCALARS):
            found = connection.execute(f"FROM {table.name}").description
            assert [column[0] for column in found] == list(table.column_names)
