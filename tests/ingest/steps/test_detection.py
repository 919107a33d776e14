"""Marks are drawn: `D0-5 F5-20 B20-40 U:A40-45` is data asked at 0 and come at 5, a forward, a
backward, and an update by optimizer A.

D data (d: the end of the data)     F forward that trains   V in eval() mode, with gradients
E no_grad, eval()                   T no_grad, train()      B backward   G autograd.grad()
U update     C collective           S strobe.step()         R gradient all-reduce     O own work
`F:net5-20@1`: of module net, on thread 1. Lower-case x instead of an end: `Fx5` begins and never
ends; `xF5` ends and never began.
"""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strobe.ingest.steps.detection import Marks, Steps, decide
from strobe.model.journal import Mark
from strobe.model.schema import PHASES

SPANS = {
    "D": (Mark.DATA_ASKED, 0, 1), "d": (Mark.DATA_ASKED, 0, 0),
    "F": (Mark.FORWARD_BEGAN, 3, 1), "V": (Mark.FORWARD_BEGAN, 1, 1),
    "E": (Mark.FORWARD_BEGAN, 0, 1), "T": (Mark.FORWARD_BEGAN, 2, 1),
    "B": (Mark.BACKWARD_BEGAN, 0, 0), "G": (Mark.BACKWARD_BEGAN, 1, 0),
    "U": (Mark.UPDATE_BEGAN, 0, 0), "C": (Mark.COLLECTIVE_BEGAN, 0, 0),
}  # fmt: skip
LENGTHS = {"R": Mark.ALL_REDUCE, "O": Mark.OWN_WORK, "Z": Mark.ZERO_GRAD}
TOKEN = re.compile(r"(x?)([A-Zd])(x?)(?::([A-Za-z]+))?(\d+)(?:-(\d+))?(?:@(\d+))?$")


def draw(drawing: str) -> Marks:
    rows, names = [], {}
    for token in drawing.split():
        unbegun, letter, unended, name, begin, end, thread = TOKEN.match(token).groups()
        kind = "F" if letter in "FVET" else letter
        ref = names.setdefault((kind, name), len(names) + 1)
        begin, end, thread = int(begin), int(end or begin), int(thread or 0)
        if letter == "S":
            rows.append((begin, 1, 0, Mark.STEP, ref, 0, thread))
        elif letter in LENGTHS:
            rows.append((begin, 2, 0, LENGTHS[letter], ref, end - begin, thread))
        else:
            code, value, result = SPANS[letter]
            if not unbegun:
                rows.append((begin, 2, begin - end, code, ref, value, thread))
            if not unended:
                rows.append((end, 0, end - begin, code + 1, ref, result, thread))
    rows.sort(key=lambda row: row[:3])  # at one moment: ends, inner first; begins, outer first
    ts, _, _, code, ref, value, thread = np.array(rows, dtype=np.int64).reshape(-1, 7).T
    return Marks(ts, code, ref, value, thread)


def text(steps: Steps) -> str:
    lines = []
    for step, (ts, dur) in enumerate(zip(steps.step_ts_ns, steps.step_dur_ns, strict=True), 1):
        mine = steps.phase_step == step
        names = [PHASES[name] for name in steps.phase_name[mine]]
        parts = zip(names, steps.phase_dur_ns[mine], strict=True)
        lines.append(f"{ts}..{ts + dur} " + " ".join(f"{name} {length}" for name, length in parts))
    return "\n".join(lines + [f"problem: {problem}" for problem in steps.problems])


def check(drawing: str, expected: str) -> None:
    found = text(decide(draw(drawing)))
    assert found == "\n".join(line.strip() for line in expected.strip().splitlines())


def bounds(drawing: str) -> str:
    steps = decide(draw(drawing))
    assert steps.problems == []
    return " ".join(
        str(n) for n in [*steps.step_ts_ns[:1], *(steps.step_ts_ns + steps.step_dur_ns)]
    )


