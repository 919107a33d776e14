"""Each format's sample against what was written into it, or another reading of the same file."""

import csv
import gzip
import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from strobe.ingest.building.opening import open_run_dir
from strobe.ingest.formats.registry import READERS
from strobe.ingest.importing.discovery import discover
from strobe.ingest.importing.importer import import_traces
from strobe.store.run import Run
from tests.ingest.formats.samples import draw
from tests.ingest.metrics import SAMPLES, read, same

# The tests of these formats write every file that they read.
WITHOUT_A_SAMPLE = {"MLflow", "PyTorch memory snapshot", "Strobe's timeline", "W&B", "trackio"}
PATHS = {
    "Ascend profiler": "ascend",
    "Chrome trace": "chrome",
    "JAX trace JSON": "jax_trace",
    "MegEngine": "megengine",
    "MindSpore profiler": "mindspore",
    "MindSpore summary": "mindspore_summary/run",
    "TensorBoard": "tensorboard/run",
    "XPlane (JAX, XLA)": "xplane/step.xplane.pb",
    "torch.profiler": "kineto",
    "torch.profiler memory timeline": "torch_memory",
}
MOST_BYTES = 300_000


@pytest.fixture(scope="module")
def run_of(tmp_path_factory):
    runs: dict[str, Run] = {}

    def of(name: str) -> Run:
        if name not in runs:
            folder = tmp_path_factory.mktemp("sample") / "run"
            import_traces([SAMPLES / PATHS[name]], folder)
            runs[name] = open_run_dir(folder)
        return runs[name]

    yield of
    for run in runs.values():
        run.close()


def truth(folder: str) -> Any:
    return json.loads((SAMPLES / folder / "truth.json").read_text(encoding="utf-8"))


def unpacked(path: str) -> Any:
    return json.loads(gzip.decompress((SAMPLES / path).read_bytes()))


def counts(run: Run, kind: str) -> dict[str, int]:
    query = "SELECT name, count(*) FROM events WHERE kind = $1 GROUP BY name"
    return dict(run.sql(query, [kind]).fetchall())


def totals(run: Run, kind: str) -> dict[str, int]:
    query = "SELECT name, sum(dur_ns)::BIGINT FROM events WHERE kind = $1 GROUP BY name"
    return dict(run.sql(query, [kind]).fetchall())


def test_every_format_has_a_sample():
    assert {reader.NAME for reader in READERS} <= {*PATHS} | WITHOUT_A_SAMPLE


@pytest.mark.parametrize("name", PATHS)
def test_a_sample_is_recognised(name, tmp_path):
    found = discover([SAMPLES / PATHS[name]], tmp_path)
    assert {trace.reader for trace in found.traces} == {name}


def test_samples_are_small():
    assert sum(path.stat().st_size for path in SAMPLES.rglob("*") if path.is_file()) < MOST_BYTES


def test_torch_profiler(run_of):
    run = run_of("torch.profiler")
    events = unpacked("kineto/mlp.pt.trace.json.gz")["traceEvents"]
    operators = [event for event in events if event.get("cat") == "cpu_op"]
    assert counts(run, "op") == Counter(event["name"] for event in operators)
    lasted = sum(round(event["dur"] * 1000) for event in operators)
    assert sum(totals(run, "op").values()) == pytest.approx(lasted, abs=len(operators))
    steps = {e["name"]: round(e["dur"] * 1000) for e in events if "ProfilerStep#" in e["name"]}
    assert {1, 2, 3} == {int(name.split("#")[1]) for name in steps}
    found = run.sql("SELECT step, dur_ns FROM events WHERE kind = 'step' ORDER BY ts_ns").fetchall()
    assert [step for step, _ in found] == [1, 2, 3]
    flows = [event for event in events if event.get("cat") == "fwdbwd" and event["ph"] == "s"]
    assert run.sql("SELECT count(*) FROM links").fetchall() == [(len(flows),)]
    shapes = run.sql(
        "SELECT DISTINCT input_shapes FROM op_args JOIN events ON id = event_id"
        " WHERE name = 'aten::addmm'"
    ).fetchall()
    assert {json.dumps(json.loads(text)[:3]) for (text,) in shapes} == {
        "[[32], [8, 16], [16, 32]]", "[[4], [8, 32], [32, 4]]",
    }  # fmt: skip


def test_torch_memory_timeline(run_of):
    """Sizes have their signs; what was there before the recording comes first."""
    rows = unpacked("torch_memory/mlp.raw.json.gz")
    sizes = np.array([size for _, _, size, _ in rows])
    query = "SELECT ts_ns, value FROM counters WHERE name = 'device memory_bytes' ORDER BY ts_ns"
    found = run_of("torch.profiler memory timeline").sql(query).fetchall()
    began = min(moment for moment, _, _, _ in rows if moment >= 0)
    levels = dict(zip((max(row[0] - began, 0) for row in rows), sizes.cumsum(), strict=True))
    assert {moment: value for moment, value in found} == levels
    assert len(levels) > 20 and min(levels.values()) > 0


