"""Scopes, directions and kinds from names that JAX and XLA give."""

import pytest

from strobe.ingest.formats.xplane.names import (
    Place,
    Seen,
    device_of,
    device_of_allocator,
    direction,
    kind_of,
    scope_of,
)


@pytest.mark.parametrize(
    ("op_name", "scope", "way"),
    [
        ("jit(train_step)/jvp(Net)/Block_0/Dense_1/dot_general", "Net.Block_0.Dense_1", "forward"),
        ("jit(step)/transpose(jvp(Net))/Block_0/Dense_1/mul", "Net.Block_0.Dense_1", "backward"),
        ("jit(step)/jit(main)/jvp(Net)/Block_0/jit(relu)/max", "Net.Block_0", "forward"),
        ("jit(step)/transpose(jvp())/dot_general", "", "backward"),
        ("jit(step)/vmap(jvp(Net))/while/body/checkpoint/Dense_0/add", "Net.Dense_0", "forward"),
        ("jit(f)/transpose(jvp(Net/inner))/rematted_computation/mul", "Net.inner", "backward"),
        ("jit(f)/my(scope)/mul", "my(scope)", "other"),
        ("jit(f)/transpose", "", "other"),
        ("jit(f)/layer/transpose[permutation=(1, 0)]", "layer", "other"),
        ("jit(f)/(transpose(jvp())/dot:jvp(layer)/add)", "", "backward"),
        ("add", "", "other"),
        ("", "", ""),
        ("(" * 5000, "", "other"),
        ("jvp(" * 500 + "x" + ")" * 500 + "/add", "x", "forward"),
    ],
)
def test_op_names(op_name, scope, way):
    assert scope_of(op_name) == scope
    assert direction(op_name) == way


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("$train.py:12 step", "python"), ("train", "annotation"), ("PjitFunction(f)", "runtime"),
        ("hipModuleLaunchKernel", "runtime"), ("cuStreamSynchronize", "sync"),
        ("hipStreamWaitEvent", "runtime"), ("CommonPjRtBuffer::Await", "sync"),
        ("Wait for usage holds", "runtime"), ("[0] CommonPjRtLoadedExecutable::Execute", "runtime"),
        ("Iterator::Prefetch", "data"), ("Copy weights", "annotation"), ("customer", "annotation"),
        ("CopyToDevice", "runtime"),
    ],
)  # fmt: skip
def test_kinds_on_the_host(name, kind):
    assert kind_of(Place("cpu", "python"), Seen(name)) == kind


@pytest.mark.parametrize(
    ("line", "name", "kind"),
    [
        ("Stream #1(Kernel)", "fusion", "kernel"), ("Stream #1(MemcpyH2D)", "x", "memcpy"),
        ("Stream #1(Memset)", "x", "memset"), ("Stream #1", "MemcpyD2H", "memcpy"),
        ("Stream #1", "ncclDevKernel_AllReduce_Sum_f32_RING_LL", "collective"),
        ("Stream #1", "__amd_rocclr_fillBufferAligned.kd", "memset"),
        ("XLA Ops", "reduce-scatter.7", "collective"), ("XLA Ops", "reduce.7", "kernel"),
        ("XLA Ops", "all-gather-start.1", "collective"), ("XLA Ops", "copy_fusion", "kernel"),
        ("XLA Ops", "send.3", "collective"), ("XLA Ops", "sender_fusion", "kernel"),
        ("XLA Modules", "jit_step(7)", "annotation"), ("Steps", "3", "annotation"),
    ],
)  # fmt: skip
def test_kinds_on_a_device(line, name, kind):
    assert kind_of(Place("gpu:0", line), Seen(name)) == kind


@pytest.mark.parametrize(
    ("plane", "device"),
    [
        ("/device:GPU:3", "gpu:3"), ("/device:TPU:0", "tpu:0"), ("/host:CPU", "cpu"),
        ("/device:TPU:0 SparseCore 1", "tpu:0 sparsecore:1"), ("/host:CUPTI", "cpu"),
        ("/device:CUSTOM:MOSAIC:1", "custom:mosaic:1"), ("Task Environment", None), ("other", None),
    ],
)  # fmt: skip
def test_devices(plane, device):
    assert device_of(plane) == device


def test_allocators():
    assert device_of_allocator("GPU_3_bfc") == "gpu:3"
    assert device_of_allocator("cuda_host_bfc") == "cpu"
