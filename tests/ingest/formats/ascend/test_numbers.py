from strobe.ingest.formats.ascend.numbers import NEVER, moments

MOMENT = "1736408883704643.212"


def test_moments_are_exact_to_the_nanosecond():
    assert moments([MOMENT, "8999999999999999.999", "0.001"]).tolist() == [
        1736408883704643212, NEVER, 1,
    ]  # fmt: skip
    assert moments([MOMENT, "7.500"]).tolist() == [1736408883704643212, 7500]


def test_one_that_is_no_number_among_many_costs_no_more_than_the_others():
    """They were once tried in 2 to the power of so many ways, which never ended."""
    assert moments([MOMENT] * 1000 + ["N/A"]).tolist() == [1736408883704643212] * 1000 + [NEVER]
