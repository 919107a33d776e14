import pytest

from strobe.ingest.formats.kinds import kind_of
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
        ("user_annotation", "hccl:allgather", "collective"),
        ("gpu_user_annotation", "nccl:broadcast", "annotation"),
        ("cpu_op", "c10d::allreduce_", "op"),
        ("cpu_op", "record_param_comms", "op"),
        ("Operator", "ProfilerStep#5", "annotation"),
        ("Operator", "Optimizer.step#SGD.step", "annotation"),
        ("Operator", "enumerate(DataLoader)#It.__next__", "data"),
        ("Runtime", "cudaLaunchKernel", "runtime"),
        ("Memcpy", "Memcpy HtoD (Pageable -> Device)", "memcpy"),
        ("Memset", "Memset (Device)", "memset"),
        ("Kernel", "ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)", "collective"),
        ("kernel", "void (anonymous namespace)::multimem_all_reduce_kernel<float>", "collective"),
        ("kernel", "void vllm::cross_device_reduce_1stage<float, 8>", "collective"),
        ("kernel", "void at::native::reduce_kernel<512, 1>", "kernel"),
        ("cuda_runtime", "hipDeviceSynchronize", "sync"),
        ("cuda_driver", "cuStreamSynchronize", "sync"),
        ("cuda_runtime", "hipGraphLaunch", "runtime"),
        ("xpu_runtime", "zeEventHostSynchronize", "sync"),
        ("xpu_runtime", "urEnqueueKernelLaunch", "runtime"),
        ("mtia_runtime", "runFunction - job_prep_and_submit_for_execution", "runtime"),
        ("mtia_ccp_events", "add-dtype_Float", "kernel"),
        ("mtia_ccp_events", "dma_request", "memcpy"),
        ("overhead", "Lazy Function Loading", "mark"),
        ("something new", "x", "mark"),
    ],
)
def test_kinds(category, name, kind):
    assert kind_of(category, name) == kind
    assert kind in KINDS
