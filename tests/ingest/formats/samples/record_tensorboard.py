"""Write a sample with TensorBoard: an event file of every kind that training scripts write.

python tests/ingest/formats/samples/record_tensorboard.py
"""

import json
import math
import shutil
from pathlib import Path
from typing import Any

import numpy as np
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import HistogramProto, Summary
from tensorboard.plugins.histogram.metadata import create_summary_metadata as of_histogram
from tensorboard.plugins.scalar.metadata import create_summary_metadata as of_scalar
from tensorboard.plugins.text.metadata import create_summary_metadata as of_text
from tensorboard.summary.writer.event_file_writer import EventFileWriter
from tensorboard.util.tensor_util import make_tensor_proto

FOLDER = Path(__file__).parent / "tensorboard"
BEGAN_S = 1_780_000_000
# The smallest PNG there is: one grey pixel.
PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010800000000"
    "3a7e9b550000000a49444154789c636800000082008177cd72b60000000049454e44ae426082"
)

SCALARS = {
    "loss": [2.5, 1.25, 0.625, math.nan],
    "accuracy": [0.0, 0.5, 0.75, math.inf],
}
DOUBLES = {"learning_rate": [0.1, 0.1 / 3, 1e-300, 5e-324]}
VALUES = [-1.0, 0.0, 0.5, 0.5, 2.0]
EDGES = [-1.0, 0.0, 1.0, 3.0]
TEXT = "trained on *synthetic* data, 合成数据"


def record() -> None:
    shutil.rmtree(FOLDER, ignore_errors=True)
    writer = EventFileWriter(str(FOLDER / "run"), filename_suffix=".sample")

    def add(step: int, **value: Any) -> None:
        summary = Summary(value=[Summary.Value(**value)])
        writer.add_event(Event(wall_time=BEGAN_S + step, step=step, summary=summary))

    for tag, values in SCALARS.items():
        for step, value in enumerate(values):
            add(step, tag=tag, simple_value=value)
    for tag, values in DOUBLES.items():
        for step, value in enumerate(values):
            tensor = make_tensor_proto(np.float64(value))
            add(step, tag=tag, tensor=tensor, metadata=of_scalar("", ""))
    add(1, tag="weights", histo=_histogram())
    buckets = np.array([[-1, 0, 1], [0, 1, 3], [1, 3, 1]], np.float32)
    add(2, tag="gradients", tensor=make_tensor_proto(buckets), metadata=of_histogram("", ""))
    image = Summary.Image(height=1, width=1, colorspace=1, encoded_image_string=PIXEL)
    add(3, tag="input", image=image)
    add(3, tag="notes", tensor=make_tensor_proto([TEXT.encode()]), metadata=of_text("", ""))
    writer.close()
    (written,) = (FOLDER / "run").iterdir()
    written.rename(written.with_name(f"events.out.tfevents.{BEGAN_S}.host.1.0.sample"))
    truth = {
        "scalars": {
            tag: [[step, repr(value)] for step, value in enumerate(values)]
            for tag, values in {**SCALARS, **DOUBLES}.items()
        },
        "began_s": BEGAN_S,
        "histogram": {"tag": "weights", "step": 1, "min": -1.0, "max": 2.0, "count": 5, "sum": 2.0},
        "image": {"tag": "input", "step": 3, "bytes": len(PIXEL), "width": 1, "height": 1},
        "text": {"tag": "notes", "step": 3, "text": TEXT},
    }
    text = json.dumps(truth, indent=1, ensure_ascii=False) + "\n"
    (FOLDER / "truth.json").write_text(text, encoding="utf-8")


def _histogram() -> HistogramProto:
    counts = [1, 1, 2, 1]
    return HistogramProto(
        min=min(VALUES), max=max(VALUES), num=len(VALUES), sum=sum(VALUES),
        sum_squares=sum(value * value for value in VALUES), bucket_limit=EDGES, bucket=counts,
    )  # fmt: skip


if __name__ == "__main__":
    record()
