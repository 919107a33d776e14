"""What a file holds of a timeline; how pages draw it is seen in tests/browser/test_report.py."""

import numpy as np

from strobe.timeline.held import NONE, held
from strobe.timeline.index import make_index
from strobe.timeline.packet import unpacked
from tests.analyse.drawings import MODEL, MODEL_ARGS
from tests.helpers import make_run


def test_a_short_timeline_is_held_whole(tmp_path):
    index = make_index(make_run(tmp_path, MODEL, MODEL_ARGS))
    about, columns = unpacked(held(index, 1_000_000))
    assert about["events_in_run"] == len(columns["id"]) == len(index.arrays["id"])
    assert (about["begin_ns"], about["end_ns"]) == (
        index.origin_ns, index.origin_ns + index.about["span_ns"],
    )  # fmt: skip
    for name in ("dur_ns", "start_ns", "id", "row_at"):
        assert np.array_equal(columns[name], index.arrays[name]), name
    parents = np.where(columns["parent"] == NONE, -1, columns["parent"].astype(np.int64))
    assert np.array_equal(parents, index.arrays["parent"])


def test_of_a_long_one_the_densest_stretch_is(tmp_path):
    index = make_index(make_run(tmp_path, MODEL, MODEL_ARGS))
    most = 5
    about, columns = unpacked(held(index, most))
    start = np.sort(index.arrays["start_ns"])
    lengths = [start[at + most] - start[at] for at in range(len(start) - most)]
    assert about["end_ns"] - about["begin_ns"] == min(lengths)
    begin = about["begin_ns"] - index.origin_ns
    ends = columns["start_ns"] + columns["dur_ns"]
    assert (columns["start_ns"] < min(lengths)).all() and (ends >= 0).all()
    # Every event that touches the stretch, with the name it has in the run.
    touches = (index.arrays["start_ns"] < begin + min(lengths)) & (
        index.arrays["start_ns"] + index.arrays["dur_ns"] >= begin
    )
    assert np.array_equal(columns["id"], index.arrays["id"][touches])
    told = [about["names"][code][0] for code in columns["name"]]
    assert told == [index.name(int(code)) for code in index.arrays["name"][touches]]
    assert columns["row_at"][-1] == len(told)


def test_values_of_counters_around_all_events_are_held_with_a_whole_timeline(tmp_path):
    counted = {
        "rank": [0] * 5, "ts_ns": [0, 5, 150, 900, 950], "name": ["rss_bytes"] * 5,
        "value": [1.0, 2.0, 3.0, 4.0, 5.0],
    }  # fmt: skip
    index = make_index(make_run(tmp_path, "0/t op:a 100..200", {"counters": counted}))
    about, columns = unpacked(held(index, 1000))
    assert [curve["values"] for curve in about["curves"]] == [5]
    assert about["curves"] == index.about["curves"]
    assert columns["curve_ns"].tolist() == [0, 5, 150, 900, 950]