def later(drawing: str, by: int) -> str:
    def moved(token: str) -> str:
        head, numbers, thread = re.match(r"(\D+)(\d[\d-]*)(@\d+)?$", token).groups()
        return head + "-".join(str(int(n) + by) for n in numbers.split("-")) + (thread or "")

    return " ".join(moved(token) for token in drawing.split())


def repeat(drawing: str, times: int, every: int) -> str:
    """The drawing again and again, each time `every` later."""
    return " ".join(later(drawing, number * every) for number in range(times))


PLAIN = "D0-5 F5-20 B22-40 U:A43-45 D50-53 F55-70 B70-90 U:A90-95 d97-98"
GAN = "D0-2 F2-5 B5-9 U:D9-10 F10-14 B14-18 U:G18-20"
PER_PARAMETER = "D0-2 F2-5 B5-20 U:a8-10 U:b12-14 U:c17-19"
CLOSURE = "D0-5 U:A6-60 F8-20 B22-30 F33-40 B40-50"
HAND_WRITTEN = "D0-5 F5-20 B20-40 D50-55 F55-70 B70-90 d99-100"


def test_a_plain_loop():
    check(
        PLAIN,
        """
        0..45 gap 5 forward 17 backward 18 update 5
        45..95 gap 10 forward 15 backward 20 update 5
    """,
    )


def test_no_marks_give_no_steps():
    check("", "")


def test_one_step_only_without_data_marks():
    check("F5-20 B20-40 U:A40-45", "5..45 forward 15 backward 20 update 5")


def test_step_one_begins_with_the_loaders_asked_for_its_batch():
    check(
        "D:val0-1 E1-2 D:a10-12 D:b12-14 F15-20 B20-30 U:A30-35",
        "10..35 gap 5 forward 5 backward 10 update 5",
    )
    check("F0-3 D10-12 F15-20 B20-30 U:A30-35", "10..35 gap 5 forward 5 backward 10 update 5")
    check("D0-1 D10-12 F15-20 B20-30 U:A30-35", "10..35 gap 5 forward 5 backward 10 update 5")
    check("D0-1 d2-3 F15-20 B20-30 U:A30-35", "15..35 forward 5 backward 10 update 5")


def test_a_gan_with_one_batch_for_both_optimizers():
    check(
        repeat(GAN, 2, 20),
        """
        0..20 gap 2 forward 3 backward 4 update 1 forward 4 backward 4 update 2
        20..40 gap 2 forward 3 backward 4 update 1 forward 4 backward 4 update 2
    """,
    )


def test_a_gan_without_data_marks():
    assert bounds(repeat(GAN.replace("D0-2 ", ""), 3, 20)) == "2 20 40 60"


def test_a_gan_that_fetches_twice():
    assert bounds(repeat("D0-2 F2-5 B5-9 U:D9-10 D10-11 F12-14 B14-18 U:G18-20", 3, 20)) == (
        "0 20 40 60"
    )


def test_a_gan_recorded_from_the_middle_of_a_step():
    cycle = "D10-12 F12-15 B15-19 U:D19-20 F20-24 B24-28 U:G28-30"
    assert bounds("U:G8-10 " + repeat(cycle, 4, 20)) == "10 30 50 70 90"


def test_a_gan_killed_between_its_two_updates():
    assert bounds(repeat(GAN, 2, 20) + " D40-42 F42-45 B45-49 U:D49-50") == "0 20 40"


def test_several_updates_of_the_critic_for_one_of_the_generator():
    critic = repeat("F0-3 B3-8 U:D8-10", 5, 10)
    cycle = critic + " F50-53 B53-58 U:G58-60"
    assert bounds(repeat(cycle, 2, 60)) == "0 10 20 30 40 60 70 80 90 100 120"


@pytest.mark.parametrize("data", ["D0-1 ", ""])
def test_two_models_one_after_the_other(data):
    one = repeat(data + "F1-3 B3-8 U:A8-10", 3, 10)
    other = repeat(data + "F31-33 B33-38 U:B38-40", 3, 10)
    start = 0 if data else 1
    assert bounds(f"{one} {other}") == f"{start} 10 20 30 40 50 60"


