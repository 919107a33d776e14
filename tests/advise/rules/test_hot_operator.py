import pytest

from strobe.advise.finding import Clear, Finding
from strobe.advise.rules import hot_operator
from tests.advise.operators import Op, training

LENGTHS = {"forward": 100, "backward": 80, "update": 20}  # a step of 200 us


def judged(folder, **ops):
    return hot_operator.check(training(folder, lengths_us=LENGTHS, **ops))


def test_an_unusual_operator_with_its_backward_is_hot(tmp_path):
    verdict = judged(
        tmp_path,
        forward=[Op("aten::linear", 30), Op("aten::sort", 60, [[256, 512]], scope="net.pick")],
        backward=[Op("autograd::engine SortBackward0", 21, of=1, scope="net.pick")],
    )
    assert isinstance(verdict, Finding)
    # 81 us of 200, nine tenths of it.
    assert abs(verdict.share - 0.9 * 81 / 200) < 1e-6
    assert abs(verdict.expected_speedup - 1 / (1 - verdict.share)) < 1e-9
    assert verdict.title == "Training spends 40% of step time on the operator `sort` in net.pick."
    assert verdict.why.startswith("In a typical step of 200 µs, the operator `sort` takes 81.0")
    assert verdict.where == "net.pick" and "topk" in verdict.fixes[0]
    assert verdict.evidence[0].rows[0]["name"] == "aten::sort"


@pytest.mark.parametrize(
    "name",
    ["addmm", "linear", "conv2d", "scaled_dot_product_attention", "layer_norm", "max_pool2d",
     "gelu", "dropout", "lstm", "embedding", "cross_entropy_loss", "mul", "_log_softmax",
     "batch_norm", "einsum", "bernoulli_", "_scaled_dot_product_flash_attention_for_cpu",
     "_sparse_mm", "_sparse_addmm"],
)  # fmt: skip
def test_the_usual_work_of_a_network_is_never_hot(tmp_path, name):
    assert isinstance(judged(tmp_path, forward=[Op(f"aten::{name}", 95)]), Clear)


@pytest.mark.parametrize(
    "name", ["sort", "_cdist_forward", "linalg_svd", "index_put_", "scatter_add", "cumsum",
             "unique2", "nonzero", "topk", "gather", "multinomial", "histc", "erfinv"],
)  # fmt: skip
def test_others_are(tmp_path, name):
    assert isinstance(judged(tmp_path, forward=[Op(f"aten::{name}", 95)]), Finding)


@pytest.mark.parametrize(
    "name",
    ["c10d::allreduce_", "c10d::_allgather_base_", "_c10d_functional::wait_tensor",
     "c10d::barrier", "mindspore::AllReduce", "aten::synchronize", "c10d::send", "gloo::broadcast"],
)  # fmt: skip
def test_communication_and_waits_are_never_hot(tmp_path, name):
    for part in ("forward", "backward"):
        assert isinstance(judged(tmp_path / part, **{part: [Op(name, 75)]}), Clear)


@pytest.mark.parametrize("name", ["aten::sort", "aten::broadcast_tensors", "aten::logaddexp"])
def test_an_operator_that_only_sounds_like_it_is(tmp_path, name):
    assert isinstance(judged(tmp_path, forward=[Op(name, 95)]), Finding)


@pytest.mark.parametrize(
    ("name", "fix"),
    [("cumsum", "triangular matrix"), ("cumprod", "Compute `cumprod`"),
     ("erfinv", "Compute `erfinv`"), ("searchsorted", "Compute `searchsorted`"),
     ("linalg_inv", "only every few steps, or approximate it")],
)  # fmt: skip
def test_the_first_fix_is_that_of_the_operators_family(tmp_path, name, fix):
    verdict = judged(tmp_path, forward=[Op(f"aten::{name}", 95)])
    assert isinstance(verdict, Finding) and fix in verdict.fixes[0]
    assert ("triangular" in verdict.fixes[0]) == (name == "cumsum")
    assert ("approximate" in verdict.fixes[0]) == (name == "linalg_inv")


def test_one_operator_in_many_modules_is_put_together(tmp_path):
    forward = [Op("aten::cumsum", 12, scope=f"net.{n}") for n in range(5)]
    verdict = judged(tmp_path, forward=forward)
    assert isinstance(verdict, Finding)
    assert verdict.title == (
        "Training spends 30% of step time on the operator `cumsum` in 5 modules."
    )


