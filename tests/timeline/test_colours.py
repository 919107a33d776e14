from strobe.model.schema import KINDS, PHASES
from strobe.timeline.colours import BY_NAME, COLOUR_BITS, FIXED, colour_of


def test_a_name_has_one_colour_in_every_run():
    assert colour_of("op", "aten::mm") == colour_of("kernel", "aten::mm") < BY_NAME
    assert colour_of("op", "aten::mm") == 61


def test_phases_and_kinds_of_fixed_meaning_have_their_own():
    fixed = [colour_of("phase", phase) for phase in PHASES]
    fixed += [colour_of(kind, "any") for kind in KINDS if kind in FIXED]
    assert len(set(fixed)) == len(fixed) == len(FIXED)
    assert min(fixed) >= BY_NAME and max(fixed) < 1 << COLOUR_BITS