def test_two_models_trained_twice_each_are_four_steps():
    drawing = repeat("F1-3 B3-8 U:A8-10", 2, 10) + " " + repeat("F21-23 B23-28 U:B28-30", 2, 10)
    assert bounds(drawing) == "1 10 20 30 40"


def test_optimizers_updated_in_a_row_are_one_step_however_rarely():
    plain = repeat("F0-3 B3-8 U:A8-9", 5, 10)
    check(
        plain + " F50-53 B53-58 U:A58-59 U:embedding60-62",
        """
        0..9 forward 3 backward 5 update 1
        9..19 gap 1 forward 3 backward 5 update 1
        19..29 gap 1 forward 3 backward 5 update 1
        29..39 gap 1 forward 3 backward 5 update 1
        39..49 gap 1 forward 3 backward 5 update 1
        49..62 gap 1 forward 3 backward 5 update 4
    """,
    )


def test_optimizers_updated_in_a_row_are_one_step_even_if_both_mostly_work_alone():
    alone = repeat("F0-3 B3-8 U:A8-10", 3, 10) + " " + repeat("F30-33 B33-38 U:B38-40", 3, 10)
    assert bounds(alone + " F60-63 B63-66 U:A66-68 U:B68-70") == "0 10 20 30 40 50 60 70"


def test_optimizers_that_step_inside_backward():
    parts = "backward 3 update 2 backward 2 update 2 backward 3 update 2 backward 1"
    phases = f"gap 2 forward 3 {parts}"
    check(repeat(PER_PARAMETER, 2, 20), f"0..20 {phases}\n20..40 {phases}")


def test_optimizers_that_step_inside_backward_in_any_order_between_recomputed_forwards():
    orders = ["abc", "acb", "bac", "bca", "cab", "cba"]
    part = "F0-5 B5-20 U:{}6-8 F8-10 U:{}10-12 F12-14 U:{}14-16"
    drawing = [later(part.format(*order), 20 * number) for number, order in enumerate(orders)]
    assert bounds(" ".join(drawing)) == "0 20 40 60 80 100 120"


def test_optimizers_that_step_on_the_device_thread_of_autograd():
    elsewhere = re.sub(r"(U:\S+)", r"\1@7", repeat(PER_PARAMETER, 2, 20))
    assert text(decide(draw(elsewhere))) == text(decide(draw(repeat(PER_PARAMETER, 2, 20))))


def test_gradient_accumulation():
    check(
        "D0-5 F5-10 B10-20 D25-28 F30-35 B35-45 U:A46-50",
        """
        0..50 gap 5 forward 5 backward 10 rest 5 gap 3 rest 2 forward 5 backward 10 update 5
    """,
    )


@pytest.mark.parametrize("forward", ["E", "T", "V"])
def test_evaluation_between_steps_is_gap(forward):
    check(
        f"D0-5 F5-10 B10-20 U:A20-25 D26-28 {forward}28-40 D40-42 {forward}42-50 d50-51"
        " D52-53 F55-60 B60-70 U:A70-75",
        """
        0..25 gap 5 forward 5 backward 10 update 5
        25..75 gap 30 forward 5 backward 10 update 5
    """,
    )


@pytest.mark.parametrize("forward", ["E", "T", "V"])
def test_evaluation_without_data_marks_is_gap(forward):
    check(
        f"F5-10 B10-20 U:A20-25 {forward}28-40 {forward}42-50 F55-60 B60-70 U:A70-75",
        """
        5..25 forward 5 backward 10 update 5
        25..75 gap 30 forward 5 backward 10 update 5
    """,
    )


def test_another_module_in_evaluation_mode_on_the_way_to_the_loss_is_forward():
    check(
        "V:perceptual5-10 F10-20 V:perceptual20-25 B25-30 U:A30-35",
        "5..35 forward 20 backward 5 update 5",
    )