def test_what_is_small_in_the_update_or_no_operator_is_not_hot(tmp_path):
    verdict = judged(
        tmp_path,
        forward=[Op("aten::sort", 39), Op("compile_attempt_0", 50)],
        update=[Op("aten::sort", 19)],
    )
    assert isinstance(verdict, Clear)
    assert "the operator `sort`, which takes 20%" in verdict.why.replace("19", "20")


def test_a_one_hot_product_in_a_graph_of_mindspore_counts_with_its_backward(tmp_path):
    one_hot = Op("OneHot", 10, [[8, 4], [], []], scope="net.tok")
    product = Op("MatMul", 15, [[32, 1000], [1000, 64]], scope="net.tok")
    gradient = Op("MatMul", 15, [[32, 1000], [32, 64]], scope="net.head")
    other = Op("MatMul", 60, [[32, 64], [64, 10]], scope="net.head")
    verdict = judged(tmp_path / "a", forward=[one_hot, product, other], backward=[gradient])
    assert isinstance(verdict, Finding)
    assert verdict.title == (
        "Training spends 20% of step time on a product with a one-hot matrix in 2 modules."
    )
    few = Op("MatMul", 15, [[32, 10], [10, 64]], scope="net.tok")
    assert isinstance(judged(tmp_path / "b", forward=[one_hot, few, other]), Clear)


def test_a_one_hot_product_without_graphs_counts_with_the_copies_of_its_table(tmp_path):
    """MindSpore copies the table for each sample, if the product has more than two dimensions."""
    one_hot = Op("OneHot", 5, [[8, 4], [], []], scope=None)
    copied = Op("BroadcastTo", 20, [[1000, 64]], scope="Expand._MatMulExt")
    product = Op("BatchMatMul", 10, [[8, 4, 1000], [8, 1000, 64]], scope="Expand._MatMulExt")
    other = Op("MatMul", 60, [[32, 64], [64, 10]], scope=None)
    gradient = Op("MatMul", 15, [[1000, 32], [32, 64]], scope="Expand._MatMulExt")
    verdict = judged(tmp_path, forward=[one_hot, copied, product, other], backward=[gradient])
    assert isinstance(verdict, Finding) and "one-hot matrix" in verdict.title
    assert abs(verdict.share - 0.9 * 50 / 200) < 1e-6


def test_a_one_hot_product_in_a_program_of_jax_counts_with_its_backward(tmp_path):
    step, at = "jit(train_step)", "(/job/train.py:20)"
    made = Op("compare.1", 10, [[32]], scope=None,
              node=f"{step}/jvp(Net)/jit(_one_hot)/convert_element_type {at}")  # fmt: skip
    product = Op("fusion.2", 30, [[32, 9000], [9000, 16]], scope=None,
                 node=f"{step}/jvp(Net)/dot_general {at}")  # fmt: skip
    back = Op("dot.3", 20, [[32, 9000], [32, 16]], scope=None,
              node=f"{step}/transpose(jvp(Net))/transpose (/job/train.py:21)")  # fmt: skip
    other = Op("fusion.4", 25, [[32, 64], [64, 64]], scope=None,
               node=f"{step}/jvp(Net)/Dense_0/dot_general (/job/train.py:31)")  # fmt: skip
    verdict = judged(tmp_path / "a", forward=[made, product, other], backward=[back])
    assert isinstance(verdict, Finding) and "a product with a one-hot matrix" in verdict.title
    assert verdict.where == "train.py:20"
    assert sum(row["self_ns"] for row in verdict.evidence[0].rows) == 60_000
    # Targets of a loss are one-hot as well, and no product takes them.
    assert isinstance(judged(tmp_path / "b", forward=[made, other]), Clear)


def test_a_one_hot_product_is_a_lookup(tmp_path):
    one_hot = Op("aten::one_hot", 10, [[32]], inside=(Op("aten::scatter_", 8, [[32, 1000], [32]]),))
    product = Op("aten::matmul", 50, [[32, 1000], [1000, 64]],
                 inside=(Op("aten::mm", 48, [[32, 1000], [1000, 64]]),))  # fmt: skip
    verdict = judged(tmp_path / "a", forward=[one_hot, product])
    assert isinstance(verdict, Finding)
    assert "a product with a one-hot matrix in net" in verdict.title
    assert abs(verdict.share - 0.9 * 60 / 200) < 1e-6 and "embedding" in verdict.fixes[0]
    # A product of other sizes beside it is none of its affair.
    other = Op("aten::matmul", 50, [[32, 128], [128, 64]])
    assert isinstance(judged(tmp_path / "b", forward=[one_hot, other]), Clear)


