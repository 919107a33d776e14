import pytest

from strobe import units


@pytest.mark.parametrize(
    "ns, text",
    [
        (0, "0 ns"), (1, "1 ns"), (999, "999 ns"), (1000, "1.00 µs"), (12_345, "12.3 µs"),
        (999_499, "999 µs"), (999_600, "1.00 ms"), (12_300_000, "12.3 ms"), (1.5e9, "1.50 s"),
        (90e9, "90.0 s"), (150e9, "2.50 min"), (3 * 3600e9, "3.00 h"), (-1500, "-1.50 µs"),
    ],
)  # fmt: skip
def test_durations(ns, text):
    assert units.duration(ns) == text


def test_sizes_rates_counts_and_shares():
    assert [units.size(n) for n in (0, 512, 1536, 1.2 * 2**30)] == [
        "0 B", "512 B", "1.50 KiB", "1.20 GiB",
    ]  # fmt: skip
    assert units.rate(1.234e11, "FLOP/s") == "123 GFLOP/s"
    assert [units.count(n) for n in (0, 12345, 2.5, 1_234_567)] == ["0", "12,345", "2.50", "1.23 M"]
    assert [units.percent(r) for r in (0, 0.001, 0.062, 0.0999, 0.62, 1)] == [
        "0%", "0.1%", "6.2%", "10%", "62%", "100%",
    ]  # fmt: skip
    assert [units.times(r) for r in (1, 2.249, 9.96, 44.7)] == ["1.0×", "2.2×", "10×", "45×"]
    assert units.moment(12_345_678_901) == "12.345679 s"


@pytest.mark.parametrize(
    "text, ns",
    [("10ms", 10_000_000), ("1.5 s", 1_500_000_000), ("250", 250), (".5us", 500), ("3µs", 3000),
     ("0.000000001s", 1), ("2min", 120_000_000_000)],
)  # fmt: skip
def test_parsing_gives_exact_nanoseconds(text, ns):
    assert units.parse_duration(text) == ns


@pytest.mark.parametrize("text", ["", "fast", "10 parsecs", "-3ms", "1e3ms", "1..2s", "ms"])
def test_what_is_no_length_of_time_is_an_error(text):
    with pytest.raises(ValueError, match="not a length of time"):
        units.parse_duration(text)