def test_evaluation_of_a_module_that_is_never_trained_is_gap():
    drawing = "D0-2 F2-5 B5-8 U:A8-10 D11-12 V:ema12-20 D20-21 V:ema21-28 d28-29 D30-32 F32-35"
    assert text(decide(draw(drawing + " B35-38 U:A38-40"))) == (
        "0..10 gap 2 forward 3 backward 3 update 2\n10..40 gap 22 forward 3 backward 3 update 2"
    )


def test_training_in_evaluation_mode_is_training():
    check("D0-5 V5-10 B10-20 U:A20-25", "0..25 gap 5 forward 5 backward 10 update 5")


def test_evaluation_after_the_loop_is_no_step():
    assert bounds(PLAIN + " E100-120 E120-140") == "0 45 95"


def test_a_teacher_that_every_step_runs_is_forward():
    check(
        repeat("D0-5 E:teacher5-9 F:student9-14 B14-20 U:A20-25", 2, 30),
        """
        0..25 gap 5 forward 9 backward 6 update 5
        25..55 gap 10 forward 9 backward 6 update 5
    """,
    )


def test_an_evaluation_that_few_steps_run_on_their_batch_is_gap():
    drawing = repeat("D0-5 F9-14 B14-20 U:A20-25", 3, 30) + " E5-9"
    assert text(decide(draw(drawing))).splitlines()[0] == (
        "0..25 gap 9 forward 5 backward 6 update 5"
    )


def test_evaluation_inside_a_step_is_rest():
    check(
        "F0-5 B5-10 E12-14 F15-20 B20-25 U:A26-30",
        "0..30 forward 5 backward 5 rest 5 forward 5 backward 5 update 5",
    )
    check("F0-5 B5-10 E12-14 U:A16-20", "0..20 forward 5 backward 5 update 2 rest 2 update 6")


def test_a_hand_written_update():
    check(
        HAND_WRITTEN,
        """
        0..50 gap 5 forward 15 backward 20 update 10
        50..99 gap 5 forward 15 backward 20 update 9
    """,
    )


def test_a_hand_written_update_without_data_marks_keeps_its_last_step():
    check(
        "F5-20 B20-40 F55-70 B70-90",
        """
        5..55 forward 15 backward 20 update 15
        55..90 forward 15 backward 20
    """,
    )


def test_a_collective_after_the_last_backward_is_in_its_hand_written_step():
    check(
        "F5-20 B20-40 C41-44 F55-70 B70-90 C91-94",
        """
        5..55 forward 15 backward 20 update 1 all_reduce 3 update 11
        55..94 forward 15 backward 20 update 1 all_reduce 3
    """,
    )


def test_evaluation_after_a_hand_written_update_is_the_gap_of_the_next_step():
    check(
        "F5-20 B20-40 E45-50 F55-70 B70-90 E95-99",
        """
        5..45 forward 15 backward 20 update 5
        45..95 gap 10 forward 15 backward 20 update 5
    """,
    )


def test_a_hand_written_update_with_autograd_grad():
    check(
        HAND_WRITTEN.replace("B", "G"),
        """
        0..50 gap 5 forward 15 backward 20 update 10
        50..99 gap 5 forward 15 backward 20 update 9
    """,
    )


def test_graphs_that_run_forward_and_backward_at_once_before_a_hand_written_update():
    check(
        "B20-40 B70-90 E95-97 B100-110",
        """
        20..70 backward 20 update 30
        70..95 backward 20 update 5
        95..110 gap 5 backward 10
    """,
    )


def test_a_gradient_penalty_is_a_part_of_forward():
    check("D0-5 F5-10 G12-15 B20-30 U:A30-31", "0..31 gap 5 forward 15 backward 10 update 1")


def test_two_losses_in_a_row_are_one_step():
    check(
        "F0-5 B5-10 B12-15 F20-25 B25-30 B32-35",
        """
        0..20 forward 5 backward 5 rest 2 backward 3 update 5
        20..35 forward 5 backward 5 rest 2 backward 3
    """,
    )


