from strobe.analyse.comparison.operators import matched
from tests.helpers import make_run

STEPS = """
    0/steps step:step~1 0..1000 step=1
    0/steps step:step~2 1000..2000 step=2
"""


def drawn(folder, *operators):
    """Operators (module, name, shapes, length), once in each of two steps."""
    lines, shapes = STEPS.strip().splitlines(), []
    for step in (1, 2):
        now = (step - 1) * 1000
        for scope, name, shape, length in operators:
            lines.append(f"0/main op:{name} {now}..{now + length} step={step} scope={scope}")
            shapes.append((len(lines) - 1, shape))
            now += length
    args = {"event_id": [id for id, _ in shapes], "input_shapes": [shape for _, shape in shapes],
            "is_backward": [False] * len(shapes)}  # fmt: skip
    return make_run(folder, "\n".join(lines), {"op_args": args})


def test_operators_are_matched_by_module_name_and_shapes(tmp_path):
    a = drawn(tmp_path / "a", ("net.a", "mm", "[[2]]", 100), ("net.b", "mm", "[[2]]", 50))
    b = drawn(tmp_path / "b", ("net.a", "mm", "[[2]]", 160), ("net.b", "mm", "[[2]]", 50))
    first, second = matched(a, b)
    assert (first.part, first.scope, first.name, first.shapes) == (
        "forward", "net.a", "mm", "[[2]]")  # fmt: skip
    assert (first.ns_a, first.ns_b, first.difference_ns) == (100, 160, 60)
    assert (first.calls_a, first.calls_b) == (1, 1)
    assert (second.scope, second.difference_ns) == ("net.b", 0)


def test_other_shapes_are_matched_by_module_and_name(tmp_path):
    a = drawn(tmp_path / "a", ("net", "mm", "[[2]]", 100), ("net", "mm", "[[3]]", 10))
    b = drawn(tmp_path / "b", ("net", "mm", "[[4]]", 300), ("net", "mm", "[[3]]", 10))
    first, second = matched(a, b)
    assert (first.shapes, first.ns_a, first.ns_b) == (None, 100, 300)
    assert (second.shapes, second.difference_ns) == ("[[3]]", 0)


def test_operators_of_one_run_only_are_against_nothing(tmp_path):
    a = drawn(tmp_path / "a", ("net", "mm", "[[2]]", 100))
    b = drawn(tmp_path / "b", ("net", "bmm", "[[2]]", 70))
    assert [(row.name, row.ns_a, row.ns_b) for row in matched(a, b)] == [
        ("mm", 100, 0), ("bmm", 0, 70)]  # fmt: skip


def test_nothing_is_matched_unless_both_have_operators(tmp_path):
    a = drawn(tmp_path / "a", ("net", "mm", "[[2]]", 100))
    assert matched(a, make_run(tmp_path / "b", STEPS)) == []
