from strobe.advise import recompilation
from strobe.advise.finding import CannotTell, Clear, Finding
from strobe.advise.training import Training
from strobe.model.journal import MADE_ANEW
from tests.advise.drawings import same, steps
from tests.helpers import make_run

TRAINING = steps(*same({"forward": 100}, 23))  # 20 of them judged


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
    assert isinstance(verdict, Finding) and abs(verdict.share - 300 / 2000) < 1e-9
    assert verdict.where == "train.py:31" and "dynamic=True" in verdict.fixes[0]
    assert verdict.title == (
        "torch.compile compiles 2 times more after the first steps, 300 µs in all, 15 % of step "
        "time"
    )


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
    assert isinstance(verdict, Finding) and abs(verdict.share - 200 / 2000) < 1e-9
    assert verdict.title.startswith("train_step is compiled once more after the first steps")
    assert verdict.fixes[0] == "the cause, as recorded: x was float32[8, 4], now float32[7, 4]"
    assert verdict.where == "train.py:31"


def test_a_function_that_is_made_anew_is_to_be_made_once(tmp_path):
    cause = f"({MADE_ANEW}:~compile~it~once)".replace(" ", "~")
    name = f"annotation:compilation~2~of~<lambda>~{cause}~at~/job/train.py:31"
    verdict = judged(tmp_path, f"0/main {name} 500000..700000")
    assert verdict.fixes[0] == "make the compiled function once, outside the loop"


def test_a_function_that_is_first_called_late_is_no_fault(tmp_path):
    verdict = judged(tmp_path, "0/main annotation:compilation~1~of~evaluate 500000..990000")
    assert verdict == Clear("compiled 1 times, 0 of them after the first steps")
