"""What an operator computes, by its name."""

import pytest

from strobe.frameworks.families import _PATTERNS, family_of
from strobe.frameworks.graph_names import copying_program, graph_name
from strobe.model.schema import FAMILIES


def test_the_families_are_those_of_the_schema():
    assert {*_PATTERNS, "communication"} == {*FAMILIES}


@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("aten::addmm", "matmul"), ("aten::_scaled_mm", "matmul"), ("BatchMatMul", "matmul"),
        ("aten::mkldnn_convolution", "convolution"), ("Conv2D", "convolution"),
        ("aten::_scaled_dot_product_flash_attention", "attention"),
        ("aten::native_layer_norm_backward", "normalization"),
        ("aten::linalg_vector_norm", "reduction"), ("aten::_foreach_norm", "normalization"),
        ("aten::_thnn_fused_lstm_cell", "recurrent"), ("aten::max_pool2d", "pooling"),
        ("aten::_log_softmax_backward_data", "activation"), ("aten::tanh_backward", "activation"),
        ("SoftmaxCrossEntropyWithLogits", "loss"), ("aten::embedding_dense_backward", "embedding"),
        ("aten::add_", "elementwise"), ("RealDiv", "elementwise"), ("aten::log_normal_", "random"),
        ("aten::multinomial", "sampling"), ("aten::sort", "sort"), ("TopK", "top-k"),
        ("aten::cumsum", "cumulative sum"), ("aten::linalg_svd", "linear algebra"),
        ("aten::_cdist_forward", "distance"), ("aten::index_put_", "scatter"),
        ("aten::_unsafe_index", "gather"), ("aten::nonzero", "filter"), ("OneHot", "one-hot"),
        ("aten::_fused_adamw_", "update"), ("aten::_local_scalar_dense", "bookkeeping"),
        ("c10d::allreduce_", "communication"), ("all-reduce.3", "communication"),
        ("aten::is_nonzero", "bookkeeping"), ("dot.20", "matmul"),
        ("autograd::engine::evaluate_function: ConvolutionBackward0", "convolution"),
        ("my_library::attend", None), ("fusion.3", None), ("aten::broadcast_tensors", None),
    ],
)  # fmt: skip
def test_the_family_follows_from_the_whole_name(name, family):
    assert family_of(name) == family


@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("aten::erfinv", "special function"),  # no matrix inverse
        ("aten::cumprod", "scan"),  # no running sum: a triangular matrix does not help
        ("aten::searchsorted", None),  # no sort
        ("aten::values", None),  # no LU decomposition
        ("aten::detach_copy", None),  # no determinant
        ("aten::_resize_output_", None),  # no index_put
        ("aten::__or__", None),
    ],
)
def test_a_part_of_a_name_is_not_enough(name, family):
    assert family_of(name) == family


@pytest.mark.parametrize(
    ("name", "node", "family"),
    [
        ("fusion.3", "jit(train_step)/jvp(Net)/Dense_0/dot_general (train.py:7)", "matmul"),
        ("custom-call.1", "jit(train_step)/jvp(Net)/svd (train.py:7)", "linear algebra"),
        ("Sort", "Default/network-Net/Sort-op3", "sort"),
        ("copy.5", "jit_step/copy.5", "copy"),
        ("dot.20", "jit_train/unknown", "matmul"),  # where the graph does not tell, the name does
        ("aten::mm", None, "matmul"),
    ],
)
def test_in_a_graph_the_primitive_decides(name, node, family):
    assert family_of(name, node) == family


def test_a_name_in_a_graph_has_its_functions_and_its_line():
    found = graph_name("jit(train_step)/transpose(jvp(jit(svd)))/dot_general (/job/train.py:7)")
    assert found is not None and found.primitive == "dot_general"
    assert found.enclosing == ["train_step", "svd"] and found.place == "/job/train.py:7"
    assert graph_name("MatMul") is None
    assert copying_program("jit_remember/copy.5") == "remember"
    assert copying_program("jit(remember)/copy") is None
