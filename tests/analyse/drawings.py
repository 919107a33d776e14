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
