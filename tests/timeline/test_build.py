from strobe.timeline.details import brief, position_of
from strobe.timeline.index import make_index
from tests.helpers import make_run

DRAWING = """
    1/t        op:b      5..6
    0/loader   op:fetch  0..9
    0/s7@cuda:0 kernel:k 0..3
    0/steps    step:step~1 0..20
    0/steps    phase:forward 0..20 parent=3
    0/s2@cuda:0 kernel:k 1..2
"""


def test_tracks_lie_by_rank_steps_first_then_devices_then_threads(tmp_path):
    run = make_run(tmp_path, DRAWING)
    index = make_index(run)
    run.close()
    assert [(t["rank"], t["device"], t["name"], t["rows"]) for t in index.about["tracks"]] == [
        (0, "steps", "steps", 2),
        (0, "cuda:0", "s2", 1),
        (0, "cuda:0", "s7", 1),
        (0, "cpu", "loader", 1),
        (1, "cpu", "t", 1),
    ]
    assert index.rows == 6
    assert brief(index, position_of(index, 4))["row"] == 1


def test_names_of_every_alphabet_come_back(tmp_path):
    run = make_run(tmp_path, "0/t op:算子 0..1\n0/t op:<b>&~x 2..3")
    index = make_index(run)
    run.close()
    assert sorted(index.name(code) for code in range(index.names)) == ["<b>& x", "算子"]