def test_a_large_dense_kernel_is_told_and_patches_are_not(tmp_path):
    large = Op("aten::mkldnn_convolution", 80, [[8, 16, 40, 40], [16, 16, 21, 21]])
    verdict = judged(tmp_path / "a", forward=[large])
    assert isinstance(verdict, Finding) and "a 21×21 kernel" in verdict.title
    assert "several small kernels" in verdict.fixes[0]
    patches = Op("aten::mkldnn_convolution", 80, [[8, 3, 224, 224], [192, 3, 16, 16]])
    depthwise = Op("aten::mkldnn_convolution", 80, [[8, 16, 40, 40], [16, 1, 21, 21]])
    gradient = Op("Conv2DBackpropFilter", 80, [[8, 16, 28, 28], [8, 6, 31, 31], []])
    assert isinstance(judged(tmp_path / "d", backward=[gradient]), Clear)
    assert isinstance(judged(tmp_path / "b", forward=[patches]), Clear)
    assert isinstance(judged(tmp_path / "c", forward=[depthwise]), Clear)


def test_an_operator_of_a_compiled_graph_is_judged_by_what_it_was_made_of(tmp_path):
    decomposed = Op("custom-call.3", 90, scope=None,
                    node="jit(train_step)/jvp(Net)/svd (/job/train.py:24)")  # fmt: skip
    verdict = judged(tmp_path, forward=[decomposed])
    assert isinstance(verdict, Finding) and "svd" in verdict.title
    assert verdict.where == "train.py:24"
    usual = Op("fusion.4", 90, scope=None, node="jit(train_step)/jvp(Net)/dot_general (train.py:7)")
    assert isinstance(judged(tmp_path / "usual", forward=[usual]), Clear)


def test_in_a_compiled_graph_what_a_primitive_comes_down_to_is_its_cost_too(tmp_path):
    verdict = judged(
        tmp_path / "mindspore",
        forward=[Op("Sort", 30, node="Default/network-Net/Sort-op0")],
        backward=[Op("TopK", 20, node="Gradients/Default/network-Net/Grad_Sort/TopK-op0"),
                  Op("MatMul", 20, node="Gradients/Default/network-Net/Grad_MatMul/MatMul-op1")],
    )  # fmt: skip
    assert isinstance(verdict, Finding)
    assert verdict.title == "Training spends 25% of step time on the operator `sort` in net."
    verdict = judged(
        tmp_path / "jax",
        forward=[Op("svd.0", 30, node="jit(train_step)/jvp(jit(svd))/svd")],
        backward=[Op("fusion.3", 20, node="jit(train_step)/transpose(jvp(jit(svd)))/dot_general")],
    )
    assert isinstance(verdict, Finding)
    assert verdict.title == "Training spends 25% of step time on the operator `svd` in net."


def test_a_function_of_the_users_own_may_have_the_name_of_a_primitive(tmp_path):
    own = Op("dot.1", 90, node="jit(train_step)/jit(sort)/dot_general")
    assert isinstance(judged(tmp_path, forward=[own]), Clear)


def test_what_a_librarys_function_is_made_of_belongs_together(tmp_path):
    """An inverse, none of whose parts takes a fifth of the step."""
    inside, line = "jit(train_step)/jvp(jit(inv))/jit(solve)", "(/job/train.py:32)"
    parts = [
        Op("lu.2", 30, node=f"{inside}/lu {line}"),
        Op("triangular_solve.6", 20, node=f"{inside}/jit(_lu_solve)/triangular_solve {line}"),
        Op("while.1", 10, node=f"{inside}/while {line}"),
        Op("dot.1", 30, node="jit(train_step)/jvp()/dot_general (/job/train.py:40)"),
    ]
    verdict = judged(tmp_path, forward=parts)
    assert isinstance(verdict, Finding) and verdict.where == "train.py:32"
    assert "the operator `inv`" in verdict.title
    assert "at train.py:32 only every few steps" in verdict.fixes[0]
    # Where the unusual is the smaller part of a function, it stands for itself.
    mostly = [parts[0], Op("dot.2", 60, node=f"{inside}/dot_general {line}")]
    assert isinstance(judged(tmp_path / "b", forward=mostly), Clear)


def test_a_compiled_program_that_calls_back_to_python(tmp_path):
    called = Op("pure_callback.1", 60, scope=None, node="jit(sgd)/pure_callback (/job/train.py:17)")
    usual = Op("dot.1", 40, scope=None, node="jit(sgd)/jvp()/dot_general (/job/train.py:22)")
    verdict = judged(tmp_path, forward=[called, usual])
    assert verdict.title == "Training spends 30% of step time on the operator `pure_callback`."
    assert verdict.where == "train.py:17" and "jax.numpy" in verdict.fixes[0]
