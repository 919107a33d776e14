import json

from strobe.advise.finding import Clear, Finding
from strobe.advise.rules import gc_pause
from strobe.advise.training import Training
from tests.advise.drawings import same, steps
from tests.helpers import make_run

TRAINING = steps(*same({"forward": 100}, 20))


def judged(tmp_path, pauses: str):
    return gc_pause.check(Training(make_run(tmp_path, TRAINING + pauses)))


def test_pauses_inside_judged_steps_are_the_cost(tmp_path):
    # 17 steps of 100 us are judged, the first three are warm-up; 340 us of pauses lie in them.
    verdict = judged(
        tmp_path,
        """0/main gc:generation~2 50000..90000
           0/main gc:generation~2 510000..750000
           0/main gc:generation~2 1000000..1100000""",
    )
    assert isinstance(verdict, Finding)
    assert abs(verdict.share - 340 / 1700) < 1e-9
    assert abs(verdict.expected_speedup - 1.25) < 1e-9
    assert verdict.title == "Python's garbage collector takes 20% of step time."
    assert verdict.why == "Its longest pause takes 240 µs."
    assert [row["dur_ns"] for row in verdict.evidence[0].rows] == [240_000, 100_000]


def test_short_pauses_are_clear(tmp_path):
    verdict = judged(tmp_path, "0/main gc:generation~2 510000..560000")
    assert verdict == Clear("1 garbage collection pause takes only 2.9% of step time.")


def test_no_pause_is_clear(tmp_path):
    assert isinstance(judged(tmp_path, ""), Clear)


def looks(*rows):
    """Looks of the training thread: at a time, at a line, let wait so long."""
    return {"samples": {
        "rank": [0] * len(rows), "ts_ns": [at for at, _, _ in rows],
        "thread": ["training"] * len(rows), "place": [f"train.py:{line}" for _, line, _ in rows],
        "stack": [json.dumps([["/job/train.py", line, "main"]]) for _, line, _ in rows],
        "function": ["main"] * len(rows), "waited_ns": [waited for _, _, waited in rows],
        "cpu_ns": [0] * len(rows),
    }}  # fmt: skip


def test_full_searches_in_most_steps_are_asked_for_by_a_line(tmp_path):
    ms = 1_000_000
    drawing = steps(*same({"forward": 100_000}, 20))
    pauses = "".join(
        f"0/main gc:collect~generation~2 {100 * n * ms}..{(100 * n + 30) * ms}\n" for n in range(20)
    )
    seen = [((100 * n + 30) * ms, 42, 30 * ms) for n in range(1, 20)]
    seen += [((100 * n + 70) * ms, 38, 0) for n in range(20)]
    run = make_run(tmp_path, drawing + pauses, looks(*sorted(seen)))
    verdict = gc_pause.check(Training(run))
    assert isinstance(verdict, Finding) and verdict.where == "train.py:42"
    assert verdict.fixes[0].startswith("Remove the `gc.collect()` at train.py:42")
    assert "train.py:42" in verdict.why
    # Searches of the youngest objects come by themselves.
    young = make_run(tmp_path / "young", drawing + pauses.replace("n~2", "n~0"), looks(*seen))
    verdict = gc_pause.check(Training(young))
    assert verdict.where is None and verdict.fixes[0].endswith("before the training loop")
