"""MLflow's runs in both kinds of store."""

import contextlib
import math
import random
import sqlite3
from contextlib import closing

import pytest
from fuzz.tracker_files import MLFLOW_TABLES, database, mlflow_rows

from strobe.errors import StrobeError
from tests.ingest.formats.trackers.stores import only, runs
from tests.ingest.metrics import Read, same, shared, truth

PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\6\0\0\0\4\x08\2\0\0\0"
WEIRD = {"mlflow_file": [math.nan, math.inf], "mlflow_sqlite": [math.nan, math.inf]}


@pytest.mark.parametrize("store", WEIRD)
def test_values_are_those_that_were_logged(store):
    found, expected = only(shared(f"others/{store}"), "MLflow"), truth("others/mlflow.truth.json")
    for tag, points in expected["metrics"].items():
        assert same(found.points(tag), points), tag
    assert repr([value for _, value in found.points("weird")]) == repr(WEIRD[store])
    facts = found.facts()
    assert {name: facts[name] for name in expected["hparams"]} == {
        "optimizer": ("adamw", None), "batch_size": ("64", 64.0), "learning_rate": ("0.1", 0.1),
        "use_ema": ("True", None),
    }  # fmt: skip
    assert found.facts("lineage")["experiment"] == ("exp one", None)
    assert found.facts("lineage")["status"] == ("FINISHED", None)
    assert found.problems == []


def store(tmp_path, rows):
    return database(tmp_path / "mlflow.db", MLFLOW_TABLES, rows)


def with_runs(tmp_path, names):
    rows = mlflow_rows("0" * 32, names[0])
    for number, name in enumerate(names[1:], 1):
        for table, more in mlflow_rows(f"{number}" * 32, name, steps=number).items():
            rows[table] += more if table != "experiments" else []
    return store(tmp_path, rows)


def test_each_run_of_a_database_is_a_run(tmp_path):
    path = with_runs(tmp_path, ["alpha", "beta", "alpha", "", "a/b", "../x"])
    found = runs(path, "MLflow")
    labels = [each.folder.relative_to(path).as_posix() for each in runs_of(path)]
    assert labels == ["0" * 32, "beta", "2" * 32, "3" * 32, "a/b", "5" * 32]
    assert {each.rank for each in runs_of(path)} == {0}
    assert [row["step"] for row in Read("MLflow", found["beta"])["scalars"]] == [0]
    assert found["beta"].first_unix_ns == 1_780_000_000 * 10**9


def runs_of(path):
    from strobe.ingest.formats.mlflow import reader
    from strobe.ingest.importing.sources import peek

    return reader.recognise(peek(path)).runs


def test_values_that_are_not_finite_and_negative_steps(tmp_path):
    rows = mlflow_rows()
    rows["metrics"].append(("late", 2, 0, "a" * 32, -3, 0))
    found = only(store(tmp_path, rows), "MLflow")
    assert same(found.points("loss"), [[0, 0.5], [1, "nan"], [2, "inf"], [3, "-inf"]])
    (late,) = found.tagged("scalars", "late")
    assert (late["step"], late["value"], late["ts_ns"]) == (-3, 2.0, None)
    assert [row["ts_ns"] for row in found.tagged("scalars", "loss")] == [
        (1_780_000_000_000 + n) * 10**6 for n in range(4)
    ]
    assert found.facts() == {"lr": ("0.1", 0.1), "net/depth": ("3", 3.0), "text": ("é x", None)}


def test_deleted_runs_are_not_listed(tmp_path):
    path = with_runs(tmp_path, ["alpha", "beta"])
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE runs SET lifecycle_stage = 'deleted' WHERE name = 'beta'")
    assert [*runs(path, "MLflow")] == ["alpha"]


def test_rows_of_another_type_cost_themselves(tmp_path):
    rows = mlflow_rows()
    rows["metrics"] += [("loss", "much", 1, "a" * 32, 9, 0), (b"loss", 1.0, 1, "a" * 32, 9, 0)]
    found = only(store(tmp_path, rows), "MLflow")
    assert len(found.points("loss")) == 4
    assert [*found.trace.said.counts.values()] == [2]


def test_a_cut_database_gives_what_it_has(tmp_path):
    path = store(tmp_path, mlflow_rows(steps=2000))
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])
    found = only(path, "MLflow")
    steps = [step for step, _ in found.points("loss")]
    assert 100 < len(steps) < 2000 and sorted(steps) == [*range(len(steps))]
    assert any("damaged" in what for what in found.problems)


def test_images_beside_the_database(tmp_path):
    images = tmp_path / "mlruns" / "1" / ("a" * 32) / "artifacts" / "images"
    images.mkdir(parents=True)
    (images / "a#b+step+3+timestamp+1780000000000+e448.png").write_bytes(PNG)
    (images / "a#b+step+3+timestamp+1780000000000+e448+compressed.webp").write_bytes(b"RIFF")
    (images / "old%step%4%timestamp%1780000000000%e449.png").write_bytes(PNG)
    (images.parent / "model.pt").write_bytes(b"x")
    (tmp_path / "tables").mkdir()
    path = store(tmp_path, mlflow_rows())
    found = only(path, "MLflow", tmp_path)
    assert [(row["tag"], row["step"], row["width"], row["ts_ns"]) for row in found["images"]] == [
        ("a/b", 3, 6, 1_780_000_000 * 10**9), ("old", 4, 6, 1_780_000_000 * 10**9)
    ]  # fmt: skip
    assert len(runs(path, "MLflow")["alpha"].ignored) == 4


