from strobe.advise import layout_copies
from strobe.advise.finding import Clear, Finding
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
    assert verdict.title == "copying tensors takes 20 % of step time (3 copies a step)"


def test_copies_inside_other_layers_are_their_own_work(tmp_path):
    verdict = judged(
        tmp_path,
        forward=[Op("aten::conv2d", 50, inside=(Op("aten::copy_", 45),))],
        update=[copying("aten::clone", 19)],
    )
    assert isinstance(verdict, Clear)


def test_a_little_copying_is_part_of_any_model(tmp_path):
    assert isinstance(judged(tmp_path, forward=[copying("aten::contiguous", 13)]), Clear)


def copy(number, us, node="jit_remember/copy", megabytes=36):
    moved = int(2 * megabytes * 2**20)
    return Op(
        f"copy.{number}", us, [[49152, 192]], scope=None, node=f"{node}.{number}", bytes=moved
    )


def test_arguments_that_a_program_may_not_overwrite_are_copied(tmp_path):
    usual = Op("dot.1", 60, [[8, 8]], scope=None, node="jit(learn)/dot_general (/job/train.py:9)")
    made = training(tmp_path, lengths_us=LENGTHS, forward=[usual, copy(5, 30), copy(8, 10)])
    verdict = layout_copies.check(made)
    assert isinstance(verdict, Finding)
    assert abs(verdict.share - 0.95 * 40 / 200) < 1e-6
    assert verdict.title == (
        "remember copies arrays that it was given before it changes them, 20 % of step time (up to "
        "36.0 MiB each)"
    )
    assert verdict.fixes[0].startswith("jax.jit(remember, donate_argnums=...)")


def test_small_copies_of_a_compiler_and_those_of_the_script_are_none_of_these(tmp_path):
    small = judged(tmp_path / "a", forward=[copy(5, 30, megabytes=0.25)])
    own = judged(tmp_path / "b", forward=[copy(5, 30, node="jit(f)/jvp()/copy")])
    assert isinstance(small, Clear) and isinstance(own, Clear)
