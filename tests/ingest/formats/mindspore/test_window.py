"""A window as MindSpore's profiler leaves it: operators with shapes, work, scope and part."""

import gzip
from pathlib import Path

import pytest

from strobe.ingest.formats.kinds import KIND
from strobe.ingest.formats.mindspore import window
from strobe.ingest.formats.mindspore.names import meaning
from strobe.ingest.formats.mindspore.work import flops, flops_of
from strobe.ingest.trace.problems import Problems
from strobe.ingest.trace.spans import Vocabulary

BEGAN = 1_794_765_271_000_000_000
RUNS = """\
Default/network-Net/fc-Dense/MatMul-op1;HostCpuOps;{0},0.5,0 {2},0.5,0
Gradients/Default/network-Net/fc-Dense/Grad_MatMul/MatMul-op2;HostCpuOps;{1},0.25,0
Default/AllReduce-op3;HostCpuOps;{3},0.125,0
"""
SHAPES = """\
MatMul;MatMul-op1;1;input_1:[16, 32];input_2:[64, 32];
MatMul;MatMul-op2;1;input_1:[16, 64];input_2:[16, 32];
MatMul;MatMul-op1;1;input_1:[16, 32];input_2:[64, 32];
AllReduce;AllReduce-op3;1;input_1:[64, 32];
"""
MEMORY = "Timestamp(ns),Total Allocated(Byte),Total Reserved(Byte),Total Active(Byte)\n{0},5,9,4\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    home = tmp_path / "window-0001.mindspore"
    home.mkdir()
    moments = [BEGAN + n * 1_000_000 for n in range(4)]
    for name, content in (
        ("cpu_op_execute_timestamp_0.txt", RUNS), ("cpu_framework_0.txt", SHAPES),
        ("cpu_ms_memory_record_0.txt", MEMORY),
    ):  # fmt: skip
        with gzip.open(home / f"{name}.gz", "wt") as file:
            file.write(content.format(*moments))
    return home


def read(folder: Path, **options: object):
    words, said = Vocabulary(), Problems()
    found = window.read(folder, 1, BEGAN, words, said, options)
    return found, words, said


def test_operators_are_in_run_time_with_what_is_known_of_them(folder):
    found, words, said = read(folder)
    spans = found.spans
    assert spans.ts_ns.tolist() == [0, 1_000_000, 2_000_000, 3_000_000]
    assert spans.dur_ns.tolist() == [500_000, 250_000, 500_000, 125_000]
    assert [list(words.names)[n] for n in spans.name] == ["MatMul", "MatMul", "MatMul", "AllReduce"]
    assert spans.kind.tolist() == [KIND["op"]] * 3 + [KIND["collective"]]
    assert spans.arg("part").tolist() == [1, 2, 1, 0]
    assert spans.arg("backward").tolist() == [0, 1, 0, 0]
    assert spans.arg("flops").tolist() == [2 * 16 * 32 * 64] * 3 + [-1]
    assert list(words.scopes)[spans.arg("scope")[0]] == "network.fc"
    assert not said.counts
    assert [samples.value.tolist() for samples in found.counters] == [[5], [9], [4]]


@pytest.mark.parametrize(
    ("option", "arguments"),
    [("record_shapes", ["dims", "flops"]), ("with_flops", ["flops"]), ("modules", ["scope"])],
)
def test_options_leave_out_what_was_not_asked_for(folder, option, arguments):
    found, *_ = read(folder, **{option: False})
    for name in arguments:
        assert set(found.spans.arg(name).tolist()) == {-1}


def test_a_window_without_operators_is_a_problem(folder):
    (folder / "cpu_op_execute_timestamp_0.txt.gz").unlink()
    found, _, said = read(folder)
    assert not len(found.spans)
    assert [what for _, what in said.counts] == [
        "its operators are missing: MindSpore did not write them"
    ]


