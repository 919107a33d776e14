from strobe.analyse import memory
from tests.helpers import make_run, text


def test_the_peak_when_it_was_and_what_is_left(tmp_path):
    extra = {
        "allocations": {
            "rank": [0, 0, 0],
            "address": [1, 2, 3],
            "bytes": [100, 50, 70],
            "ts_ns": [10, 20, 30],
            "freed_ns": [30, 90, None],
            "device": ["cpu", "cpu", "cpu"],
        }
    }
    run = make_run(tmp_path, "0/main op:a 0..1", extra)
    assert text(memory.run(run)) == (
        "rank device allocations allocated_bytes peak_bytes peak_ts_ns left_bytes\n"
        "0 cpu 3 220 150 20 70"
    )
