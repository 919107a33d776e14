"""PyTorch, and its plug-in for Ascend."""

from strobe.frameworks.framework import Compiler, DebugMode, DoubleLosses, Framework, Loss

# Compared with float32 on a CPU, where PyTorch has no fast convolution and no fast LSTM for
# float64: 0.5 to 0.6 of products and elementwise operators, 0.55 to 0.92 of convolutions, 0.76 of
# an LSTM.
_DOUBLE = DoubleLosses(
    usual=Loss(0.55, (0.45, 0.65)),
    slow=Loss(0.75, (0.6, 0.88)),
    slow_families=("convolution", "recurrent"),
)

TORCH = Framework(
    name="torch",
    packages=("torch", "torch_npu"),
    events=r"^(aten|torch|c10d|autograd)::|^nn\.Module: |^ProfilerStep#",
    float64=("double", "float64", "c10::complex<double>"),
    module_call="torch/nn/modules/module.py",
    installed=r"torch[/\\]",
    generated=("/torchinductor_",),
    forward_function="forward",
    frees_gradients="zero_grad",
    checkpoints=("torch/serialization.py",),
    loader_starts=("torch/utils/data/",),
    double=_DOUBLE,
    compiler=Compiler(
        "torch.compile",
        "warm-up.torch-compiles",
        ("torch/_dynamo", "torch/_inductor", "triton/compiler"),
        is_optional=True,
    ),
    records_gradients=True,
    counts_threads=True,
    examines_inputs=True,
    parallel_products=(
        "mm", "addmm", "bmm", "baddbmm", "linear", "convolution_backward", "mkldnn_convolution",
        "_scaled_dot_product_flash_attention_for_cpu",
        "_scaled_dot_product_flash_attention_for_cpu_backward",
    ),
    parallel_others=(
        "add", "add_", "mul", "mul_", "sub", "sub_", "div", "div_", "copy_", "addcmul_", "addcdiv_",
        "relu", "relu_", "clamp_min", "clamp_min_", "threshold_backward", "gelu", "gelu_backward",
        "tanh", "tanh_backward", "sigmoid", "sigmoid_backward", "silu", "silu_backward", "exp",
        "pow", "sqrt", "where", "_softmax", "_softmax_backward_data", "_log_softmax",
        "_log_softmax_backward_data", "native_layer_norm", "native_layer_norm_backward",
        "native_batch_norm", "native_batch_norm_backward", "native_group_norm",
        "native_group_norm_backward", "max_pool2d_with_indices", "max_pool2d_with_indices_backward",
        "avg_pool2d", "avg_pool2d_backward", "_fused_adam_", "_fused_adamw_", "_fused_sgd_",
    ),
    data_parallel=(
        "Broadcast", "Scatter", "Gather", "BroadcastBackward", "ScatterBackward", "GatherBackward",
    ),
    fused_optimizers=("Adam", "AdamW", "SGD", "Adagrad"),
    sparse_optimizers=("SparseAdam", "Adagrad", "SGD"),
    joint_updates=("_foreach_", "_fused_"),
    debug_modes={
        "detect_anomaly": DebugMode(
            "stack-traces", "remove-anomaly-detection", "torch.autograd.set_detect_anomaly"
        ),
        "deterministic_algorithms": DebugMode(
            "filled-memory", "do-not-fill-memory", "torch.use_deterministic_algorithms"
        ),
    },
)  # fmt: skip
