from strobe.timeline.steps import stretch
from tests.timeline.drawn import index_of

DRAWING = """
    0/steps step:step~1 100..200
    0/steps phase:forward 100..200 parent=0
    0/steps step:step~2 200..250
    0/steps step:step~3 250..400
    1/steps step:step~2 190..260
"""


def test_steps_as_a_stretch_of_time(tmp_path):
    index = index_of(tmp_path, DRAWING)
    assert stretch(index, 2, 2, None) == (190, 260)
    assert stretch(index, 2, 2, 0) == (200, 250)
    assert stretch(index, 2, None, 0) == (200, 400)
    assert stretch(index, None, 1, None) == (100, 200)
    assert stretch(index, 9, 12, None) is None
