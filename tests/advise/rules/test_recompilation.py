import itertools

import pytest

from strobe.advise.finding import CannotTell, Clear, Finding
from strobe.advise.rules import recompilation
from strobe.advise.training import Training
from strobe.advise.verdict import sentence
from strobe.model.journal import MADE_ANEW
from tests.advise.drawings import of_framework, same, steps
from tests.helpers import make_run

TRAINING = steps(*same({"forward": 100}, 23))  # three of them the first


def judged(folder, compilations, recorded_by="strobe run", framework="torch"):
    run = make_run(folder, TRAINING + compilations)
    run.manifest.recorded_by = recorded_by
    return recompilation.check(Training(of_framework(run, framework)))


def test_compilations_after_the_first_steps_are_the_cost(tmp_path):
    verdict = judged(
        tmp_path,
        """0/main annotation:compilation~0/0~at~/job/train.py:31 1000..90000
           0/main annotation:compilation~0/1~at~/job/train.py:31 500000..700000
           0/main annotation:compilation~0/2~at~/job/other.py:7 1000000..1100000""",
    )
    assert isinstance(verdict, Finding) and abs(verdict.share - 300 / 2300) < 1e-9
    assert verdict.where == "train.py:31" and "dynamic=True" in verdict.fixes[0]
    assert verdict.title == "Recompilation by torch.compile takes 13% of step time."
    assert verdict.why == (
        "torch.compile compiles 2 more times after the first steps, which takes 300 µs in all."
    )
    assert verdict.fixes[0].endswith("for the code that is called at train.py:31")


