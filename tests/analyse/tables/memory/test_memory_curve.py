from strobe.analyse.stretches import MOST_STRETCHES
from strobe.analyse.tables.memory import memory_curve
from tests.helpers import make_run, text

HEAD = "rank device ts_ns live_bytes lowest_bytes\n"


def blocks(*rows: tuple[int, int, int | None]) -> dict[str, dict[str, object]]:
    """(bytes, allocated, freed)"""
    return {
        "allocations": {
            "rank": [0] * len(rows),
            "address": list(range(len(rows))),
            "bytes": [row[0] for row in rows],
            "ts_ns": [row[1] for row in rows],
            "freed_ns": [row[2] for row in rows],
            "device": ["cpu"] * len(rows),
        }
    }


def test_blocks_add_up_and_a_free_makes_room_first(tmp_path):
    extra = blocks((100, 10, 30), (50, 20, 90), (70, 30, None))
    run = make_run(tmp_path, "0/main op:a 0..1", extra)
    assert text(memory_curve.run(run)) == HEAD + (
        "0 cpu 10 100 100\n0 cpu 20 150 150\n0 cpu 30 120 120\n0 cpu 90 70 70"
    )


def test_the_memory_of_the_process_stands_beside_it(tmp_path):
    counters = {
        "rank": [0, 0],
        "ts_ns": [5, 6],
        "name": ["rss_private_bytes", "rss_bytes"],
        "value": [1000.0, 2000.0],
    }
    run = make_run(tmp_path, "0/main op:a 0..1", {"counters": counters})
    assert text(memory_curve.run(run)) == HEAD + "0 process 5 1000 1000"


def test_where_only_all_memory_of_the_process_is_known_it_is_that(tmp_path):
    counters = {"rank": [0], "ts_ns": [6], "name": ["rss_bytes"], "value": [2000.0]}
    run = make_run(tmp_path, "0/main op:a 0..1", {"counters": counters})
    assert text(memory_curve.run(run)) == HEAD + "0 process 6 2000 2000"


def test_a_long_curve_keeps_its_peak_and_its_lowest(tmp_path):
    rows = [(10, 1000 * i, 1000 * i + 500) for i in range(2 * MOST_STRETCHES)]
    run = make_run(tmp_path, "0/main op:a 0..1", blocks(*rows, (999, 77_100, 77_200)))
    found = memory_curve.run(run).aggregate("count(*), max(live_bytes), min(lowest_bytes)")
    ((count, highest, lowest),) = found.fetchall()
    assert count <= MOST_STRETCHES
    assert (highest, lowest) == (1009, 0)
