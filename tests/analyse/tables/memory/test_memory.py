from strobe.analyse.tables.memory import memory, memory_curve
from tests.helpers import make_run, text


def test_a_device_without_blocks_has_the_peak_that_its_allocator_counted(tmp_path):
    counters = {
        "rank": [0] * 4, "ts_ns": [10, 20, 30, 10], "value": [100.0, 700.0, 700.0, 5.0],
        "name": ["cuda:0 memory_bytes"] * 3 + ["cpu memory_bytes"],
    }  # fmt: skip
    blocks = {"rank": [0], "address": [1], "bytes": [4], "ts_ns": [10], "freed_ns": [20],
              "device": ["cpu"]}  # fmt: skip
    extra = {"counters": counters, "allocations": blocks}
    run = make_run(tmp_path, "0/main op:a 0..1", extra)
    assert memory.run(run).fetchall() == [
        (0, "cpu", 1, 4, 4, 10, 0), (0, "cuda:0", None, None, 700, 20, None),
    ]  # fmt: skip
    curve = memory_curve.run(run).project("device, ts_ns, live_bytes").fetchall()
    assert curve == [("cpu", 10, 4), ("cpu", 20, 0), ("cuda:0", 10, 100), ("cuda:0", 20, 700),
                     ("cuda:0", 30, 700)]  # fmt: skip


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
