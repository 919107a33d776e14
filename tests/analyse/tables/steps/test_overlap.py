from strobe.analyse.tables.steps import overlap
from tests.analyse.drawings import DEVICE
from tests.helpers import make_run, text


def test_communication_behind_computation(tmp_path):
    # The collective 550..900 and the kernel 800..1100 share 100.
    assert text(overlap.run(make_run(tmp_path, DEVICE))) == (
        "rank device compute_ns communication_ns overlapped_ns exposed_ns overlapped_share\n"
        f"0 cuda:0 520 350 100 250 {100 / 350}"
    )


def test_what_overlaps_itself_counts_once(tmp_path):
    run = make_run(
        tmp_path,
        """
        0/s1@npu:0  collective:a  0..100
        0/s2@npu:0  collective:b  50..150
        0/s3@npu:0  kernel:k      40..60
        0/s4@npu:0  kernel:k      45..80
        """,
    )
    found = overlap.run(run).project("communication_ns, overlapped_ns, compute_ns")
    assert found.fetchall() == [(150, 40, 40)]


def test_collectives_of_the_host_hide_behind_operators(tmp_path):
    run = make_run(
        tmp_path,
        """
        0/main    op:aten::mm        0..60
        0/main    op:inner           10..20  parent=0
        0/gloo    collective:gloo    40..100
        1/main    op:aten::mm        0..60
        1/s1@cuda:0  kernel:k        0..10
        1/main    collective:nccl    40..100
        """,
    )
    found = overlap.run(run).project("rank, device, communication_ns, overlapped_ns")
    assert found.fetchall() == [(0, "cpu", 60, 20)]


def test_without_collectives_there_is_nothing_to_say(tmp_path):
    assert overlap.run(make_run(tmp_path, "0/s1@cuda:0 kernel:k 0..10")).fetchall() == []
