from strobe.analyse.tables.data import data_queues
from tests.analyse.data_drawings import queues, step
from tests.helpers import make_run, text


def test_lengths_stand_with_their_step_and_their_use(tmp_path):
    lengths = queues((5, "a to b", 3, 4), (25, "a to b", 1, None), (45, "a to b", 0, 0))
    run = make_run(tmp_path, step(1, 0, 20, 10) + step(2, 20, 40, 2), lengths)
    assert text(data_queues.run(run)) == (
        "rank step ts_ns name length capacity use_ratio\n"
        "0 1 5000000 a to b 3 4 0.75\n"
        "0 2 25000000 a to b 1 - -\n"
        "0 - 45000000 a to b 0 0 -"
    )