def test_closures_inside_the_update():
    check(CLOSURE, "0..60 gap 8 forward 14 backward 8 update 3 forward 7 backward 10 update 10")


def test_a_trainer_that_runs_its_only_closure_inside_the_update():
    check(
        repeat("D0-5 U:A6-25 F7-12 B12-20", 2, 30),
        """
        0..25 gap 7 forward 5 backward 8 update 5
        25..55 gap 12 forward 5 backward 8 update 5
    """,
    )


def test_an_update_inside_an_update_is_one():
    check(
        repeat("D0-5 F5-10 B10-20 U:SAM20-40 F22-25 B25-30 U:SGD32-38", 2, 40),
        """
        0..40 gap 5 forward 5 backward 10 update 2 forward 3 backward 5 update 10
        40..80 gap 5 forward 5 backward 10 update 2 forward 3 backward 5 update 10
    """,
    )


def test_steps_marked_by_hand_override_the_guess():
    check(
        "D0-5 F5-10 B10-20 U:A20-25 D25-26 F26-30 B30-40 U:A40-45 S50 D52-53 F53-60",
        """
        0..50 gap 5 forward 5 backward 10 update 5 gap 1 forward 4 backward 10 update 5 rest 5
    """,
    )


def test_a_step_marked_before_any_training_begins_the_first_step():
    check(
        "D0-3 S4 F5-10 B10-20 U:A20-25 D26-28 S29 F30-35 B35-40",
        """
        4..29 gap 1 forward 5 backward 10 update 5 rest 1 gap 2 rest 1
    """,
    )


def test_steps_marked_by_hand_and_nothing_else():
    check("R0-1@5 S10 S20 S30", "0..10 gap 10\n10..20 gap 10\n20..30 gap 10")
    check("S10 S20", "10..20 gap 10")


def test_gradient_all_reduce_is_taken_out_of_backward_and_cut_at_the_step():
    check(
        "D0-5 F5-10 B10-30 R25-30 U:A30-35 F40-45 B45-60 U:A60-65 R62-99",
        """
        0..35 gap 5 forward 5 backward 15 all_reduce 5 update 5
        35..65 gap 5 forward 5 backward 15 update 2 all_reduce 3
    """,
    )


def test_gradient_all_reduce_is_cut_at_the_step_it_began_in():
    check(
        "F5-10 B10-30 U:A30-35 R33-44 F40-45 B45-60 U:A60-65",
        """
        5..35 forward 5 backward 20 update 3 all_reduce 2
        35..65 gap 5 forward 5 backward 15 update 5
    """,
    )


def test_all_reduces_over_one_another_count_once():
    check(
        "F5-10 B10-30 R20-27 R22-25 R26-29 U:A30-35",
        "5..35 forward 5 backward 10 all_reduce 9 backward 1 update 5",
    )


def test_collectives_count_after_the_first_forward_began():
    check(
        "D0-2 C2-4 F5-10 C7-8 B10-20 C12-15 C21-23 U:A24-30",
        """
        0..30 gap 5 forward 2 all_reduce 1 forward 2 backward 2 all_reduce 3 backward 5 update 1
        all_reduce 2 update 7
    """.replace("update 1\n        all", "update 1 all"),
    )


def test_work_of_the_recorder_is_its_own_phase_also_across_steps():
    check(
        PLAIN + " O44-48",
        """
        0..45 gap 5 forward 17 backward 18 update 4 recorder 1
        45..95 recorder 3 gap 7 forward 15 backward 20 update 5
    """,
    )


def test_work_of_the_recorder_beside_training_counts_only_where_training_stands_still():
    check(
        "O46-58 " + PLAIN,  # the first name that is drawn has the number of BESIDE_TRAINING
        """
        0..45 gap 5 forward 17 backward 18 update 5
        45..95 gap 1 recorder 4 gap 3 recorder 2 forward 15 backward 20 update 5
    """,
    )


