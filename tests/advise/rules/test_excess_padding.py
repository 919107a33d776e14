import json

import pytest

from strobe.advise.finding import Clear, Finding
from strobe.advise.rules import excess_padding
from strobe.model.journal import PADDED_INPUTS
from tests.advise.operators import Op, training

LENGTHS_US = {"forward": 500, "backward": 400, "update": 100}
COUNT, LENGTH = 4, 64


def examined(*used, shape=(COUNT, LENGTH)):
    """The length that the longest sample of each batch uses."""
    details = [{"call": call, "inputs": [{"shape": list(shape), "used": one}]}
               for call, one in enumerate(used)]  # fmt: skip
    return {"places": {
        "rank": [0] * len(used), "what": [PADDED_INPUTS] * len(used),
        "number": list(range(1, len(used) + 1)), "file": ["/x/train.py"] * len(used),
        "line": [31] * len(used), "function": ["main"] * len(used),
        "details": [json.dumps(one) for one in details],
    }}  # fmt: skip


def model(tmp_path, tables, forward):
    return training(tmp_path, lengths_us=LENGTHS_US, tables=tables, forward=forward)


def test_operators_of_the_padded_length_take_less_without_it(tmp_path):
    ops = [Op("aten::linear", 400, [[COUNT, LENGTH, 8], [8, 8]]), Op("aten::addmm", 100, [[4, 8]])]
    verdict = excess_padding.check(model(tmp_path, examined(16, 14, 18), ops))
    assert isinstance(verdict, Finding) and not verdict.is_certain
    assert verdict.share == pytest.approx(0.75 * 400 / 1000, abs=0.001)
    assert verdict.expected_speedup == pytest.approx(1 / 0.7, abs=0.01)
    assert verdict.title == "Training spends about 30% of its time computing on padding."
    assert verdict.why == (
        "Inputs are padded to 64, but the longest sample of a batch has 16 on average."
    )
    assert verdict.where == "train.py:31"


@pytest.mark.parametrize(("shape", "saved"), [
    ([COUNT * LENGTH, 8], 0.75),  # a linear layer sees all positions as rows
    ([COUNT, 2, LENGTH, LENGTH], 1 - 0.25**2),  # scores of attention
    ([COUNT * 2, LENGTH, LENGTH], 1 - 0.25**2),
    ([COUNT, LENGTH, LENGTH], 0.75),  # as many features as the sequence is long
    ([COUNT, 8], 0),
])  # fmt: skip
def test_what_padding_costs_depends_on_the_shape(tmp_path, shape, saved):
    ops = [Op("aten::op", 500, [shape, [[1, 2], [3, 4]], []])]
    verdict = excess_padding.check(model(tmp_path, examined(16, 16, 16), ops))
    share = verdict.share if isinstance(verdict, Finding) else 0
    assert share == pytest.approx(saved * 0.5, abs=0.001)


def test_calls_of_small_operators_do_not_get_faster(tmp_path):
    ops = [Op("aten::add", 10, [[COUNT, LENGTH, 8]])] * 50
    assert isinstance(excess_padding.check(model(tmp_path, examined(16, 16, 16), ops)), Clear)


@pytest.mark.parametrize("used", [(), (16, 16), (60, 64, 55)])
def test_too_few_batches_or_too_little_padding_is_clear(tmp_path, used):
    ops = [Op("aten::linear", 500, [[COUNT, LENGTH, 8]])]
    assert isinstance(excess_padding.check(model(tmp_path, examined(*used), ops)), Clear)
