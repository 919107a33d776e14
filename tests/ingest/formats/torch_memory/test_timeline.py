import gzip
import json

import pytest

from tests.ingest.imports import imported, shared

EVENTS = [
    [-1, 1, 100, 0],  # parameters that were there before
    [2_000_000_000_000_000_000, 2, 50, 4],
    [2_000_000_000_000_000_000, 2, 30, 4],
    [2_000_000_000_000_000_005, 3, -30, 4],
    [2_000_000_000_000_000_005, 3, 30, 5],
    [2_000_000_000_000_000_009, 4, -50, 4],
]


def counters(run) -> dict[str, list[tuple[int, float]]]:
    found: dict[str, list[tuple[int, float]]] = {}
    for name, ts, value in run.sql(
        "SELECT name, ts_ns, value FROM counters ORDER BY name, ts_ns"
    ).fetchall():
        found.setdefault(name, []).append((ts, value))
    return found


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_each_category_is_a_level(tmp_path, pack):
    (tmp_path / "timeline.raw.json").write_bytes(pack(json.dumps(EVENTS).encode()))
    run = imported(tmp_path / "timeline.raw.json", tmp_path)
    assert counters(run) == {
        "device activation_bytes": [(0, 80), (5, 50), (9, 0)],
        "device gradient_bytes": [(5, 30)],
        "device memory_bytes": [(0, 180), (5, 180), (9, 130)],
        "device parameter_bytes": [(0, 100)],
    }


def test_a_cut_file_gives_what_it_has(tmp_path):
    text = json.dumps(EVENTS).encode()
    (tmp_path / "t.json").write_bytes(text[: text.rindex(b"[") + 4])
    run = imported(tmp_path / "t.json", tmp_path)
    assert counters(run)["device memory_bytes"] == [(0, 180), (5, 180)]
    ((what,),) = run.sql("SELECT what FROM problems").fetchall()
    assert "cut short" in what


def test_a_number_that_is_none_ends_what_is_read(tmp_path):
    text = json.dumps(EVENTS).replace("3, 30, 5", "3, 0030, 5")
    (tmp_path / "t.json").write_text(text)
    run = imported(tmp_path / "t.json", tmp_path)
    assert counters(run)["device memory_bytes"] == [(0, 180), (5, 150)]


def test_a_real_one_holds_the_parameters_of_its_model(tmp_path):
    """ResNet-50 with momentum: 25,557,032 parameters of 4 bytes, in blocks of 512; its optimizer
    keeps as much again."""
    path = shared("hta/memory_timeline.raw.gz")
    found = counters(imported(path, tmp_path))
    events = json.loads(gzip.decompress(path.read_bytes()))
    assert found["device memory_bytes"][-1][1] == sum(size for _, _, size, _ in events)
    parameters = found["device parameter_bytes"][-1][1]
    assert 4 * 25_557_032 <= parameters <= 4 * 25_557_032 + 161 * 512 * 4
    assert found["device optimizer_state_bytes"][-1][1] == 4 * 25_557_032
    assert max(value for _, value in found["device activation_bytes"]) == 2_746_497_024
