"""Divide time into few stretches, so that a curve over any run is short enough to draw."""

# More than the columns of pixels that a wide screen has for them.
MOST_STRETCHES = 2_000


def stretch(moment: str, first: str, last: str) -> str:
    """SQL: number of the stretch between first and last that contains a moment, from 0.

    Moments are whole numbers, of nanoseconds or of steps; if there are fewer of them than
    stretches, each has its own.
    """
    return f"(({moment}) - ({first})) // (({last} - ({first})) // {MOST_STRETCHES} + 1)"