def test_images_elsewhere_are_not_read(tmp_path):
    outside = tmp_path / "outside"
    (outside / "images").mkdir(parents=True)
    (outside / "images" / "a+step+3+timestamp+1780000000000+e448.png").write_bytes(PNG)
    (tmp_path / "store").mkdir()
    rows = mlflow_rows()
    rows["runs"] = [(*rows["runs"][0][:5], f"file://{outside}", 1)]
    assert only(store(tmp_path / "store", rows), "MLflow")["images"] == []


RUN_META = """artifact_uri: file:///tmp/x/artifacts
end_time: 1780000009000
experiment_id: '1'
lifecycle_stage: active
run_id: {run}
run_name: '{name}'
start_time: 1780000000000
status: 3
"""


@pytest.fixture
def mlruns(tmp_path):
    """A file store with an experiment and two runs."""
    experiment = tmp_path / "mlruns" / "1"
    experiment.mkdir(parents=True)
    (experiment / "meta.yaml").write_text("experiment_id: '1'\nname: exp one\n")
    for name in ("alpha", "beta"):
        run = experiment / name
        for part in ("metrics/val", "params/net", "tags", "artifacts"):
            (run / part).mkdir(parents=True)
        (run / "meta.yaml").write_text(RUN_META.format(run=name, name=f"it''s {name}"))
        (run / "metrics" / "val" / "acc").write_text("1780000000000 0.5 0\n1780000000100 nan 1\n")
        (run / "params" / "net" / "depth").write_text("3")
        (run / "tags" / "kind").write_text("demo\nof two lines")
        (run / "artifacts" / "note.txt").write_text("x")
    return tmp_path / "mlruns"


def test_each_run_of_a_folder_is_a_run(mlruns):
    found = runs(mlruns, "MLflow")
    assert [*found] == ["it's alpha", "it's beta"]
    alpha = found["it's alpha"]
    assert (alpha.folder, alpha.first_unix_ns) == (mlruns / "1" / "alpha", 1_780_000_000 * 10**9)
    assert [path.name for path in alpha.ignored] == ["note.txt"]
    read = Read("MLflow", alpha)
    assert same(read.points("val/acc"), [[0, 0.5], [1, "nan"]])
    assert read.facts() == {"net/depth": ("3", 3.0)}
    assert read.facts("lineage")["kind"] == ("demo\nof two lines", None)
    assert read.facts("lineage")["experiment"] == ("exp one", None)


@pytest.mark.parametrize(
    ("text", "points", "problem"),
    [
        ("1780000000000 1.5 3\n1780000000000 2.5", [[3, 1.5]], "ends within a line"),
        ("1780000000000 1.5 3 data 1a2b\n1780000000000 2 4\n", [[3, 1.5], [4, 2.0]], ""),
        ("1780000000000 1.5\n", [[0, 1.5]], ""),  # the form before steps
        ("1780000000000 1.5 -2\nxyz\n\n5 6 7 8\n", [[-2, 1.5], [7, 6.0]], "no metric"),
        ("1780000000000 1e400 1\n0 -inf 2\n", [[1, math.inf], [2, -math.inf]], ""),
        ("1780000000000 1 99999999999999999999\n", [], "no metric"),
        ("", [], ""),
    ],
)
def test_lines_of_a_metric(mlruns, text, points, problem):
    (mlruns / "1" / "alpha" / "metrics" / "loss").write_text(text)
    found = Read("MLflow", runs(mlruns, "MLflow")["it's alpha"])
    assert found.points("loss") == points
    assert [problem in what for what in found.problems] == [True] * bool(problem)


def test_a_damaged_run_hides_no_other(mlruns):
    (mlruns / "1" / "alpha" / "meta.yaml").write_bytes(b"\xff\0:::")
    (mlruns / "1" / "beta" / "metrics" / "bad").write_bytes(b"\xff\xfe" * 50)
    assert [*runs(mlruns, "MLflow")] == ["it's beta"]
    found = Read("MLflow", runs(mlruns, "MLflow")["it's beta"])
    assert len(found.points("val/acc")) == 2


def test_mutated_databases_raise_nothing_but_our_own_errors(tmp_path):
    data = store(tmp_path, mlflow_rows(steps=40)).read_bytes()
    source = random.Random(0)
    path = tmp_path / "mutated.db"
    for _ in range(100):
        mutated = bytearray(data)
        for _ in range(source.choice((1, 4, 16))):
            mutated[source.randrange(len(data))] = source.randrange(256)
        path.write_bytes(mutated)
        with contextlib.suppress(StrobeError):
            for found in runs(path, "MLflow").values():
                Read("MLflow", found)