def test_clearing_gradients_is_neither_forward_nor_backward():
    check(
        "D0-5 F5-20 Z20-23 B24-40 U:A40-45",
        "0..45 gap 5 forward 15 rest 3 forward 1 backward 16 update 5",
    )
    check("Z0-2 D2-5 F5-20 B20-40 U:A40-45", "2..45 gap 3 forward 15 backward 20 update 5")


def test_other_threads_do_not_count():
    inference = "E6-9@1 F7-30@2 D3-30@3 B12-13@4 xF60@1"
    assert text(decide(draw(f"{PLAIN} {inference}"))) == text(decide(draw(PLAIN)))


def test_updates_on_other_threads_are_told():
    assert text(decide(draw(f"{PLAIN} B11-12@1 U:Z12-13@1"))).splitlines()[2:] == [
        "problem: 1 optimizer updates ran on other threads than the training thread;"
        " they are in no step"
    ]


def test_modules_inside_the_data_loader_and_inside_backward_do_not_count():
    check(
        "D0-8 F2-4 B4-5 F10-20 B20-40 F22-25 B26-30 U:A40-45",
        "0..45 gap 10 forward 10 backward 20 update 5",
    )


def test_a_forward_that_no_backward_uses_ends_with_itself():
    check(
        "F0-5 U:A8-10 F12-15 U:A18-20",
        "0..10 forward 5 rest 3 update 2\n10..20 gap 2 forward 3 rest 3 update 2",
    )


def test_inference_has_no_steps():
    check(
        "D0-1 E1-5 D6-7 E7-9",
        "problem: no whole training step was seen: no optimizer update and"
        " no backward; call strobe.step() at the end of each step",
    )


def test_recording_that_starts_and_stops_in_the_middle_of_things():
    check(
        "xF3 B5-10 U:A10-12 F15-20 B20-30 U:A30-35 F40-45 Bx45",
        """
        5..12 backward 5 update 2
        12..35 gap 3 forward 5 backward 10 update 5
    """,
    )


@pytest.mark.parametrize("lost", ["Bx14", "xB18"])
def test_a_lost_half_in_the_middle_is_told_and_left_out(lost):
    check(
        f"F0-5 B5-8 U:A8-10 F11-14 {lost} U:A18-20 F21-24 B24-28 U:A28-30",
        """
        0..10 forward 5 backward 3 update 2
        10..20 gap 1 forward 3 rest 4 update 2
        20..30 gap 1 forward 3 backward 4 update 2
        problem: 1 marks begin or end something whose other end was not recorded; left out
    """,
    )


def test_a_forward_that_raised_is_a_forward():
    marks = draw("D0-5 F5-9 D10-12 F12-20 B20-30 U:A30-35")
    marks.value[3] = 0
    assert text(decide(marks)) == "0..35 gap 5 forward 5 gap 2 forward 8 backward 10 update 5"


def test_marks_that_go_backwards_in_time_are_sorted_and_told():
    marks = draw(PLAIN)
    order = np.r_[3, 0:3, 4 : len(marks.ts_ns)]
    shuffled = Marks(
        *(getattr(marks, c)[order] for c in ("ts_ns", "code", "ref", "value", "thread"))
    )
    expected = text(decide(marks)) + (
        "\nproblem: 1 marks are earlier than the mark before them; they were sorted"
    )
    assert text(decide(shuffled)) == expected


def part(marks: Marks, count: int) -> Marks:
    columns = (marks.ts_ns, marks.code, marks.ref, marks.value, marks.thread)
    return Marks(*(column[:count] for column in columns))


