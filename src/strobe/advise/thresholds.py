"""What all rules agree on: which shares are worth reporting, and which gains are plausible.

A rule with a threshold of its own states it, with the reason, in its own file.
"""

# A smaller share of step time is lost in run-to-run noise.
SMALLEST_SHARE = 0.05
# The same for a cost that is estimated from how busy cores are, rather than measured in steps.
SMALLEST_SHARE_OF_CORES = 0.1
# If the fix is one safe line, a smaller share is reported too, as a warning.
SMALLEST_WARNING_SHARE = 0.01

# More is not believed to be saved: of an estimated cost, and of time that was measured.
MOST_ESTIMATED = 0.95
MOST_MEASURED = 0.99
# A device that is nearly always idle could be a hundred times as fast, but no fix achieves that.
MOST_SPEEDUP_OF_DEVICE = 10.0


def speedup(share: float, most: float = MOST_ESTIMATED) -> float:
    """Old step time over new, if this share of it is saved."""
    return 1 / (1 - min(share, most))
