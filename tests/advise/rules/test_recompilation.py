import itertools

import pytest

from strobe.advise.finding import CannotTell, Clear, Finding
from strobe.advise.rules import recompilation
from strobe.advise.training import Training
from strobe.advise.verdict import sentence
from strobe.model.journal import MADE_ANEW
from tests.advise.drawings import same, steps
from tests.helpers import make_run

TRAINING = steps(*same({"forward": 100}, 23))  # three of them the first


def judged(folder, compilations, recorded_by="strobe run"):
    run = make_run(folder, TRAINING + compilations)
    run.manifest.recorded_by = recorded_by
    return recompilation.check(Training(run))


def test_compilations_after_the_first_steps_are_the_cost(tmp_path):
    verdict = judged(
        tmp_path,
        """0/main annotation:compilation~0/0~at~/job/train.py:31 1000..90000
           0/main annotation:compilation~0/1~at~/job/train.py:31 500000..700000
           0/main annotation:compilation~0/2~at~/job/other.py:7 1000000..1100000""",
    )
    assert isinstance(verdict, Finding) and abs(verdict.share - 300 / 2300) < 1e-9
    assert verdict.where == "train.py:31" and "dynamic=True" in verdict.fixes[0]
    assert verdict.title == (
        "torch.compile compiles 2 times more after the first steps, 300 µs in all, 13% of step time"
    )


@pytest.mark.parametrize(
    ("longer_us", "counted_us"),
    [(220, 220), (190, 200), (900, 250)],  # beside 200 of compiling
)
def test_what_follows_a_compilation_counts_up_to_a_quarter_of_it(tmp_path, longer_us, counted_us):
    lengths = [100] * 9 + [100 + longer_us] + [100] * 13
    text = steps(*({"forward": length} for length in lengths))
    text += "0/main annotation:compilation~0/1~at~/job/train.py:31 910000..1110000"
    verdict = recompilation.check(Training(make_run(tmp_path, text)))
    assert isinstance(verdict, Finding)
    assert abs(verdict.share - counted_us / (2300 + longer_us)) < 1e-9


def test_the_first_compilation_is_no_fault(tmp_path):
    verdict = judged(tmp_path, "0/main annotation:compilation~0/0 1000..290000")
    assert verdict == Clear("compiled 1 times, 0 of them after the first steps")


def test_none_at_all_is_clear_and_unknown_where_it_is_not_recorded(tmp_path):
    assert isinstance(judged(tmp_path / "a", ""), Clear)
    assert isinstance(judged(tmp_path / "b", "", "strobe import"), CannotTell)


def test_a_function_that_is_named_is_told_with_its_cause(tmp_path):
    cause = "(x~was~float32[8,~4],~now~float32[7,~4])"
    verdict = judged(
        tmp_path,
        f"""0/main annotation:compilation~1~of~train_step~at~/job/train.py:31 1000..90000
           0/main annotation:compilation~2~of~train_step~{cause}~at~/job/train.py:31 500000..700000
           0/main annotation:compilation~1~of~evaluate~at~/job/train.py:40 800000..990000""",
    )
    assert isinstance(verdict, Finding) and abs(verdict.share - 200 / 2300) < 1e-9
    assert verdict.title.startswith("train_step is compiled once more after the first steps")
    told = "it was float32[8, 4], now float32[7, 4]"
    assert verdict.fixes[0] == f"keep the shape of x the same: {told}"
    assert verdict.where == "train.py:31"


@pytest.mark.parametrize(
    ("cause", "fix"),
    [
        ("x was float32[8], now float64[8]",
         "keep the type of x the same: it was float32[8], now float64[8]"),
        ("noise was float 0.44, now float 0.43",
         "give noise as an array, not as a Python number: it was float 0.44, now float 0.43"),
        ("mode was str a, now str b",
         "give mode the same value at each call: it was str a, now str b"),
        ("Float32[64, 9], was Float32[64, 8]",
         "keep the shape of its arguments the same: Float32[64, 9], was Float32[64, 8]"),
        ("1.95, was 2.0", "give the number as an array, not as a Python number: 1.95, was 2.0"),
        ("mask is new", "the cause, as recorded: mask is new"),
    ],
)  # fmt: skip
def test_the_first_fix_is_a_change_that_follows_from_the_cause(tmp_path, cause, fix):
    name = f"annotation:compilation~2~of~f~({cause.replace(' ', '~')})~at~/job/train.py:31"
    assert judged(tmp_path, f"0/main {name} 500000..700000").fixes[0] == fix


def test_a_long_cause_does_not_make_the_verdict_end_in_nothing(tmp_path):
    was, now = "float32[128, 64, 64, 3]", "float32[117, 64, 64, 3]"
    cause = f"(batch['images']~was~{was},~now~{now}~and~1~more)".replace(" ", "~")
    name = f"annotation:compilation~2~of~train_step~{cause}~at~/job/train.py:31"
    found = judged(tmp_path, f"0/main {name} 500000..700000")
    told = sentence({"recompilation": found}, {}, {})
    assert "Keep the shape of batch['images'] the same (train.py:31): about" in told


