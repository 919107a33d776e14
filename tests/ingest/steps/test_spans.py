"""Which updates count; drawn as in test_steps.py, where the rest of this decision is tested."""

from tests.ingest.steps.test_detection import bounds, check

STEPS = " ".join(f"F{t + 20}-{t + 40} B{t + 40}-{t + 60} U{t + 60}-{t + 70}"
                 for t in range(0, 500, 100))  # fmt: skip


def test_an_update_before_any_work_is_not_a_step():
    assert bounds(f"U5-10 {STEPS}") == bounds(STEPS) == "20 70 170 270 370 470"


def test_an_update_that_nothing_precedes_is_in_the_gap_of_the_next_step():
    twenty = " ".join(f"F{t + 20}-{t + 40} B{t + 40}-{t + 60} U{t + 60}-{t + 70}"
                      for t in range(0, 2000, 100))  # fmt: skip
    assert bounds(f"{twenty} U175-180") == bounds(twenty)


def test_updates_by_gradients_from_elsewhere_are_steps():
    """Evolution strategies, or a captured CUDA graph after its warm-up."""
    assert bounds("F0-10 B10-20 U20-30 U40-50 U60-70") == "0 30 50 70"
    assert bounds("U20-30 U40-50 U60-70") == "20 30 50 70"
    # Half of them: two updates with each gradient.
    assert bounds("F0-10 B10-20 U20-30 U30-40 F50-60 B60-70 U70-80 U80-90") == "0 30 40 80 90"


def test_two_optimizers_share_their_work():
    check(
        "U:A0-1 U:B1-2 F10-20 B20-30 U:A30-35 U:B35-40 F50-60 B60-70 U:A70-75 U:B75-80",
        """10..40 forward 10 backward 10 update 10
           40..80 gap 10 forward 10 backward 10 update 10""",
    )


def test_setting_up_the_recorder_at_the_first_backward_is_not_forward():
    check(
        "F0-10 O10-90 B90-95 U95-99 F100-110 B110-115 U115-119",
        """0..99 forward 10 recorder 80 backward 5 update 4
           99..119 gap 1 forward 10 backward 5 update 4""",
    )
