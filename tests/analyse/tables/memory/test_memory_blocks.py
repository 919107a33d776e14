from strobe.analyse.tables.memory import memory_blocks
from tests.analyse.drawings import MODEL
from tests.helpers import make_run

BASE = 1 << 45


def allocations(*rows: tuple[int, int, int, int | None]) -> dict[str, dict[str, object]]:
    """(address, bytes, allocated, freed)"""
    return {
        "allocations": {
            "rank": [0] * len(rows),
            "address": [BASE + row[0] for row in rows],
            "bytes": [row[1] for row in rows],
            "ts_ns": [row[2] for row in rows],
            "freed_ns": [row[3] for row in rows],
            "device": ["cpu"] * len(rows),
            "event_id": [8] + [None] * (len(rows) - 1),
        }
    }


def test_blocks_have_a_place_and_a_lifetime(tmp_path):
    run = make_run(tmp_path, MODEL, allocations((0, 10, 1320, 1420), (40, 20, 1400, None)))
    columns = "ts_ns, end_ns, is_freed, bytes, offset_bytes, step, name, scope, event_id"
    assert memory_blocks.run(run).project(columns).fetchall() == [
        (1320, 1420, True, 10, 0, 2, "aten::relu", "net", 8),
        # not seen freed: it lasts as long as anything was seen of memory
        (1400, 1420, False, 20, 10, None, None, None, None),
    ]


def test_unused_addresses_are_left_out_and_overlaps_are_kept(tmp_path):
    rows = ((0, 100, 0, 9), (50, 100, 10, 20), (120, 10, 30, 40), (10_000, 5, 0, 40))
    run = make_run(tmp_path, MODEL, allocations(*rows))
    found = memory_blocks.run(run).project("address, offset_bytes").fetchall()
    places = {address - BASE: offset for address, offset in found}
    # 0..100 and 50..150 share a stretch that reaches to 150; the last follows right behind it
    assert places == {0: 0, 50: 50, 120: 120, 10_000: 150}


def test_the_largest_times_longest_are_kept_and_say_how_much_they_are(tmp_path, monkeypatch):
    sql = memory_blocks._SQL.replace(f"<= {memory_blocks.MOST_BLOCKS}", "<= 1")
    monkeypatch.setattr(memory_blocks, "_SQL", sql)
    run = make_run(tmp_path, MODEL, allocations((0, 10, 0, 30), (50, 20, 0, 5)))
    found = memory_blocks.run(run).project("bytes, area_share").fetchall()
    assert found == [(10, 0.75)]
