import pytest

from strobe.advise.finding import CannotTell, Clear, Finding
from strobe.advise.rules import tiny_operators
from strobe.advise.training import Lines, Training
from strobe.frameworks import MINDSPORE
from tests.advise.drawings import same, steps
from tests.advise.operators import Op, training
from tests.helpers import make_run

LENGTHS = {"forward": 1000, "backward": 600, "update": 400}  # 2 ms


def judged(folder, forward, **more):
    found = training(folder, lengths_us=LENGTHS, forward=forward, **more)
    return tiny_operators.check(found)


def test_a_loop_of_tiny_calls_costs_its_part_of_each_phase(tmp_path):
    # Of the 1000 us that the calls of the forward take up, 800 are the loop's: 4 of 5 of the phase.
    row = Op("aten::linear", 3, [[64], [64, 64]], scope="net.row")
    back = Op("autograd::engine LinearBackward0", 5, of=0)
    verdict = judged(
        tmp_path,
        [*[row] * 160, Op("aten::conv2d", 198)],
        between_us=2,
        backward=[back, Op("aten::mm", 5), Op("aten::mm", 5)],
    )
    assert isinstance(verdict, Finding)
    forward, backward = 1000 * 800 / 1000, 600 / 3
    assert abs(verdict.share - 0.95 * (forward + backward) / 2000) < 0.01
    assert verdict.where == "net.row" and "160 calls per step" in verdict.why
    assert verdict.title == (
        "A Python loop in net.row spends 48% of step time calling tiny operators."
    )
    assert verdict.fixes[0] == "Replace the loop in net.row with operators on whole tensors"


def test_calls_of_a_loop_count_as_long_as_they_are(tmp_path):
    # 120 of 2 us and 40 of 15: 840 of 1000 us. Half of them are no longer than 2 us.
    short, long = Op("aten::mm", 2, [[8, 8]]), Op("aten::mm", 15, [[8, 8]])
    verdict = judged(tmp_path, [*[short] * 120, *[long] * 40, Op("aten::conv2d", 160)],
                     update=[Op("aten::add", 400)])  # fmt: skip
    assert isinstance(verdict, Finding)
    assert verdict.share == pytest.approx(0.95 * 840 / 2000, abs=0.001)


def test_where_nothing_tells_whose_backward_it_is_what_comes_as_often_counts(tmp_path):
    row, back = Op("Mul", 3, scope=None), Op("MulGrad", 3, scope=None)
    verdict = judged(
        tmp_path,
        [*[row] * 160, Op("MatMul", 198, scope=None)],
        between_us=2,
        backward=[*[back] * 80, Op("MatMul", 198, scope=None)],
        update=[Op("ApplyMomentum", 100)],
    )
    assert isinstance(verdict, Finding) and "160 calls per step" in verdict.why
    # 800 of 1000 us of the forward calls, and 400 of 600 of the backward ones.
    assert verdict.share == pytest.approx(0.95 * (800 + 400) / 2000, abs=0.01)


def test_the_arithmetic_itself_is_not_lost(tmp_path):
    # 160 products of 100,000 FLOP take 400 us at 40 a ns.
    row = Op("aten::mm", 5, [[8, 8]], flops=100_000)
    verdict = judged(tmp_path, [row] * 160)
    assert isinstance(verdict, Finding)
    assert abs(verdict.share - (0.95 * 1000 - 400) / 2000) < 0.01


def test_what_is_long_rare_or_in_many_modules_is_no_loop(tmp_path):
    long = [Op("aten::conv2d", 31, [[8]])] * 30
    rare = [Op("aten::add", 5, [[n]]) for n in range(12)] * 15
    modules = [Op("aten::add", 5, [[8]], scope=f"net.{n}") for n in range(150)]
    for name, forward in (("a", long), ("b", rare), ("c", modules)):
        assert isinstance(judged(tmp_path / name, forward), Clear), name


