import json

import pytest

import strobe
from strobe.collect.torch.padding import padded_inputs
from strobe.model.journal import PADDED_INPUTS
from tests.faults.processes import write
from tests.warm import python, recorded

torch = pytest.importorskip("torch")


def tokens(*lengths, to=32):
    batch = torch.zeros(len(lengths), to, dtype=torch.long)
    for row, length in enumerate(lengths):
        batch[row, :length] = 7
    return batch


def test_the_longest_sample_of_a_batch_counts():
    assert padded_inputs((tokens(3, 11, 5),), {}) == [{"shape": [3, 32], "used": 11}]


def test_arguments_may_be_named_and_nested():
    given = {"batch": {"input_ids": tokens(3, 4), "labels": torch.zeros(2)}}
    assert padded_inputs((), given) == [{"shape": [2, 32], "used": 4}]


def test_padding_may_be_any_number():
    assert padded_inputs((tokens(3, 11) + 50256,), {}) == [{"shape": [2, 32], "used": 11}]


def test_features_are_padded_with_zeros():
    batch = torch.randn(4, 20, 3)
    assert padded_inputs((batch,), {}) == [{"shape": [4, 20, 3], "used": 20}]
    batch[:, 8:] = 0
    assert padded_inputs((batch,), {}) == [{"shape": [4, 20, 3], "used": 8}]


def test_a_batch_without_padding_uses_its_whole_length():
    assert padded_inputs((tokens(32, 3),), {}) == [{"shape": [2, 32], "used": 32}]


@pytest.mark.parametrize("value", [
    torch.zeros(4, 3, 32, 32), torch.zeros(4, 32), torch.zeros(1, 32, dtype=torch.long),
    torch.zeros(4, 32, dtype=torch.bool), torch.zeros(4, 8, dtype=torch.long), "text", None,
    torch.zeros(4, 32, 2, dtype=torch.bfloat16), torch.zeros(4, 32, 2, requires_grad=True),
    torch.zeros(4, 32, dtype=torch.long).to_sparse(), tokens(0, 0),
])  # fmt: skip
def test_what_is_no_padded_sequence_is_left_out(value):
    """Images, rows of a table, a single sample, masks, short rows, and what has no numpy type."""
    assert padded_inputs((value,), {}) == []


SCRIPT = """
import torch
net = torch.nn.Sequential(torch.nn.Embedding(9, 4), torch.nn.Flatten(), torch.nn.Linear(128, 2))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(12):
    batch = torch.zeros(4, 32, dtype=torch.long)
    batch[:, : step + 1] = 1
    net(batch).sum().backward()
    optimizer.step()
"""


@pytest.mark.slow
def test_early_calls_of_a_recorded_model_are_examined(tmp_path):
    done = python(*recorded(tmp_path / "run", write(tmp_path, SCRIPT)))
    assert (done.returncode, done.stderr) == (0, "")
    with strobe.open_run(tmp_path / "run") as run:
        rows = run.sql(f"SELECT details, line FROM places WHERE what = '{PADDED_INPUTS}'")
        found = [(json.loads(details), line) for details, line in rows.fetchall()]
    used = [(one["call"], one["inputs"][0]["used"]) for one, _ in found]
    assert used == [(4, 4), (8, 8), (12, 12)]
    assert {line for _, line in found} == {8}