def test_a_compiler_that_is_not_known_gets_neutral_words(tmp_path):
    verdict = judged(
        tmp_path,
        "0/main annotation:compilation~0/1~at~/job/train.py:31 500000..700000",
        framework="tinygrad",
    )
    assert isinstance(verdict, Finding)
    assert verdict.title == "Recompilation takes 8.7% of step time."
    assert verdict.fixes[0] == (
        "Compile the code that is called at train.py:31 for changing shapes"
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
    assert verdict == Clear("The only compilation was needed.")


def test_none_at_all_is_clear_and_unknown_where_it_is_not_recorded(tmp_path):
    assert isinstance(judged(tmp_path / "a", ""), Clear)
    assert isinstance(judged(tmp_path / "b", "", "strobe import"), CannotTell)


def test_a_function_that_is_named_is_reported_with_its_cause(tmp_path):
    cause = "(x~was~float32[8,~4],~now~float32[7,~4])"
    verdict = judged(
        tmp_path,
        f"""0/main annotation:compilation~1~of~train_step~at~/job/train.py:31 1000..90000
           0/main annotation:compilation~2~of~train_step~{cause}~at~/job/train.py:31 500000..700000
           0/main annotation:compilation~1~of~evaluate~at~/job/train.py:40 800000..990000""",
    )
    assert isinstance(verdict, Finding) and abs(verdict.share - 200 / 2300) < 1e-9
    assert verdict.title == "Recompiling train_step takes 8.7% of step time."
    assert verdict.why == (
        "train_step is recompiled once, which takes 200 µs. "
        "x changed from float32[8, 4] to float32[7, 4]."
    )
    assert verdict.fixes[0] == "Keep the shape of x the same at train.py:31"
    assert verdict.where == "train.py:31"


@pytest.mark.parametrize(
    ("cause", "fix", "shown"),
    [
        ("x was float32[8], now float64[8]", "Keep the type of x the same",
         "x changed from float32[8] to float64[8]."),
        ("noise was float 0.44, now float 0.43", "Pass noise as an array, not as a Python number",
         "noise changed from float 0.44 to float 0.43."),
        ("mode was str a, now str b", "Pass the same value for mode in every call",
         "mode changed from str a to str b."),
        ("x was f32[8], now f32[7] and 2 more", "Keep the shape of x the same",
         "x changed from f32[8] to f32[7]. 2 more arguments changed as well."),
        ("Float32[64, 9], was Float32[64, 8]", "Keep the shapes of the arguments the same",
         "An argument changed from Float32[64, 8] to Float32[64, 9]."),
        ("Float16[64], was Float32[64]", "Keep the types of the arguments the same",
         "An argument changed from Float32[64] to Float16[64]."),
        ("True, was False", "Pass the same values for the arguments in every call",
         "An argument changed from False to True."),
        ("1.95, was 2.0", "Pass the changing number as an array, not as a Python number",
         "An argument changed from 2.0 to 1.95."),
        ("mask is new and 1 more", "Pass the same arguments in every call",
         "mask was not passed before. 1 more argument changed as well."),
        ("mask is gone", "Pass the same arguments in every call", "mask is no longer passed."),
        ("called with the same shapes: a setting, a sharding or a constant of it changed",
         "Keep settings, shardings and constants the same in every call",
         "The shapes of its arguments stayed the same, "
         "so a setting, a sharding or a constant changed."),
        ("guard", "Keep everything that the function is compiled for the same in every call",
         "The recorded cause is: guard."),
    ],
)  # fmt: skip
def test_the_first_fix_is_a_change_that_follows_from_the_cause(tmp_path, cause, fix, shown):
    name = f"annotation:compilation~2~of~f~({cause.replace(' ', '~')})~at~/job/train.py:31"
    verdict = judged(tmp_path, f"0/main {name} 500000..700000")
    assert verdict.fixes[0] == f"{fix} at train.py:31"
    assert verdict.why == f"f is recompiled once, which takes 200 µs. {shown}"


def test_a_long_cause_is_not_part_of_the_verdict(tmp_path):
    was, now = "float32[128, 64, 64, 3]", "float32[117, 64, 64, 3]"
    cause = f"(batch['images']~was~{was},~now~{now}~and~1~more)".replace(" ", "~")
    name = f"annotation:compilation~2~of~train_step~{cause}~at~/job/train.py:31"
    found = judged(tmp_path, f"0/main {name} 500000..700000")
    verdict = sentence({"recompilation": found}, {}, {})
    assert "Keep the shape of batch['images'] the same at train.py:31: about" in verdict
    assert found.why.endswith(f"from {was} to {now}. 1 more argument changed as well.")


def test_of_several_causes_the_one_of_most_compilations_is_reported(tmp_path):
    shape = "annotation:compilation~2~of~f~(x~was~f32[8],~now~f32[7])~at~/job/train.py:31"
    anew = f"annotation:compilation~3~of~f~({MADE_ANEW})~at~/job/train.py:31".replace(" ", "~")
    few = judged(tmp_path / "a", f"""0/main {shape} 500000..700000
                                     0/main {shape} 800000..900000
                                     0/main {shape} 1000000..1100000
                                     0/main {anew} 1200000..1300000""")  # fmt: skip
    assert few.fixes[0].startswith("Keep the shape of x the same")
    most = judged(tmp_path / "b", f"""0/main {shape} 500000..700000
                                      0/main {anew} 800000..900000""")  # fmt: skip
    assert most.fixes[0].startswith("Create the compiled function once, outside the loop")


def test_a_function_that_is_made_anew_is_to_be_made_once(tmp_path):
    cause = f"({MADE_ANEW}:~compile~it~once)".replace(" ", "~")
    name = f"annotation:compilation~2~of~<lambda>~{cause}~at~/job/train.py:31"
    verdict = judged(tmp_path, f"0/main {name} 500000..700000")
    assert verdict.fixes[0] == (
        "Create the compiled function once, outside the loop that calls it at train.py:31"
    )
    assert verdict.why.endswith("The compiled function was created again instead of being reused.")


def test_a_function_that_is_first_called_late_is_no_fault(tmp_path):
    verdict = judged(tmp_path, "0/main annotation:compilation~1~of~evaluate 500000..990000")
    assert verdict == Clear("The only compilation was needed.")


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
    assert verdict.why == "step is recompiled 6 times, which takes 600 µs in all."


def test_of_several_functions_the_most_frequent_one_is_named(tmp_path):
    other = "0/main annotation:compilation~2~of~evaluate~at~/job/train.py:40 1500000..1600000"
    verdict = judged(tmp_path, compiled(1, 8, 9) + other)
    assert verdict.title == "Recompiling functions takes 13% of step time."
    assert verdict.why == (
        "Functions are recompiled 3 times, which takes 300 µs in all. "
        "The most frequent one is step."
    )


def test_a_few_short_recompilations_are_clear(tmp_path):
    name = "annotation:compilation~{}~of~f~at~/job/train.py:31"
    again = "".join(
        f"0/main {name.format(number)} {number}00000..{number}10000\n" for number in (5, 7)
    )
    first = f"0/main {name.format(1)} 1000..90000\n"
    assert judged(tmp_path / "a", first + again) == Clear(
        "2 of 3 compilations may be avoidable, but they take only 0.9% of step time."
    )
    assert judged(tmp_path / "b", first + again.splitlines()[0]) == Clear(
        "1 of 2 compilations may be avoidable, but it takes only 0.4% of step time."
    )
    assert judged(tmp_path / "c", again.splitlines()[0]) == Clear(
        "The only compilation came after the first steps and takes only 0.4% of step time."
    )


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
