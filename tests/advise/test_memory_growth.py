import numpy as np

from strobe.advise import advise, memory_growth
from strobe.advise.finding import CannotTell, Clear, Finding
from strobe.advise.training import Training
from tests.advise.drawings import same, steps
from tests.helpers import make_run

MB = 1 << 20
STEP = {"forward": 100_000}  # 0.1 s
FLAT = [*same(STEP, 100)]


def measured(values: list[float], limit: float = 4096 * MB) -> dict:
    """Evenly over the ten seconds of a hundred steps."""
    count = len(values)
    ts_ns = [round(k * 10e9 / (count - 1)) for k in range(count)]
    return {"counters": {
        "rank": [0] * (count + 1), "ts_ns": [0, *ts_ns],
        "name": ["memory_usable_bytes"] + ["rss_private_bytes"] * count, "value": [limit, *values],
    }}  # fmt: skip


def judged(tmp_path, values, parts=FLAT):
    return memory_growth.check(Training(make_run(tmp_path, steps(*parts), measured(values))))


def growing(mb_a_step: float, count: int = 41) -> list[float]:
    return [(500 + mb_a_step * 100 * k / (count - 1)) * MB for k in range(count)]


def test_steady_growth_is_a_warning_with_the_time_that_is_left(tmp_path):
    verdict = judged(tmp_path, growing(5))
    assert isinstance(verdict, Finding)
    assert verdict.share == 0 and verdict.is_warning and verdict.expected_speedup == 1
    # 1000 MB now, 3096 MB left at 50 MB a second: 62 s.
    told = "memory grows by 5.00 MiB a step, so far by 375 MiB, and is full in 61.9 s"
    assert verdict.title == told


def test_values_that_lie_closer_at_the_beginning_do_not_count_more(tmp_path):
    # Grows for seven of ten seconds, in which most values are; then stays.
    ts_s = [*np.arange(0, 7, 0.1), 7.5, 8, 8.5, 9, 9.5, 10]
    values = [(500 + 40 * min(t, 7)) * MB for t in ts_s]
    extra = measured(values)
    extra["counters"]["ts_ns"] = [0, *(round(t * 1e9) for t in ts_s)]
    run = make_run(tmp_path, steps(*FLAT), extra)
    assert isinstance(memory_growth.check(Training(run)), Clear)


def test_it_is_told_though_it_costs_no_time(tmp_path):
    run = make_run(tmp_path, steps(*FLAT), measured(growing(5)))
    assert "memory-growth" in advise(run, (memory_growth,)).findings


def test_memory_that_settles_is_clear(tmp_path):
    shapes = {
        "flat": [800 * MB] * 41,
        "fills a cache, then stays": [min(500 + 40 * k, 900) * MB for k in range(41)],
        "levels off": [(500 + 400 * (1 - np.exp(-k / 8))) * MB for k in range(41)],
        "one jump": [(500 + 300 * (k > 25)) * MB for k in range(41)],
        "up and down": [(500 + 200 * (k % 2)) * MB for k in range(41)],
        "a little": growing(0.2),
    }
    for name, values in shapes.items():
        assert isinstance(judged(tmp_path / name.replace(" ", "_"), values), Clear), name


# Measured: freed memory that the allocator gave back, and took again. In MB.
COMES_AND_GOES = (
    233, 240, 245, 256, 256, 256, 252, 261, 277, 286, 303, 311, 258, 262, 289, 316, 337, 367, 379,
    392, 371, 517,
)  # fmt: skip


def test_memory_that_falls_in_between_is_believed_to_grow_only_after_a_while(tmp_path):
    values = [mb * MB for mb in COMES_AND_GOES]
    assert isinstance(judged(tmp_path / "long", values), Finding)  # ten seconds
    extra = measured(values)
    extra["counters"]["ts_ns"] = [ts_ns * 3 // 10 for ts_ns in extra["counters"]["ts_ns"]]
    run = make_run(tmp_path / "short", steps(*same({"forward": 30_000}, 100)), extra)
    assert isinstance(memory_growth.check(Training(run)), Clear)


def test_steps_that_get_longer_with_it_are_the_cost(tmp_path):
    parts = [{"forward": 100_000 + 1_000 * k} for k in range(100)]  # 0.1 s to 0.2 s
    verdict = judged(tmp_path, growing(5), parts)
    assert isinstance(verdict, Finding) and not verdict.is_warning
    # Steps 4 to 100 take 0.103 s to 0.199 s, 0.151 s in the middle: 1 ms more each, from 0.099 s.
    assert abs(verdict.share - (1 - 0.099 / 0.151)) < 0.01


def test_what_the_system_takes_to_hand_out_memory_is_the_cost(tmp_path):
    extra = measured(growing(5))["counters"]
    moments = [0, 1_000_000_000, 9_000_000_000]
    extra = {"counters": {
        "rank": [*extra["rank"], 0, 0, 0], "ts_ns": [*extra["ts_ns"], *moments],
        "name": [*extra["name"], *["system_cpu_ns_total"] * 3],
        "value": [*extra["value"], 0, 5e9, 5e9 + 0.22 * 8e9],
    }}  # fmt: skip
    verdict = memory_growth.check(Training(make_run(tmp_path, steps(*FLAT), extra)))
    # 22 % of the time from the fourth step on, 2 % of which is usual.
    assert isinstance(verdict, Finding) and abs(verdict.share - 0.2) < 1e-6
    assert verdict.title.endswith("that slows steps down by about 20 %")


def test_too_few_values_cannot_tell(tmp_path):
    assert isinstance(judged(tmp_path, growing(5, count=6)), CannotTell)
