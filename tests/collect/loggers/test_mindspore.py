"""What SummaryRecord writes, of `add_value` and of summary operators, is what is recorded."""

from pathlib import Path
from typing import Any

import pytest

import strobe
from tests.frameworks import environment

pytestmark = pytest.mark.slow

SCRIPT = """
import numpy as np
import mindspore as ms
from mindspore import Tensor, nn, ops

class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.line, self.scalar = nn.Dense(4, 1), ops.ScalarSummary()

    def construct(self, x, y):
        loss = ((self.line(x) - y) ** 2).mean()
        self.scalar("of an operator", loss)
        return loss

random = np.random.default_rng(0)
def batch(width):
    return Tensor(random.random((8, width)).astype(np.float32))

net = Net()
optimizer = nn.SGD(net.trainable_params(), 0.1)
gradient = ms.value_and_grad(net, None, optimizer.parameters)
with ms.SummaryRecord("summary", num_process=1) as record:
    for step in range(1, 5):
        loss, gradients = gradient(batch(4), batch(1))
        optimizer(gradients)
        record.add_value("scalar", "loss", loss)
        if step == 2:
            values = np.arange(6, dtype=np.float32)
            record.add_value("tensor", "values", Tensor(values.reshape(2, 3)))
            record.add_value("histogram", "counted", Tensor(np.arange(50, dtype=np.float32)))
            picture = random.random((1, 3, 8, 9)).astype(np.float32)
            record.add_value("image", "picture", Tensor(picture))
            record.add_value("image", "wide", Tensor(picture * 40 - 7))
        assert record.record(10 * step)
"""


def ask(run: Path, query: str) -> list[Any]:
    with strobe.open_run(run) as opened:
        return opened.sql(query).fetchall()


def pixels(run: Path) -> dict[str, Any]:
    import numpy as np
    from PIL import Image

    with strobe.open_run(run) as opened:
        rows = opened.sql("select tag, file from images").fetchall()
        places = [next(Path(opened.path).rglob(Path(file).name)) for _, file in rows]
    return {
        tag: np.asarray(Image.open(place)) for (tag, _), place in zip(rows, places, strict=True)
    }


def test_every_value_is_the_one_in_the_summary(tmp_path: Path):
    (tmp_path / "train.py").write_text(SCRIPT, encoding="utf-8")
    done = environment.run(
        "mindspore", "-m", "strobe", "run", "-q", "-o", tmp_path / "run", tmp_path / "train.py",
        cwd=tmp_path, timeout_s=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    theirs = tmp_path / "summary"
    run = tmp_path / "run"
    numbers = "select tag, step, value::float from scalars where source = 'mindspore' order by all"
    assert ask(run, numbers) == ask(theirs, numbers)
    assert len(ask(run, numbers)) == 8
    tensors = "select tag, step, dtype, shape, min, max from tensors"
    assert ask(run, tensors) == ask(theirs, tensors) == [
        ("values", 20, "float32", "[2, 3]", 0.0, 5.0)
    ]  # fmt: skip
    histograms = "select tag, step, count, min, max, replace(counts, ' ', '') from histograms"
    assert ask(run, histograms) == ask(theirs, histograms)
    ours, expected = pixels(run), pixels(theirs)
    assert set(ours) == set(expected) == {"picture", "wide"}
    for tag, image in ours.items():
        assert image.shape == expected[tag].shape
        assert (image == expected[tag]).all()
    assert ask(run, "select what from problems") == []