@pytest.mark.parametrize(
    ("drawing", "sure_from"),
    [
        # the number of marks after which the shape of the loop is known
        (PLAIN, 0),
        (repeat("D0-5 F5-10 B10-20 D25-28 F30-35 B35-45 U:A46-50", 3, 50), 13),
        (repeat(CLOSURE, 2, 60), 0),
        (repeat("D0-5 F5-10 B10-20 U:SAM20-40 F22-25 B25-30 U:SGD32-38", 3, 40), 0),
        (repeat(GAN, 4, 20), 14),
        (repeat(PER_PARAMETER, 3, 20), 12),
        (repeat("D0-5 F5-10 B10-20 R15-18 U:A20-25 E26-28 S30", 3, 30), 12),
    ],
)  # fmt: skip
def test_a_journal_cut_anywhere_gives_the_first_steps_of_the_whole(drawing, sure_from):
    marks = draw(drawing)
    whole = text(decide(marks)).splitlines()
    for count in range(len(marks.ts_ns) + 1):
        found = [
            line for line in text(decide(part(marks, count))).splitlines() if "pro" not in line
        ]
        if count >= sure_from:
            assert found == whole[: len(found)], count


def test_a_hand_written_loop_cut_anywhere_gives_the_first_steps_but_for_the_last_tail():
    marks = draw(HAND_WRITTEN + " E101-105")
    for count in range(len(marks.ts_ns) + 1):
        starts = decide(part(marks, count)).step_ts_ns.tolist()
        assert starts == [0, 50][: len(starts)]


@settings(max_examples=400, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(-1, 5), st.integers(0, 22), st.integers(0, 3), st.integers(-3, 9),
                  st.sampled_from([0, 0, 0, 1])),
        max_size=60,
    )
)  # fmt: skip
def test_whatever_the_marks_phases_tile_their_step_and_steps_tile_time(rows):
    moves, code, ref, value, thread = np.array(rows, dtype=np.int64).reshape(-1, 5).T
    steps = decide(Marks(np.cumsum(moves), code, ref, value, thread))
    step_end = steps.step_ts_ns + steps.step_dur_ns
    assert (step_end[:-1] == steps.step_ts_ns[1:]).all()
    for number, (ts, dur) in enumerate(zip(steps.step_ts_ns, steps.step_dur_ns, strict=True), 1):
        mine = steps.phase_step == number
        begin, length = steps.phase_ts_ns[mine], steps.phase_dur_ns[mine]
        assert length.sum() == dur
        assert dur == 0 or begin[0] == ts
        assert (begin[1:] == (begin + length)[:-1]).all()
        assert (length > 0).all()
        assert (np.diff(steps.phase_name[mine]) != 0).all()
    assert set(steps.phase_step) <= set(range(1, len(steps.step_ts_ns) + 1))


def nested(depth: int = 0) -> st.SearchStrategy[list[tuple[int, int, int]]]:
    """Marks as a correct program leaves them: spans within spans."""
    inner = (
        st.just([])
        if depth == 3
        else st.lists(nested(depth + 1), max_size=3).map(
            lambda parts: [mark for each in parts for mark in each]
        )
    )
    return st.tuples(
        st.sampled_from([1, 3, 5, 7, 9]), st.integers(0, 2), st.integers(0, 3), inner
    ).map(lambda t: [(t[0], t[1], t[2]), *t[3], (t[0] + 1, t[1], 1)])


@settings(max_examples=300, deadline=None)
@given(st.lists(nested(), max_size=12))
def test_each_orderly_update_is_in_a_step(parts):
    rows = [mark for each in parts for mark in each]
    code, ref, value = np.array(rows, dtype=np.int64).reshape(-1, 3).T
    marks = Marks(np.arange(len(code)) * 10, code, ref * 0, value, code * 0)
    steps = decide(marks)
    assert steps.problems == [] or "no whole" in steps.problems[0]
    depth, outermost, open_data, open_backward, worked = 0, [], 0, 0, False
    for at, mark in enumerate(code):
        open_data += (mark == 1) - int(mark == 2)
        open_backward += (mark == 5) - int(mark == 6)
        worked |= mark in (1, 3, 5)
        depth -= mark == 8
        if mark == 8 and depth == 0 and not open_data:
            if worked and not open_backward:
                outermost.append(at * 10)
            worked = False
        depth += mark == 7
    ends = set((steps.step_ts_ns + steps.step_dur_ns).tolist())
    assert {ts for ts in outermost if not open_data} <= ends
