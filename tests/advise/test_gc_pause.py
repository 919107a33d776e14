from strobe.advise import gc_pause
from strobe.advise.finding import Clear, Finding
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
    assert verdict.title.endswith("20% of step time, up to 240 µs at once")
    assert [row["dur_ns"] for row in verdict.evidence[0].rows] == [240_000, 100_000]


def test_short_pauses_are_clear(tmp_path):
    verdict = judged(tmp_path, "0/main gc:generation~2 510000..560000")
    assert verdict == Clear("1 pauses, 2.9% of step time")


def test_no_pause_is_clear(tmp_path):
    assert isinstance(judged(tmp_path, ""), Clear)