@pytest.mark.parametrize(
    ("kind", "shapes", "work"),
    [
        ("MatMul", "[[16, 32], [32, 64]]", 2 * 16 * 32 * 64),
        ("MatMul", "[[16, 32], [64, 32]]", 2 * 16 * 32 * 64),
        ("MatMul", "[[16, 64], [16, 32]]", 2 * 16 * 32 * 64),
        ("MatMul", "[[3, 5], [7, 11]]", -1),
        ("BatchMatMul", "[[4, 8, 16, 32], [4, 8, 32, 16]]", 2 * 32 * 16 * 32 * 16),
        ("MatMulExt", "[[8, 16], [5, 16, 4]]", 2 * 5 * 8 * 16 * 4),
        ("MatMulExt", "[[3, 1, 8, 16], [5, 16, 4]]", 2 * 3 * 5 * 8 * 16 * 4),
        ("Dense", "[[4, 16, 32], [64, 32], [64]]", 2 * 4 * 16 * 32 * 64),
        ("Conv2DBackpropInput", "[[2, 6, 28, 28], [6, 1, 5, 5]]", 2 * 2 * 6 * 28 * 28 * 25),
        ("Conv2DTranspose", "[[2, 6, 7, 7], [6, 3, 2, 2]]", 2 * 2 * 6 * 7 * 7 * 3 * 4),
        ("ReLU", "[[16, 64]]", -1),
        ("MatMul", "broken", -1),
    ],
)
def test_work_of_operators(kind, shapes, work):
    assert flops(kind, shapes) == work


BLOCK = "Default/network-Net/block-Block"
GRADIENT = f"Gradients/{BLOCK}"
X, OUTPUT, SMALL, LARGE = [4, 8, 16, 16], [4, 16, 8, 8], [16, 8, 1, 1], [16, 8, 3, 3]
WORK_SMALL, WORK_LARGE = 2 * 4 * 16 * 8 * 8 * 8, 2 * 4 * 16 * 8 * 8 * 8 * 9


def work(*operators: tuple[str, list[int], list[int]]) -> list[int]:
    return flops_of((meaning(name), str([a, b, []])) for name, a, b in operators)


def test_the_output_of_a_convolution_shows_in_the_gradient_of_its_filters():
    assert work(
        (f"{BLOCK}/conv1-Conv2d/Conv2D-op1", X, LARGE),
        (f"{BLOCK}/down-Conv2d/Conv2D-op2", X, SMALL),
        (f"{GRADIENT}/down-Conv2d/Grad_Conv2D/Conv2DBackpropFilter-op3", OUTPUT, X),
        (f"{GRADIENT}/conv1-Conv2d/Grad_Conv2D/Conv2DBackpropFilter-op4", OUTPUT, X),
    ) == [WORK_LARGE, WORK_SMALL, WORK_SMALL, WORK_LARGE]


def test_gradients_that_name_no_module_or_another_are_joined_where_that_is_certain():
    assert work(
        ("Default/Conv2D-op1", X, LARGE),
        ("Default/Conv2D-op2", X, SMALL),
        ("Default/Conv2DBackpropFilter-op3", OUTPUT, X),
    ) == [WORK_LARGE, WORK_SMALL, -1]
    assert work(
        (f"{BLOCK}/conv1-Conv2d/Conv2D-op1", X, LARGE),
        (f"{GRADIENT}/conv9-Conv2d/Grad_Conv2D/Conv2DBackpropFilter-op4", OUTPUT, X),
    ) == [WORK_LARGE, WORK_LARGE]


def test_convolutions_of_one_input_with_two_strides_are_not_known():
    assert work(
        ("Default/Conv2D-op1", X, LARGE),
        ("Default/Conv2D-op2", X, LARGE),
        ("Default/Conv2DBackpropFilter-op3", OUTPUT, X),
        ("Default/Conv2DBackpropFilter-op4", [4, 16, 16, 16], X),
    ) == [-1, -1, WORK_LARGE, 2 * 4 * 16 * 16 * 16 * 8 * 9]  # fmt: skip


def test_without_a_gradient_of_filters_a_convolution_is_not_known():
    assert work(("Default/Conv2D-op1", X, LARGE), ("Default/Conv2D-op2", [3], [4])) == [-1, -1]
