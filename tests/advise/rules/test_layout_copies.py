from strobe.advise.finding import Clear, Finding
from strobe.advise.rules import layout_copies
from tests.advise.operators import Op, training

LENGTHS = {"forward": 100, "backward": 80, "update": 20}


def copying(name, us, scope="net"):
    inside = (Op("aten::clone", us, scope=scope, inside=(Op("aten::copy_", us, scope=scope),)),)
    return Op(name, us, scope=scope, inside=inside)


def judged(folder, **ops):
    return layout_copies.check(training(folder, lengths_us=LENGTHS, **ops))


def test_copies_that_the_model_calls_are_the_cost(tmp_path):
    verdict = judged(
        tmp_path, forward=[copying("aten::contiguous", 40, "net.a"), Op("aten::mm", 9)]
    )
    assert isinstance(verdict, Finding)
    assert abs(verdict.share - 0.9 * 40 / 200) < 1e-6 and verdict.where == "net.a"
    assert verdict.title == "Copying tensors takes 20% of step time."
    assert verdict.why == (
        "The model makes 3 copies per step. The most expensive ones are in net.a."
    )


def test_copies_inside_other_layers_are_their_own_work(tmp_path):
    verdict = judged(
        tmp_path,
        forward=[Op("aten::conv2d", 50, inside=(Op("aten::copy_", 45),))],
        update=[copying("aten::clone", 19)],
    )
    assert isinstance(verdict, Clear)


def test_a_little_copying_is_part_of_any_model(tmp_path):
    assert isinstance(judged(tmp_path, forward=[copying("aten::contiguous", 13)]), Clear)
