"""Time cut into few stretches, so that a curve over any run is short enough to draw."""

# More than a wide screen has columns to draw them in.
MOST_STRETCHES = 2_000


def stretch(moment: str, first: str, last: str) -> str:
    """SQL: number of the stretch between first and last that a moment lies in, from 0.

    Moments are whole numbers, of nanoseconds or of steps; where there are fewer of them than
    stretches, each has one of its own.
    """
    return f"(({moment}) - ({first})) // (({last} - ({first})) // {MOST_STRETCHES} + 1)"
