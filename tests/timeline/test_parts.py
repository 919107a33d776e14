"""Python frames and annotations have rows of their own, and stay joined to what they surround."""

from strobe.timeline.area import area
from strobe.timeline.details import details, position_of, row_of
from tests.timeline.drawn import index_of

# A thread whose operators lie in Python frames, one with frames alone, a stream with an annotation.
DRAWING = """
    0/watch    python:run       0..100
    0/main     python:main      0..100
    0/main     python:train     0..90   parent=1
    0/main     op:aten::linear  10..60  parent=2
    0/main     python:hook      20..40  parent=3
    0/main     op:aten::mm      22..38  parent=4
    0/s7@cuda:0 annotation:step 0..80
    0/s7@cuda:0 kernel:gemm     30..50  launcher=5 parent=6
    0/steps    step:step~1      0..100
"""


def tracks(index):
    return [(t["device"], t["name"], t.get("part"), t["rows"]) for t in index.about["tracks"]]


def row(index, event):
    return row_of(index, position_of(index, event))


def test_operators_and_kernels_come_before_what_surrounds_them(tmp_path):
    index = index_of(tmp_path, DRAWING)
    assert tracks(index) == [
        ("steps", "steps", None, 1),
        ("cuda:0", "s7", None, 1),
        ("cuda:0", "s7", "annotations", 1),
        ("cpu", "main", None, 2),
        ("cpu", "main", "python", 3),
        ("cpu", "watch", "python", 1),
    ]
    assert len({track["id"] for track in index.about["tracks"]}) == 6
    # Depth counts within a part alone.
    assert [row(index, event) for event in (3, 5, 1, 2, 4)] == [3, 4, 5, 6, 7]
    assert [row(index, event) for event in (7, 6)] == [1, 2]


def test_a_frame_knows_what_lies_in_it_on_the_other_part(tmp_path):
    index = index_of(tmp_path, DRAWING)
    train = details(index, position_of(index, 2))
    assert train["first_inside"]["name"] == "aten::linear"
    assert [flow["name"] for flow in train["effects"]] == ["gemm"]
    inner = details(index, position_of(index, 5))
    assert [one["name"] for one in inner["around"]] == ["hook", "aten::linear", "train", "main"]
    linear = details(index, position_of(index, 3))
    assert linear["first_inside"]["name"] == "hook"


def test_self_times_of_an_area_are_without_children_of_the_other_part(tmp_path):
    index = index_of(tmp_path, DRAWING)
    own = {name: self_ns for name, _, _, _, self_ns, *_ in area(index, [5, 6, 7], 0, 100)["rows"]}
    assert own == {"main": 10, "train": 40, "hook": 4}
