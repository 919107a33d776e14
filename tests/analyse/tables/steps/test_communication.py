import pytest

from strobe.analyse.tables.steps import communication
from tests.analyse.drawings import DEVICE, DEVICE_ARGS
from tests.helpers import make_run, text


def test_cost_exposed_time_and_bandwidths(tmp_path):
    run = make_run(tmp_path, DEVICE, DEVICE_ARGS)
    found = communication.run(run).project(
        'operation, "group", group_size, dtype, size_bytes, calls, bytes, total_ns, exposed_ns,'
        "algorithm_bytes_per_s, bus_bytes_per_s, wait_ns"
    )
    # 7000 B in 350 ns are 20 GB/s; of four ranks each link carries 2 * 3/4 of it.
    assert text(found) == (
        "operation group group_size dtype size_bytes calls bytes total_ns exposed_ns"
        " algorithm_bytes_per_s bus_bytes_per_s wait_ns\n"
        "all_reduce dp 4 Float 7000 1 7000 350 250 20000000000.0 30000000000.0 -"
    )


@pytest.mark.parametrize(
    "operation, put_in, got, size, bus",
    [
        ("all_reduce", 1000, 1000, 1000, 1.5e9),
        ("all_gather", 1000, 4000, 4000, 3e9),
        ("all_gather", 1000, None, 4000, 3e9),
        ("reduce_scatter", 4000, 1000, 4000, 3e9),
        ("all_to_all", 1000, 1000, 1000, 0.75e9),
        ("broadcast", 1000, 1000, 1000, 1e9),
        ("barrier", None, None, None, None),
    ],
)
def test_size_and_bus_bandwidth_as_in_nccl_tests(tmp_path, operation, put_in, got, size, bus):
    args = {
        "event_id": [0],
        "operation": [operation],
        "group_size": [4],
        "bytes": [put_in],
        "received_bytes": [got],
    }
    run = make_run(tmp_path, "0/s1@cuda:0 collective:x 0..1000", {"collective_args": args})
    found = communication.run(run).project("size_bytes, bus_bytes_per_s, fastest_bus_bytes_per_s")
    assert found.fetchall() == [(size, bus, bus)]


TWO_RANKS = """
    0/s1@cuda:0  collective:x  0..100
    0/s1@cuda:0  collective:x  200..300
    1/s1@cuda:0  collective:x  60..100
    1/s1@cuda:0  collective:x  180..300
"""


def same(operation, ranks):
    return {"collective_args": {"event_id": list(range(4)), "operation": [operation] * 4,
                                "group": ["dp"] * 4, "group_ranks": ranks}}  # fmt: skip


def test_ranks_that_wait_and_the_skew_between_them(tmp_path):
    run = make_run(tmp_path, TWO_RANKS, same("all_reduce", ["[0, 1]"] * 4))
    # Rank 0 waits 60 in the first call, rank 1 waits 20 in the second.
    found = communication.run(run, order_by="+rank").project("rank, wait_ns, skew_ns")
    assert found.fetchall() == [(0, 60, 40), (1, 20, 40)]


@pytest.mark.parametrize(
    "operation, ranks",
    [("send_recv", ["[0, 1]"] * 4), ("all_reduce", ["[0, 2]", "[0, 2]", "[1, 3]", "[1, 3]"])],
)
def test_different_calls_are_not_compared(tmp_path, operation, ranks):
    run = make_run(tmp_path, TWO_RANKS, same(operation, ranks))
    found = communication.run(run).project("wait_ns, skew_ns").fetchall()
    assert found == [(None, None)] * 2


def test_ranks_with_unlike_numbers_of_calls_are_not_compared(tmp_path):
    drawing = TWO_RANKS + "    1/s1@cuda:0  collective:x  400..500\n"
    run = make_run(tmp_path, drawing)
    assert {row for row in communication.run(run).project("wait_ns").fetchall()} == {(None,)}


def test_calls_of_one_size_are_compared_in_whatever_order_ranks_make_them(tmp_path):
    args = {
        "event_id": list(range(4)),
        "operation": ["all_reduce"] * 4,
        "bytes": [100, 900, 900, 100],
    }
    run = make_run(tmp_path, TWO_RANKS, {"collective_args": args})
    found = communication.run(run, order_by="+rank,+size_bytes").project(
        "rank, size_bytes, wait_ns"
    )
    assert found.fetchall() == [(0, 100, 0), (0, 900, 60), (1, 100, 20), (1, 900, 0)]


def test_collectives_of_the_host_count_in_steps_recorded_in_full(tmp_path):
    drawing = """
        0/steps  annotation:strobe~window~1  0..150
        0/steps  step:step~1      0..100    step=1
        0/steps  step:step~2      100..200  step=2
        0/gloo   collective:a     10..20    step=1
        0/gloo   collective:a     110..130  step=2
    """
    run = make_run(tmp_path, drawing)
    assert communication.run(run).project("calls").fetchall() == [(1,)]
    assert communication.run(run, all_steps=True).project("calls").fetchall() == [(2,)]
