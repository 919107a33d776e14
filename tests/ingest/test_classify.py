import pytest

from strobe.ingest.arguments import operation_of
from strobe.ingest.classify import kind_of
from strobe.model.schema import KINDS


@pytest.mark.parametrize(
    ("category", "name", "kind"),
    [
        ("cpu_op", "aten::mm", "op"),
        ("Operator", "aten::mm", "op"),
        ("cpu_op", "strobe:12", "module"),
        ("cpu_op", "strobe:twelve", "op"),
        ("kernel", "sgemm_128x64", "kernel"),
        ("kernel", "ncclDevKernel_AllReduce_Sum_f32", "collective"),
        ("gpu_memcpy", "Memcpy HtoD", "memcpy"),
        ("gpu_memset", "Memset", "memset"),
        ("cuda_runtime", "cudaLaunchKernel", "runtime"),
        ("cuda_driver", "cuLaunchKernel", "runtime"),
        ("cuda_runtime", "cudaStreamSynchronize", "sync"),
        ("cuda_sync", "Stream Sync", "sync"),
        ("python_function", "train.py(3): step", "python"),
        ("python_function", "Python GC", "gc"),
        ("user_annotation", "my region", "annotation"),
        ("user_annotation", "enumerate(DataLoader)#_Iter.__next__", "data"),
        ("user_annotation", "gloo:all_reduce", "collective"),
        ("user_annotation", "nccl:broadcast", "collective"),
        ("cpu_op", "c10d::allreduce_", "op"),
        ("something new", "x", "mark"),
    ],
)
def test_kinds(category, name, kind):
    assert kind_of(category, name) == kind
    assert kind in KINDS


@pytest.mark.parametrize(
    ("name", "operation"),
    [
        ("gloo:all_reduce", "all_reduce"),
        ("ncclDevKernel_AllReduce_Sum_f32_RING", "all_reduce"),
        ("_allgather_base", "all_gather"),
        ("reduce_scatter_tensor_coalesced", "reduce_scatter"),
        ("all_to_allv", "all_to_all"),
        ("something else", "something else"),
    ],
)
def test_operations_have_one_name_each(name, operation):
    assert operation_of(name) == operation
