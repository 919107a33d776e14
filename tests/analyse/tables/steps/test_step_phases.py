from strobe.analyse.tables.steps import step_phases
from tests.helpers import make_run, text


def test_parts_are_placed_from_the_begin_of_their_step(tmp_path):
    drawing = """
        0/steps step:step~1   0..100    step=1
        0/steps phase:gap     0..30     step=1
        0/steps phase:forward 30..100   step=1
        0/steps step:step~2   100..250  step=2
        0/steps phase:gap     100..110  step=2
        0/steps phase:forward 110..150  step=2
        0/steps phase:rest    150..150  step=2
        0/steps phase:gap     150..250  step=2
    """
    assert text(step_phases.run(make_run(tmp_path, drawing))) == (
        "rank step part begin_ns end_ns dur_ns ts_ns event_id\n"
        "0 1 gap 0 30 30 0 1\n"
        "0 1 forward 30 100 70 30 2\n"
        "0 2 gap 0 10 10 100 4\n"
        "0 2 forward 10 50 40 110 5\n"
        "0 2 gap 50 150 100 150 7"
    )
