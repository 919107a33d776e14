"""A small training as a drawing: one step in a window, one outside, a tree of two modules."""

MODEL = """
    0/steps  step:step~1                 0..1000     step=1
    0/steps  step:step~2                 1000..2000  step=2
    0/steps  annotation:strobe~window~1  950..2050
    0/main   op:aten::relu               100..150    step=1
    0/main   module:Net                  1100..1400  step=2  scope=net
    0/main   module:Linear               1110..1310  step=2  scope=net.fc  parent=4
    0/main   op:aten::linear             1120..1300  step=2  scope=net.fc  parent=5
    0/main   op:aten::addmm              1130..1290  step=2  scope=net.fc  parent=6
    0/main   op:aten::relu               1320..1380  step=2  scope=net     parent=4
    0/main   op:AddmmBackward0           1500..1700  step=2  scope=net.fc
    0/main   op:aten::mm                 1510..1690  step=2  scope=net.fc  parent=9
    0/main   op:aten::add_               1800..1840  step=2
"""

MODEL_ARGS = {
    "op_args": {
        "event_id": [3, 6, 7, 8, 9, 10, 11],
        "input_shapes": [None, None, "[[2, 3]]", None, None, "[[3, 2]]", None],
        "flops": [None, None, 320, None, None, 360, None],
        "bytes": [None, None, 160, None, None, None, None],
        "is_backward": [False, False, False, False, True, True, False],
    },
    "links": {"from_id": [6], "to_id": [9], "kind": ["forward_backward"]},
}

# A device with two streams over two steps: it computes, communicates, copies and idles; the host
# launches all but the last kernel. Times are worked out by hand in the tests.
DEVICE = """
    0/steps       step:step~1              0..1000      step=1
    0/steps       step:step~2              1000..2000   step=2
    0/main        op:aten::mm              50..120      step=1
    0/main        runtime:cudaLaunchKernel 60..80       step=1  parent=2
    0/main        op:aten::add             130..190     step=1
    0/main        runtime:cudaLaunchKernel 140..180     step=1  parent=4
    0/main        runtime:cudaMemcpyAsync  300..310     step=1
    0/main        op:record_param_comms    320..400     step=1
    0/main        python:run               325..395     step=1  parent=7
    0/main        runtime:cudaLaunchKernel 330..390     step=1  parent=8
    0/s7@cuda:0   kernel:gemm              100..300     step=1  launcher=3   scope=net.fc
    0/s7@cuda:0   kernel:add               320..340     step=1  launcher=5
    0/s7@cuda:0   memcpy:copy              500..600     step=1  launcher=6
    0/s9@cuda:0   collective:nccl          550..900     step=1  launcher=9
    0/s7@cuda:0   kernel:gemm              800..1100    step=1
    0/s9@cuda:0   annotation:nccl:all      550..900     step=1
    0/s7@cuda:0   sync:Stream~Sync         600..800     step=1
"""
DEVICE_ARGS = {
    "kernel_args": {
        "event_id": [12],
        "bytes": [400],
        "direction": ["host to device"],
        "host_memory": ["pageable"],
    },
    "collective_args": {
        "event_id": [13],
        "operation": ["all_reduce"],
        "group": ["dp"],
        "group_size": [4],
        "bytes": [7000],
        "dtype": ["Float"],
    },
}
