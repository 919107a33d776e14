from strobe.analyse.tables.memory import memory_holders
from tests.analyse.drawings import MODEL
from tests.helpers import make_run, text


def test_what_was_live_at_the_peak_by_module_and_operator(tmp_path):
    extra = {
        "allocations": {
            "rank": [0] * 5,
            "address": [1, 2, 3, 4, 5],
            "bytes": [100, 30, 60, 10, 150],
            "ts_ns": [1130, 1140, 1320, 1510, 100],
            # the third makes the peak; the fourth comes after it, the fifth was freed before
            "freed_ns": [None, 2000, 1400, None, 1000],
            "device": ["cpu"] * 5,
            "event_id": [7, 7, 8, 10, 3],
        }
    }
    run = make_run(tmp_path, MODEL, extra)
    columns = "scope, name, bytes, blocks, round(share, 3), round(cumulative_share, 3)"
    found = memory_holders.run(run).project(f"{columns}, oldest_ts_ns, largest_bytes, event_id")
    assert found.fetchall() == [
        ("net.fc", "aten::addmm", 130, 2, 0.684, 0.684, 1130, 100, 7),
        ("net", "aten::relu", 60, 1, 0.316, 1.0, 1320, 60, 8),
    ]


def test_without_allocations_nobody_is_known(tmp_path):
    assert text(memory_holders.run(make_run(tmp_path, MODEL))).count("\n") == 0
