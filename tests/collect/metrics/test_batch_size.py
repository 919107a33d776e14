"""The size of a batch is the first dimension of its first array."""

from types import SimpleNamespace

import numpy as np

from strobe.collect.metrics.batch_size import batch_size


def test_the_first_array_counts():
    x = np.zeros((16, 8))
    assert batch_size(x) == 16
    assert batch_size([x, np.zeros(3)]) == 16
    assert batch_size({"names": ["a", "b"], "inputs": {"x": x}}) == 16
    assert batch_size(SimpleNamespace(x=x)) == 16


def test_what_has_no_array_is_unknown():
    assert batch_size(["a", "b"]) == 0
    assert batch_size(np.float32(1.0)) == 0
    assert batch_size(None) == 0
    assert batch_size(7) == 0