def test_xla(run_of):
    lines = truth("xplane")["/host:CPU"]
    (client,) = (line for name, line in lines.items() if "PjRtCpuClient" in name)
    marks = ("ThreadpoolListener", "ThunkExecutor", "end: ")
    operators = {name: count for name, count in client.items() if not name.startswith(marks)}
    for name in ("XPlane (JAX, XLA)", "JAX trace JSON"):
        run = run_of(name)
        assert counts(run, "op") == operators, name
        assert sum(counts(run, "step").values()) == lines["python"]["train"] == 3, name


def test_tensorboard(tmp_path):
    (tmp_path / "tables").mkdir()
    found, expected = read(SAMPLES / "tensorboard" / "run", folder=tmp_path), truth("tensorboard")
    assert found.tags == set(expected["scalars"])
    for tag, points in expected["scalars"].items():
        assert same(found.points(tag), points), tag
        moments = [row["ts_ns"] for row in found.tagged("scalars", tag)]
        assert moments == [(expected["began_s"] + step) * 10**9 for step, _ in points]
    wanted = expected["histogram"]
    (row,) = found.tagged("histograms", wanted["tag"])
    assert {name: row[name] for name in wanted} == wanted
    (image,) = found["images"]
    assert {name: image[name] for name in expected["image"]} == expected["image"]
    (text,) = found["texts"]
    assert {name: text[name] for name in expected["text"]} == expected["text"]
    assert not found.problems


def test_mindspore_summary(tmp_path):
    (tmp_path / "tables").mkdir()
    found = read(SAMPLES / "mindspore_summary" / "run", "MindSpore summary", tmp_path)
    expected = truth("mindspore_summary")
    assert found.tags == set(expected["scalars"])
    for tag, points in expected["scalars"].items():
        assert same(found.points(tag), points), tag
    tensors = [[row["step"], np.load(tmp_path / row["file"]).tolist()] for row in found["tensors"]]
    assert tensors == expected["tensors"]["weights"]
    for row in found["histograms"]:
        assert {name: row[name] for name in expected["histogram"]} == expected["histogram"]
    assert len(found["histograms"]) == 4


def test_mindspore_profiler(run_of):
    (folder,) = (SAMPLES / "mindspore").rglob("FRAMEWORK")
    expected: Counter[str] = Counter()
    with (folder / "cpu_op_type_info_0.csv").open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            expected[row["op_type"]] += int(row["type_occurrences"])
    run = run_of("MindSpore profiler")
    assert sum(counts(run, "op").values()) == sum(expected.values())
    runs = [
        one.split(",")
        for line in (folder / "cpu_op_execute_timestamp_0.txt").read_text().splitlines()
        for one in line.split(";")[2].split()
    ]
    lasted = sum(round(float(length) * 1e6) for _, length, _ in runs)
    assert sum(totals(run, "op").values()) == lasted


def test_ascend(run_of):
    run = run_of("Ascend profiler")
    kernels = [kernel for kernel in draw.KERNELS if kernel[2] != "HCCL"]
    (collective,) = (kernel for kernel in draw.KERNELS if kernel[2] == "HCCL")
    repeats = len(draw.STEPS)
    assert totals(run, "kernel") == {
        kind: round(lasts * 1000) * repeats for _, kind, _, _, lasts, _, _ in kernels
    }
    assert totals(run, "collective") == {
        collective[0].split("__")[0]: round(collective[4] * 1000) * repeats
    }
    steps = run.sql("SELECT dur_ns FROM events WHERE kind = 'step' ORDER BY ts_ns").fetchall()
    # A step begins where the one before ended.
    assert steps == [((draw.STEP_US - 10) * 1000,), (draw.STEP_US * 1000,)]
    host = {f"aten::{kind.lower()}": repeats for _, kind, *_ in draw.KERNELS}
    assert counts(run, "op") == host


def test_megengine(run_of):
    run = run_of("MegEngine")
    expected = {name.split(".")[1]: round(lasts * 2000) for name, lasts in draw.OPERATORS}
    assert totals(run, "op") == expected
    assert totals(run, "kernel") == expected


def test_chrome(run_of):
    run = run_of("Chrome trace")
    rows = run.sql(
        "SELECT e.name, e.ts_ns, e.dur_ns, p.name FROM events e"
        " LEFT JOIN events p ON p.id = e.parent_id ORDER BY e.ts_ns"
    ).fetchall()
    assert rows == [
        ("build", 0, 100_000, None),
        ("parse", 10_000, 20_500, "build"),
        ("link", 40_000, 5_000, "build"),
    ]
    assert run.sql("SELECT ts_ns, value FROM counters").fetchall() == [(50_000, 4096.0)]
    assert run.sql("SELECT count(*) FROM links").fetchall() == [(1,)]


def test_no_sample_names_a_machine():
    """Not even packed: test_repo.py reads text alone."""
    for path in SAMPLES.rglob("*"):
        if path.is_file() and path.suffix in (".gz", ".pb"):
            raw = path.read_bytes()
            content = gzip.decompress(raw) if path.suffix == ".gz" else raw
            for folder in (b"/home/", b"/root/", b"/tmp/", b"/work/"):
                assert folder not in content, path.name


def test_paths_of_samples_exist():
    assert all((SAMPLES / path).exists() for path in PATHS.values())
    assert Path(draw.__file__).parent == SAMPLES
