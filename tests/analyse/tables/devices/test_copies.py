from strobe.analyse.tables.devices import copies
from tests.analyse.drawings import DEVICE, DEVICE_ARGS
from tests.helpers import make_run, text


def test_copies_by_direction_with_bandwidth_and_what_computation_does_not_hide(tmp_path):
    run = make_run(
        tmp_path,
        """
        0/s7@cuda:0  memcpy:a  0..100
        0/s7@cuda:0  memcpy:a  200..400
        0/s7@cuda:0  memcpy:b  500..600
        0/s7@cuda:0  memset:c  700..710
        0/s9@cuda:0  kernel:k  50..250
        """,
        {
            "kernel_args": {
                "event_id": [0, 1, 2],
                "bytes": [1000, 1000, 500],
                "direction": ["host to device", "host to device", "device to host"],
                "host_memory": ["pinned", "pinned", "pageable"],
            }
        },
    )
    found = copies.run(run).project(
        "kind, direction, host_memory, calls, bytes, mean_bytes, total_ns, exposed_ns, bytes_per_s,"
        "min_bytes_per_s, mean_bytes_per_s, max_bytes_per_s"
    )
    assert text(found).splitlines()[1:] == [
        "memcpy host to device pinned 2 2000 1000 300 200"
        f" {1e9 * 2000 / 300} 5000000000.0 7500000000.0 10000000000.0",
        "memcpy device to host pageable 1 500 500 100 100"
        " 5000000000.0 5000000000.0 5000000000.0 5000000000.0",
        "memset - - 1 - - 10 10 - - - -",
    ]


def test_of_the_drawing(tmp_path):
    found = copies.run(make_run(tmp_path, DEVICE, DEVICE_ARGS)).project(
        "direction, host_memory, bytes, exposed_ns"
    )
    assert found.fetchall() == [("host to device", "pageable", 400, 100)]
