import pytest

from strobe.ingest.formats.collective_names import Told, judged, operation_of


def told(name: str = "", **more: str) -> Told:
    return Told(**{**dict.fromkeys(Told._fields, ""), "name": name, **more})


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


@pytest.mark.parametrize(
    ("name", "algorithm", "protocol"),
    [
        ("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "ring", "ll"),
        ("ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclWorkElem)", "ring", "simple"),
        ("ncclDevKernel_AllReduce_Sum_bf16_TREE_LL128(ncclDevComm*)", "tree", "ll128"),
        ("ncclDevKernel_AllReduce_Sum_f32_NVLS_SIMPLE(ncclDevComm*)", "nvls", "simple"),
        ("ncclDevKernel_Generic(ncclDevComm*, RING_LL)", "", ""),
        ("nccl:all_reduce", "", ""),
    ],
)
def test_algorithms_are_in_the_names_of_kernels(name, algorithm, protocol):
    found = judged(told(name))
    assert (found.algorithm, found.protocol) == (algorithm, protocol)


def test_sizes_come_from_types_or_from_shapes():
    assert judged(told(dtype="BFloat16")).element_bytes == 2
    assert judged(told(dtype="unheard of")).element_bytes == 0
    by_shapes = judged(told("gloo:all_reduce", dims="[[321271]]", dtypes='["float"]'))
    assert (by_shapes.bytes, by_shapes.dtype) == (4 * 321271, "float")
    assert judged(told("nccl:all_reduce")).bytes == -1
