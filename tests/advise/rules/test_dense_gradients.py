import json

import pytest

from strobe.advise.finding import Clear, Finding
from strobe.advise.rules import dense_gradients
from tests.advise.operators import Op, training

LENGTHS_US = {"forward": 300, "backward": 400, "update": 300}
TABLE, HEAD = [100_000, 32], [32, 8]


def model(tmp_path, *, rows=100_000, lookups=(64,), optimizer="Adam", is_dense=True):
    """A table whose backward fills 200 µs and whose update takes 250 µs of a 1,000 µs step."""
    table = [rows, 32]
    backward = [Op("aten::fill_", 200, [table], scope="Net.words", of=0)] if is_dense else []
    return training(
        tmp_path, lengths_us=LENGTHS_US,
        tables={"places": {
            "rank": [0], "what": ["update"], "number": [1], "file": ["/x/train.py"], "line": [31],
            "function": ["main"], "details": [json.dumps({"optimizer": optimizer})],
        }},
        forward=[Op("aten::embedding", 50, [table, list(lookups)], scope="Net.words")],
        backward=[*backward, Op("AddmmBackward0", 100, [HEAD], scope="Net.head")],
        update=[Op("aten::add_", 250, [table, table], scope=None),
                Op("aten::mul_", 10, [HEAD], scope=None)],
    )  # fmt: skip


def test_a_gradient_as_large_as_the_table_costs_its_backward_and_its_update(tmp_path):
    verdict = dense_gradients.check(model(tmp_path))
    assert isinstance(verdict, Finding) and not verdict.is_certain
    # 4 times 64 of 100,000 rows stay.
    assert verdict.share == pytest.approx((200 + 250) / 1000 * (1 - 4 * 64 / 100_000), abs=0.002)
    assert verdict.title == (
        "Filling and applying the mostly zero gradient of Net.words takes about 45% of step time."
    )
    assert verdict.why == "The gradient has 100,000 rows, and a step uses at most 64 of them."
    assert verdict.where == "Net.words" and "SparseAdam" in verdict.fixes[0]


def test_an_optimizer_that_takes_sparse_gradients_stays(tmp_path):
    verdict = dense_gradients.check(model(tmp_path, optimizer="SGD"))
    assert isinstance(verdict, Finding)
    assert verdict.fixes[0].endswith("which SGD supports if `weight_decay` is 0")


def test_a_batch_that_uses_much_of_the_table_is_clear(tmp_path):
    verdict = dense_gradients.check(model(tmp_path, rows=5_000, lookups=(64, 20)))
    assert verdict == Clear("No embedding has a gradient that is mostly zero.")


def test_a_gradient_that_is_sparse_already_is_clear(tmp_path):
    verdict = dense_gradients.check(model(tmp_path, is_dense=False))
    assert verdict == Clear("No embedding has a gradient that is mostly zero.")
