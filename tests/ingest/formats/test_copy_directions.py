import pytest

from strobe.ingest.formats.copy_directions import direction_of, host_memory_of
from strobe.model.schema import DIRECTIONS
from tests.ingest.imports import imported, shared


@pytest.mark.parametrize(
    ("name", "direction", "memory"),
    [
        ("Memcpy HtoD (Pageable -> Device)", "host to device", "pageable"),
        ("Memcpy HtoD (Pinned -> Device)", "host to device", "pinned"),
        ("Memcpy DtoH (Device -> Pinned)", "device to host", "pinned"),
        ("Memcpy DtoH (Device -> Host)", "device to host", None),
        ("Memcpy DtoD (Device -> Device)", "device to device", None),
        ("Memcpy PtoP (Device -> Device)", "peer to peer", None),
        ("Memcpy HtoH (Pageable -> Pinned)", "host to host", "pageable"),
        ("Memcpy M2D", "host to device", None),
        ("CopyHostToDevice", "host to device", None),
        ('"DEVICE_TO_HOST"', "device to host", None),
        ("dma_request", None, None),
        ("ThetoDor", None, None),
    ],
)
def test_ways_of_copies(name, direction, memory):
    assert direction_of(name) == direction and host_memory_of(name) == memory
    assert direction is None or direction in DIRECTIONS


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (
            "hta/two_ranks/rank-0.json.gz",
            {
                ("host to device", "pageable"): (16, 16416),
                ("host to device", "pinned"): (8, 4849696),
                ("device to host", "pageable"): (8, 6115),
                ("device to device", None): (8, 209194904),
            },
        ),
        (
            "hta/mtia_rank_0.json.gz",
            {
                ("host to device", None): (15001, 2282766336),
                ("device to host", None): (7360, 4272997120),
            },
        ),
    ],
)
def test_copies_of_real_traces(tmp_path, name, expected):
    run = imported(shared(name), tmp_path)
    rows = run.sql(
        "SELECT direction, host_memory, count(*), sum(bytes) FROM kernel_args"
        " JOIN events ON id = event_id WHERE kind = 'memcpy' GROUP BY ALL"
    ).fetchall()
    assert {(way, memory): (count, total) for way, memory, count, total in rows} == expected


def test_only_copies_have_a_way(tmp_path):
    run = imported(shared("hta/two_ranks/rank-0.json.gz"), tmp_path)
    others = run.sql(
        "SELECT count(direction), count(host_memory) FROM kernel_args"
        " JOIN events ON id = event_id WHERE kind <> 'memcpy'"
    )
    assert others.fetchall() == [(0, 0)]
