"""How fast a value rises or falls."""

import numpy as np

from strobe.advise.training import Array

# Every pair of points is compared: of longer series, this many points.
MOST_POINTS = 120


def slope(x: Array, y: Array) -> float:
    """The median of the slopes between all pairs of points: a single jump does not change it."""
    few = np.linspace(0, len(x) - 1, min(MOST_POINTS, len(x))).astype(int)
    x, y = x[few].astype(float), y[few].astype(float)
    first, second = np.triu_indices(len(x), 1)
    run = x[second] - x[first]
    is_apart = run > 0
    if not is_apart.any():
        return 0.0
    return float(np.median((y[second] - y[first])[is_apart] / run[is_apart]))