def test_what_a_compiled_program_repeats_by_itself_is_no_loop_in_python(tmp_path):
    inside = "jit(train)/jvp()/while/body/closed_call/dot_general (/job/train.py:10)"
    unrolled = "jit(train)/jvp()/dot_general (/job/train.py:10)"
    by_compiler = "jit_train/dot.20"
    cases = ((inside, Clear), (unrolled, Finding), (by_compiler, Clear))
    for number, (node, kind) in enumerate(cases):
        calls = [Op("dot.20", 5, scope=None, node=node)] * 160
        assert isinstance(judged(tmp_path / str(number), calls), kind), node


def test_in_mindspore_longer_and_fewer_calls_are_a_loop(tmp_path):
    # To call one takes as long there as it runs: 60 of 80 us, in a forward pass of 10 ms.
    found = training(tmp_path, lengths_us={"forward": 10_000, "backward": 9_600, "update": 400},
                     forward=[Op("MatMul", 80, scope="net")] * 60, between_us=80)  # fmt: skip
    assert isinstance(tiny_operators.check(found), Clear)
    found.framework = MINDSPORE
    verdict = tiny_operators.check(found)
    assert isinstance(verdict, Finding) and "60 calls per step" in verdict.why
    assert verdict.share == pytest.approx(0.95 * 10_000 / 20_000, abs=0.001)


def test_a_layer_for_each_piece_of_a_tensor_is_a_loop(tmp_path):
    layers = [Op("aten::embedding", 3, [[8]], scope=f"net.tables.{n}") for n in range(100)]
    pieces = [Op("aten::select", 1, [[8, 100]])] * 100
    both = [op for pair in zip(pieces, layers, strict=True) for op in pair]
    verdict = judged(tmp_path / "a", both)
    assert isinstance(verdict, Finding) and "200 calls per step" in verdict.why
    assert isinstance(judged(tmp_path / "b", layers), Clear)  # a deep model is no loop


def test_a_layer_that_loops_inside_is_one_call(tmp_path):
    inner = tuple(Op("aten::add", 5, [[8]]) for _ in range(150))
    assert isinstance(judged(tmp_path, [Op("aten::gru", 800, inside=inner)]), Clear)


def test_without_operators_it_cannot_tell(tmp_path):
    light = Training(make_run(tmp_path, steps(*same({"forward": 5}, 9))))
    assert isinstance(tiny_operators.check(light), CannotTell)


def kernels(count: int, length_ns: int, period_ns: int) -> str:
    """Kernels on a device in each of twelve steps of 4 ms, each launched just before it runs."""
    lines = []
    for step in range(12):
        for number in range(count):
            start = step * 4_000_000 + number * period_ns
            at = len(lines) + 24
            lines.append(f"0/main runtime:launch {start}..{start + 500} step={step + 1}")
            lines.append(f"0/s7@cuda:0 kernel:k {start + 1000}..{start + 1000 + length_ns} "
                         f"step={step + 1} launcher={at}")  # fmt: skip
    return "\n".join(lines)


def on_device(folder, drawing):
    return tiny_operators.check(
        Training(make_run(folder, steps(*same({"forward": 4000}, 12)) + drawing))
    )


def test_on_a_device_tiny_kernels_that_wait_for_their_launch(tmp_path):
    verdict = on_device(tmp_path / "a", kernels(300, 3_000, 12_000))
    assert isinstance(verdict, Finding) and "300 kernels per step" in verdict.why
    assert verdict.share > 0.5
    assert isinstance(on_device(tmp_path / "b", kernels(300, 11_500, 12_000)), Clear)
    assert isinstance(on_device(tmp_path / "c", kernels(60, 3_000, 60_000)), Clear)


def test_an_update_written_by_hand_is_a_loop_of_the_scripts_own(tmp_path):
    lengths = {"forward": 1000, "backward": 600, "update": 400}
    made = training(tmp_path, lengths_us=lengths, update=[Op("Mul", 2)] * 160)
    verdict = tiny_operators.check(made)
    assert isinstance(verdict, Finding)
    assert verdict.share == pytest.approx(0.95 * 400 / 2000, rel=0.05)
    # An optimizer is none of the script's: unfused-optimizer judges it.
    made = training(tmp_path / "b", lengths_us=lengths, update=[Op("Mul", 2)] * 160)
    made.place = lambda what, **_: Lines("/job/train.py", 7) if what == "update" else None
    assert isinstance(tiny_operators.check(made), Clear)
