import decimal
import fractions

import numpy as np
import pytest

from strobe.collect.metrics.numbers import NotANumber, number


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (1, 1.0), (True, 1.0), (0.1, 0.1), (np.float64(0.1), 0.1), (np.int64(3), 3.0),
        (np.float16(0.5), 0.5), (np.zeros((1, 1)), 0.0), (fractions.Fraction(1, 4), 0.25),
        (decimal.Decimal("0.5"), 0.5),
    ],
)  # fmt: skip
def test_numbers_of_every_kind(value, expected):
    assert number(value) == expected


def test_tensors_keep_their_own_precision():
    torch = pytest.importorskip("torch")
    for dtype in (torch.float32, torch.float64, torch.bfloat16, torch.float16):
        assert number(torch.tensor(0.1, dtype=dtype)) == torch.tensor(0.1, dtype=dtype).item()
    assert number(torch.tensor([[3]])) == 3.0
    assert number(torch.nn.Parameter(torch.tensor(2.0))) == 2.0


@pytest.mark.parametrize("value", ["1.5", b"1", [1], None, np.zeros(2), object(), 1j])
def test_what_is_not_a_number_is_refused(value):
    with pytest.raises(NotANumber):
        number(value)
