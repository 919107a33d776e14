"""MindSpore."""

from strobe.frameworks.framework import Compiler, DebugMode, Framework, LoopLimits

MINDSPORE = Framework(
    name="mindspore",
    packages=("mindspore",),
    events=r"^Default/|^Gradients/Default/",
    update_nodes=r"(^|/)(_?optimi[sz]er\w*|opt)-",
    weight_gradients=(
        "Conv2DBackpropFilter", "Conv3DBackpropFilter", "DepthwiseConv2dNativeBackpropFilter",
    ),
    float64=("DOUBLE",),
    forward_function="construct",
    checkpoints=("mindspore/train/serialization.py",),
    # A call is more expensive in MindSpore's own Python, so fewer and longer calls are enough for
    # a fault; both limits are chosen, not measured. Some calls between them, such as indexing a
    # tensor, take milliseconds.
    loops=LoopLimits(fewest_calls=50, tiny_ns=100_000, longest_gap_ns=10_000_000),
    compiler=Compiler(
        "MindSpore",
        "warm-up.mindspore-compiles",
        ("mindspore/graph/api.py", "mindspore/common/api.py"),
    ),
    is_called_by_python=False,
    # All others are sources, which read.
    pipeline_stages={
        "Map": "transform", "Filter": "transform", "FlatMap": "transform", "Batch": "collate",
        "PaddedBatch": "collate", "BucketBatchByLength": "collate",
    },
    python_source="Generator",  # GeneratorDataset, NumpySlicesDataset
    debug_modes={
        "pynative_synchronize": DebugMode(
            fix="set-context", title="of-mindspore", argument="pynative_synchronize=False"
        ),
        "save_graphs": DebugMode(
            fix="set-context", title="of-mindspore", argument="save_graphs=0"
        ),
    },
)  # fmt: skip
