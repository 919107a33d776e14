import numpy as np

from strobe.advise import advise
from strobe.advise.finding import CannotTell, Clear, Finding
from strobe.advise.rules import memory_growth
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
    assert verdict.title == "Memory grows by 5.00 MiB per step and runs out in 61.9 s at this rate."
    assert verdict.why == "The private memory of the process grew by 400 MiB over 80 steps."
    assert verdict.fixes[0].startswith("Find what grows with every step")


def test_values_that_lie_closer_at_the_beginning_do_not_count_more(tmp_path):
    # Grows for seven of ten seconds, in which most values are; then stays.
    ts_s = [*np.arange(0, 7, 0.1), 7.5, 8, 8.5, 9, 9.5, 10]
    values = [(500 + 40 * min(t, 7)) * MB for t in ts_s]
    extra = measured(values)
    extra["counters"]["ts_ns"] = [0, *(round(t * 1e9) for t in ts_s)]
    run = make_run(tmp_path, steps(*FLAT), extra)
    assert isinstance(memory_growth.check(Training(run)), Clear)


def test_it_is_reported_though_it_costs_no_time(tmp_path):
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


def test_memory_that_comes_and_goes_with_the_allocator_is_clear(tmp_path):
    assert isinstance(judged(tmp_path, [mb * MB for mb in COMES_AND_GOES]), Clear)


# Measured: a healthy training of 60 steps in two layers, on a busy machine. In MB.
SETTLES_SLOWLY = (303, 389, 450, 486, 437, 440, 452, 461, 470, 488, 497, 508, 520, 531, 544)


def test_a_short_run_cannot_tell_growth_from_an_allocator_that_settles(tmp_path):
    few = [*same({"forward": 200_000}, 50)]
    verdict = judged(tmp_path / "leak", growing(5), few)
    assert isinstance(verdict, CannotTell) and "may not have settled yet" in verdict.reason
    settling = [mb * MB for mb in SETTLES_SLOWLY]
    assert not isinstance(judged(tmp_path / "settles", settling, few), Finding)


def test_growth_that_slows_down_settles(tmp_path):
    values = [(500 + 60 * k**0.5) * MB for k in range(41)]
    assert isinstance(judged(tmp_path, values), Clear)


def test_longer_steps_alone_are_no_cost_of_memory(tmp_path):
    """Episodes that get longer keep more, too, and no page is to blame."""
    parts = [{"forward": 50_000 + 1_000 * k} for k in range(100)]
    verdict = judged(tmp_path, growing(5), parts)
    assert isinstance(verdict, Finding) and verdict.is_warning
    assert verdict.share == 0 and "step time" not in verdict.title


def with_system(values, system_ns, faults, limit=4096 * MB):
    """`measured`, with the system's time and page faults at eleven moments."""
    table = measured(values, limit)["counters"]
    moments = [k * 1_000_000_000 for k in range(11)]
    return {"counters": {
        "rank": [*table["rank"], *[0] * 22], "ts_ns": [*table["ts_ns"], *moments, *moments],
        "name": [*table["name"], *["system_cpu_ns_total"] * 11, *["page_faults_total"] * 11],
        "value": [*table["value"], *system_ns, *faults],
    }}  # fmt: skip


def test_steps_that_get_longer_by_the_systems_time_are_the_cost(tmp_path):
    parts = [{"forward": 50_000 + 1_000 * k} for k in range(100)]  # 50 ms to 150 ms
    system = [0.2e9 * k**2 / 2 for k in range(11)]
    extra = with_system(growing(5), system, [0] * 11)
    verdict = memory_growth.check(Training(make_run(tmp_path, steps(*parts), extra)))
    assert isinstance(verdict, Finding) and not verdict.is_warning
    # Steps 4 to 100 take 53 to 149 ms, 101 ms in the middle: 1 ms more each, from 49 ms.
    assert abs(verdict.share - (1 - 49 / 101)) < 0.01
    assert not verdict.is_certain
    assert verdict.title.endswith("per step, and allocating it takes about 51% of step time.")
    assert verdict.why.endswith(" At this rate, it runs out in 62.2 s.")


def test_what_the_system_takes_for_pages_is_the_cost_as_far_as_pages_explain_it(tmp_path):
    # 22% of the time, 2% of which is usual; a page of 4 KiB takes 1.5 us.
    system = [0.22e9 * k for k in range(11)]
    kept = 60 * 256 * 10  # pages a second: 60 MiB a step, ten steps a second
    for name, mb_a_step, faults_hz, share in (
        ("all that the system took", 60, 300_000, 0.2),
        ("as many as were kept", 30, 300_000, 0.5 * kept * 1.5e-6),
        ("as many as there were", 60, 60_000, 0.09),
        ("few", 60, 9, 0),
    ):
        extra = with_system(
            growing(mb_a_step), system, [faults_hz * k for k in range(11)], limit=16384 * MB
        )
        run = make_run(tmp_path / name.replace(" ", "_"), steps(*FLAT), extra)
        verdict = memory_growth.check(Training(run))
        assert isinstance(verdict, Finding) and abs(verdict.share - share) < 1e-3, name
        assert verdict.is_warning == (share == 0)


def test_what_windows_of_full_recording_take_is_the_recorders(tmp_path):
    """Ten windows that take 50 MB each, and no growth between them."""
    values = [(500 + 50 * (k // 4)) * MB for k in range(41)]
    windows = "".join(
        f"0/steps annotation:strobe~window~{n} {n * 1_000_000_000 - 200_000_000}.."
        f"{n * 1_000_000_000 - 80_000_000}\n"
        for n in range(1, 10)
    )
    assert isinstance(judged(tmp_path / "without", values), Finding)
    run = make_run(tmp_path / "with", steps(*FLAT) + windows, measured(values))
    assert isinstance(memory_growth.check(Training(run)), Clear)


def test_where_all_steps_are_recorded_in_full_it_cannot_tell(tmp_path):
    run = make_run(tmp_path, steps(*FLAT, window=(60, 100)), measured(growing(5)))
    verdict = memory_growth.check(Training(run))
    assert isinstance(verdict, CannotTell) and "full recording uses memory" in verdict.reason


def test_too_few_values_cannot_tell(tmp_path):
    assert isinstance(judged(tmp_path, growing(5, count=6)), CannotTell)
