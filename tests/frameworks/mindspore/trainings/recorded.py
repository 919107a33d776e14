"""SummaryRecord with MindSpore's own values and messages: `recorded.py strobe|mindspore FOLDER`."""

import sys

import mindspore as ms
import numpy as np
from mindspore import Tensor
from mindspore.train import lineage_pb2
from mindspore.train.summary_pb2 import LossLandscape

whose, folder = sys.argv[1:]
if whose == "strobe":
    from strobe.mindspore import SummaryRecord
else:
    from mindspore import SummaryRecord


def wrong(name, expected, action):
    try:
        action()
    except Exception as error:
        is_so = isinstance(error, expected)
        print(name, "ok" if is_so else f"{type(error).__name__}: {error}")
    else:
        print(name, "no error")


training = lineage_pb2.TrainLineage()
training.hyper_parameters.optimizer = "Momentum"
training.hyper_parameters.batch_size = 4
training.algorithm.network = "Net"
training.model.path = "{}"
training.model.size = 5
evaluation = lineage_pb2.EvaluationLineage()
evaluation.metric = '{"accuracy": 0.5}'
evaluation.valid_dataset.valid_dataset_size = 60
custom = lineage_pb2.UserDefinedInfo()
custom.user_info.add().map_str["data"] = "v1"
custom.user_info.add().map_int32["size"] = 7
graph = lineage_pb2.DatasetGraph()
graph.parameter.mapStr["op_type"] = "Batch"
landscape = LossLandscape()
landscape.landscape.z.dims.extend([2, 2])
landscape.landscape.z.data_type = 11
landscape.landscape.z.float_data.extend([1, 2, 3, 4])
landscape.metadata.decomposition = "PCA"

with SummaryRecord(folder) as record:
    wrong("second", RuntimeError if whose == "strobe" else Exception, lambda: SummaryRecord(folder))
    wrong("plugin", ValueError, lambda: record.add_value("sound", "x", Tensor(1.0)))
    wrong("name", ValueError, lambda: record.add_value("scalar", "", Tensor(1.0)))
    wrong("number", TypeError, lambda: record.add_value("scalar", "x", 1.0))
    wrong("shape", ValueError, lambda: record.add_value("scalar", "x", Tensor([1.0, 2.0])))
    wrong("image", ValueError, lambda: record.add_value("image", "x", Tensor([1.0, 2.0])))
    wrong("tensor", ValueError, lambda: record.add_value("tensor", "x", Tensor(1.0)))
    wrong("lineage", TypeError, lambda: record.add_value("train_lineage", "x", custom))
    wrong("mode", ValueError, lambda: record.set_mode("test"))
    wrong("step", TypeError, lambda: record.record("1"))
    for step in (1, 2):
        record.add_value("scalar", "loss", Tensor(0.1 * step, ms.float32))
        record.add_value("image", "picture", Tensor(np.full((1, 3, 4, 5), 0.5, np.float32)))
        record.add_value("tensor", "weights", Tensor(np.arange(6).reshape(2, 3), ms.float32))
        record.add_value("histogram", "values", Tensor(np.arange(100), ms.float32))
        print(record.record(step))
    record.add_value("scalar", "dropped", Tensor(1.0))
    if whose == "strobe":  # MindSpore writes both
        record.add_value("scalar", "twice", Tensor(1.0))
    record.add_value("scalar", "twice", Tensor(2.0))
    record.add_value("train_lineage", "train_lineage", training)
    record.add_value("eval_lineage", "eval_lineage", evaluation)
    record.add_value("custom_lineage_data", "custom", custom)
    record.add_value("dataset_graph", "dataset_graph", graph)
    record.add_value("landscape", "landscape_[1]", landscape)
    record.set_mode("eval")
    record.flush()
    print(record.record(3))
    record.add_value("scalar", "filtered", Tensor(1.0))
    record.add_value("tensor", "taken", Tensor([1.0]))
    print(record.record(4, plugin_filter=lambda plugin: plugin == "tensor"))
print(record.record(5))
