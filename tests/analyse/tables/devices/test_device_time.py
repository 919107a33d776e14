import random
from collections import Counter

from strobe.analyse.tables.devices import device_time
from tests.analyse.drawings import DEVICE
from tests.helpers import make_run, text

PARTS = "step, ts_ns, dur_ns, compute_ns, communication_ns, memory_ns, idle_ns"


def short(run):
    return text(device_time.run(run).project(PARTS))


def test_parts_of_the_whole_and_of_each_step_add_up(tmp_path):
    # compute 100..300, 320..340, 800..1100; the collective alone 550..800 (above the copy, which
    # is alone 500..550); a wait of the host and an annotation are no work.
    run = make_run(tmp_path, DEVICE)
    assert short(run) == (
        "step ts_ns dur_ns compute_ns communication_ns memory_ns idle_ns\n"
        "- 100 1000 520 250 50 180\n"
        "1 0 1000 420 250 50 280\n"
        "2 1000 1000 100 0 0 900"
    )
    for row in device_time.run(run).project("dur_ns, " + PARTS.split("dur_ns, ")[1]).fetchall():
        assert sum(row[1:]) == row[0]


def test_shares_are_of_the_length(tmp_path):
    shares = "compute_share, communication_share, memory_share, idle_share"
    row = device_time.run(make_run(tmp_path, DEVICE)).project(shares).fetchall()[0]
    assert row == (0.52, 0.25, 0.05, 0.18)


def test_time_between_windows_is_not_idle_and_steps_cut_by_one_are_left_out(tmp_path):
    run = make_run(
        tmp_path,
        """
        0/steps      annotation:strobe~window~1  0..105
        0/steps      annotation:strobe~window~2  1000..1205
        0/steps      step:step~1   0..100      step=1
        0/steps      step:step~2   100..1050   step=2
        0/steps      step:step~3   1050..1200  step=3
        0/s7@cuda:0  kernel:a      10..60      step=1
        0/s7@cuda:0  kernel:a      80..103     step=1
        0/s7@cuda:0  kernel:a      1010..1040  step=2
        0/s7@cuda:0  kernel:a      1060..1110  step=3
        """,
    )
    assert short(run) == (
        "step ts_ns dur_ns compute_ns communication_ns memory_ns idle_ns\n"
        "- 10 193 153 0 0 40\n"
        "1 0 100 70 0 0 30\n"
        "3 1050 150 50 0 0 100"
    )


def test_devices_and_ranks_are_apart(tmp_path):
    run = make_run(
        tmp_path,
        """
        0/s7@cuda:0  kernel:a  0..10
        0/s7@cuda:1  kernel:a  5..25
        1/s7@cuda:0  kernel:a  0..30
        """,
    )
    found = device_time.run(run).project("rank, device, dur_ns, compute_ns")
    assert text(found) == (
        "rank device dur_ns compute_ns\n0 cuda:0 10 10\n0 cuda:1 20 20\n1 cuda:0 30 30"
    )


def test_without_a_device_there_is_nothing_to_say(tmp_path):
    assert device_time.run(make_run(tmp_path, "0/main op:a 0..10")).fetchall() == []


def test_agrees_with_counting_every_nanosecond(tmp_path):
    rng = random.Random(3)
    kinds = {"kernel": "compute", "collective": "communication", "memcpy": "memory"}
    for attempt in range(10):
        spans = [
            (rng.choice(list(kinds)), rng.randrange(90), rng.randrange(1, 20)) for _ in range(9)
        ]
        lines = [
            f"0/s{stream}@cuda:0  {kind}:k  {start}..{start + length}"
            for stream, (kind, start, length) in enumerate(spans)
        ]
        lines += [f"0/steps  step:s  {at}..{at + 25}  step={at // 25 + 1}" for at in (0, 25, 50)]
        expected = Counter()
        for moment in range(120):
            running = {kinds[k] for k, start, length in spans if start <= moment < start + length}
            part = next((p for p in kinds.values() if p in running), "idle")
            if min(s for _, s, _ in spans) <= moment < max(s + n for _, s, n in spans):
                expected[None, part] += 1
            if moment < 75:
                expected[moment // 25 + 1, part] += 1
        run = make_run(tmp_path / str(attempt), "\n".join(lines))
        found = device_time.run(run).project(PARTS).fetchall()
        for step, _, _, *parts in found:
            assert parts == [expected[step, p] for p in (*kinds.values(), "idle")]
        assert len({row[0] for row in found}) == len(found) >= 2
