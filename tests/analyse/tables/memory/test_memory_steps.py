from strobe.analyse.tables.memory import memory_steps
from tests.analyse.tables.memory.test_memory_curve import blocks
from tests.helpers import make_run, text

HEAD = "rank device step ts_ns end_bytes peak_bytes growth_bytes\n"
STEPS = "\n".join(f"0/steps step:step~{i} {100 * i}..{100 * i + 100} step={i}" for i in (1, 2, 3))


def test_growth_from_one_step_to_the_next(tmp_path):
    # each step leaves ten more behind; the second has a block that comes and goes
    extra = blocks((10, 110, None), (10, 210, None), (500, 220, 230), (10, 310, None))
    run = make_run(tmp_path, STEPS, extra)
    assert text(memory_steps.run(run)) == HEAD + (
        "0 cpu 1 200 10 10 -\n0 cpu 2 300 20 520 10\n0 cpu 3 400 30 30 10"
    )


def test_a_step_without_a_change_has_what_it_began_with(tmp_path):
    run = make_run(tmp_path, STEPS, blocks((10, 110, 350)))
    assert text(memory_steps.run(run)) == HEAD + (
        "0 cpu 1 200 10 10 -\n0 cpu 2 300 10 10 0\n0 cpu 3 400 0 10 -10"
    )


def test_outside_of_windows_blocks_come_and_go_unseen(tmp_path):
    window = "\n0/steps annotation:strobe~window~1 200..300"
    counters = {"rank": [0], "ts_ns": [150], "name": ["rss_private_bytes"], "value": [7.0]}
    extra = {**blocks((10, 210, 390)), "counters": counters}
    run = make_run(tmp_path, STEPS + window, extra)
    assert text(memory_steps.run(run)) == HEAD + "0 cpu 2 300 10 10 -\n0 process 1 200 7 7 -"
