"""The trend of a value over time."""

import numpy as np

from strobe.advise.training import Array

# All pairs of points are compared, so a longer series is reduced to this many points.
MOST_POINTS = 120


def slope(x: Array, y: Array) -> float:
    """The median slope between all pairs of points (Theil-Sen), which a single jump does not
    change."""
    chosen = np.linspace(0, len(x) - 1, min(MOST_POINTS, len(x))).astype(int)
    x, y = x[chosen].astype(float), y[chosen].astype(float)
    first, second = np.triu_indices(len(x), 1)
    distance = x[second] - x[first]
    is_apart = distance > 0
    if not is_apart.any():
        return 0.0
    return float(np.median((y[second] - y[first])[is_apart] / distance[is_apart]))
