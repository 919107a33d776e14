"""What happened at the same moment in the same place is found."""

import numpy as np

from strobe.ingest.building.event_matching import paired


def lot(*rows):
    columns = np.array(rows, dtype=np.int64).reshape(-1, 2).T
    return columns[0], columns[1]


def test_moment_and_place_must_both_be_the_same_and_the_last_one_counts():
    known = lot((5, 1), (5, 2), (7, 1), (5, 1))
    assert paired(lot((5, 1), (5, 2), (7, 2), (7, 1), (6, 1)), known).tolist() == [3, 1, -1, 2, -1]


def test_nothing_is_found_in_nothing():
    assert paired(lot((5, 1)), lot()).tolist() == [-1]
    assert paired(lot(), lot((5, 1))).tolist() == []
