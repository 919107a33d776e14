from pathlib import Path

import pytest

from tests.callbacks.trainings import full_steps, is_window

pytest.importorskip("accelerate")

TRAINING = """
from accelerate import Accelerator

accelerator = Accelerator(cpu=True)
net = torch.nn.Linear(8, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
batches = torch.utils.data.DataLoader(Rows(), batch_size=4)
with strobe.callbacks.AccelerateHook(output_path="data", HOW) as hook:
    net = hook.attach(net)
    net, optimizer, batches = accelerator.prepare(net, optimizer, batches)
    for epoch in range(4):
        hook.epoch()
        for batch in batches:
            optimizer.zero_grad()
            accelerator.backward(net(batch).square().mean())
            optimizer.step()
assert not hasattr(net, "_hf_hook")
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "how, first, last",
    [("start_step=7, stop_step=9", 7, 9), ("start_epoch=2, stop_epoch=2", 6, 10)],
)
def test_by_step_and_by_epoch(how: str, first: int, last: int, tmp_path: Path):
    found = full_steps(tmp_path, TRAINING.replace("HOW", how))
    assert is_window(found, first, last), found
