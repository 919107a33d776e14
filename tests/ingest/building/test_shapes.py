import json

import pytest

pytest.importorskip("torch")
import torch
from torch.nn import functional as F

from strobe.ingest.building import shapes
from strobe.ingest.formats import kineto
from tests.ingest.traces import record

X = torch.randn(2, 4, 9, 9)
CASES = {
    "aten::mm": lambda: torch.randn(2, 3) @ torch.randn(3, 5),
    "aten::addmm": lambda: torch.addmm(torch.randn(5), torch.randn(2, 3), torch.randn(3, 5)),
    "aten::bmm": lambda: torch.bmm(torch.randn(4, 2, 3), torch.randn(4, 3, 5)),
    "aten::matmul": lambda: torch.randn(7, 1, 2, 3) @ torch.randn(4, 3, 5),
    "aten::linear": lambda: F.linear(torch.randn(6, 2, 3), torch.randn(5, 3)),
    "aten::add": lambda: torch.randn(4, 1, 3) + torch.randn(5, 1),
    "aten::mul_": lambda: torch.randn(4, 3).mul_(torch.randn(3)),
    "aten::where": lambda: torch.where(torch.ones(3, 1, dtype=torch.bool), torch.ones(4), 0.0),
    "aten::convolution": lambda: F.conv2d(X, torch.randn(6, 2, 3, 2), None, (2, 1), (1, 0), 2, 2),
    "aten::mkldnn_convolution": lambda: F.conv2d(X, torch.randn(6, 2, 3, 2), None, (2, 1), 1, 2, 2),
    "aten::conv2d": lambda: F.conv2d(X, torch.randn(6, 2, 3, 2), None, (2, 1), (1, 0), 2, 2),
    "aten::conv_transpose": lambda: F.conv_transpose2d(
        X, torch.randn(4, 3, 3, 3), None, stride=2, padding=1, output_padding=1, groups=2
    ),
    "aten::cat": lambda: torch.cat([torch.randn(2, 3), torch.randn(0), torch.randn(2, 5)], 1),
    "aten::stack": lambda: torch.stack([torch.randn(2, 3), torch.randn(2, 3)], -1),
    "aten::_softmax": lambda: torch.softmax(torch.randn(3, 4), -1),
}


@pytest.mark.parametrize("name", CASES)
def test_the_output_has_the_shape_that_torch_gives_it(tmp_path, name):
    made = []
    record(tmp_path / "trace.json", lambda: made.append(CASES[name]()))
    trace = kineto.read(tmp_path / "trace.json")
    wanted = "aten::convolution" if name == "aten::conv_transpose" else name
    row = [trace.names[code] for code in trace.events.name].index(wanted)
    dims, concrete = (
        shapes.parsed(trace.texts[trace.events.args[column][row]])
        for column in ("dims", "concrete")
    )
    assert shapes.outputs(wanted, dims, concrete) == [list(made[0].shape)]


def test_bytes_are_those_of_inputs_and_known_outputs():
    dtypes = ["float", "c10::Half", "Scalar"]
    assert shapes.bytes_touched([[2, 3], [3, 5], []], dtypes, [[2, 5]]) == 24 + 30 + 40
    assert shapes.bytes_touched([[2, 3]], ["long int"], None) == 48
    assert shapes.bytes_touched([[2, 3]], ["unheard of"], None) is None
    assert shapes.bytes_touched([[[2, 3], [4]]], ["TensorList"], None) is None
    assert shapes.bytes_touched([[[2, 3], [4]]], [["float", "double"]], [[10]]) == 24 + 32 + 40
    assert shapes.bytes_touched([[], []], ["", "ScalarList"], None) is None


def test_unknown_operators_and_broken_text_give_nothing():
    assert shapes.outputs("aten::nonzero", [[3]], []) is None
    assert shapes.outputs("aten::mm", [[3]], []) is None
    assert shapes.parsed('[[1, 2], "') == [] and shapes.parsed(None) == []
    assert shapes.parsed(json.dumps({"a": 1})) == []