def test_of_several_causes_the_one_of_most_compilations_is_told(tmp_path):
    shape = "annotation:compilation~2~of~f~(x~was~f32[8],~now~f32[7])~at~/job/train.py:31"
    anew = f"annotation:compilation~3~of~f~({MADE_ANEW})~at~/job/train.py:31".replace(" ", "~")
    few = judged(tmp_path / "a", f"""0/main {shape} 500000..700000
                                     0/main {shape} 800000..900000
                                     0/main {shape} 1000000..1100000
                                     0/main {anew} 1200000..1300000""")  # fmt: skip
    assert few.fixes[0].startswith("keep the shape of x the same")
    most = judged(tmp_path / "b", f"""0/main {shape} 500000..700000
                                      0/main {anew} 800000..900000""")  # fmt: skip
    assert most.fixes[0] == "make the compiled function once, outside the loop"


def test_a_function_that_is_made_anew_is_to_be_made_once(tmp_path):
    cause = f"({MADE_ANEW}:~compile~it~once)".replace(" ", "~")
    name = f"annotation:compilation~2~of~<lambda>~{cause}~at~/job/train.py:31"
    verdict = judged(tmp_path, f"0/main {name} 500000..700000")
    assert verdict.fixes[0] == "make the compiled function once, outside the loop"


def test_a_function_that_is_first_called_late_is_no_fault(tmp_path):
    verdict = judged(tmp_path, "0/main annotation:compilation~1~of~evaluate 500000..990000")
    assert verdict == Clear("compiled 1 times, 0 of them after the first steps")


def compiled(*at):
    """Each 100 us of compiling a function, in these steps; its number counts from 1."""
    return "".join(
        f"0/main annotation:compilation~{number}~of~step~at~/job/train.py:31"
        f" {(step - 1) * 100_000 + 1}..{step * 100_000}\n"
        for number, step in enumerate(at, 1)
    )


def test_what_goes_on_after_the_first_steps_began_in_them(tmp_path):
    # Six of seven were not needed: 600 us, of 20 steps past the first three and what was compiled
    # again in those.
    verdict = judged(tmp_path, compiled(1, 2, 3, 4, 6, 7, 9))
    assert isinstance(verdict, Finding)
    assert verdict.share == pytest.approx(600 / 2300, rel=1e-3)


def test_a_second_compilation_in_the_first_steps_is_usual(tmp_path):
    assert isinstance(judged(tmp_path, compiled(1, 2)), Clear)
    verdict = judged(tmp_path / "late", compiled(1, 2, 3, 8, 9))
    assert isinstance(verdict, Finding) and verdict.share == pytest.approx(200 / 2300, rel=1e-3)


def test_compilations_in_a_window_of_full_recording_count(tmp_path):
    drawing = steps(*same({"forward": 100}, 23), window=(5, 10))
    verdict = recompilation.check(
        Training(make_run(tmp_path, drawing + compiled(1, 5, 6, 7, 8, 9)))
    )
    assert isinstance(verdict, Finding) and verdict.share == pytest.approx(500 / 2300, rel=1e-3)


def changing(*sizes):
    """A first compilation, and one for each size: 100 us each."""
    text = "0/main annotation:compilation~1~of~f~at~/job/train.py:31 1000..101000\n"
    for number, (was, now) in enumerate(itertools.pairwise(sizes), start=2):
        name = f"{number}~of~f~(x~was~float32[{was}],~now~float32[{now}])~at~/job/train.py:31"
        begins = number * 300_000
        text += f"0/main annotation:compilation~{name} {begins}..{begins + 100_000}\n"
    return text


def test_changing_shapes_gain_a_range_because_padding_costs(tmp_path):
    verdict = judged(tmp_path, changing(10, 20, 40, 30))
    assert isinstance(verdict, Finding) and abs(verdict.share - 300 / 2300) < 1e-9
    least, most = verdict.speedup_range
    assert abs(most - 2300 / 2000) < 1e-9
    # Padded to 40 from a mean of 30, 1900 of 2000 take 4/3 as long: nothing is certain to be won.
    assert least == 1 and abs(verdict.expected_speedup - most**0.5) < 1e-9


def test_a_few_sizes_have_to_be_compiled_all_the_same(tmp_path):
    verdict = judged(tmp_path, changing(100, 99, 100, 99, 100, 99))
    assert isinstance(verdict, Finding)
    least, most = verdict.speedup_range
    assert abs(most - 2300 / 1800) < 1e-9 and abs(least - 2300 / 2100) < 1e-9


def test_a_function_made_anew_gains_what_was_measured(tmp_path):
    second = f"compilation~2~of~f~({MADE_ANEW})~at~/job/train.py:31".replace(" ", "~")
    verdict = judged(
        tmp_path,
        f"""0/main annotation:compilation~1~of~f~at~/job/train.py:31 1000..90000
           0/main annotation:{second} 500000..900000""",
    )
    assert isinstance(verdict, Finding) and verdict.speedup_range is None
    assert abs(verdict.expected_speedup - 2300 / 1900) < 1e-9
