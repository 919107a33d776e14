from pathlib import Path

import pytest

from strobe.callbacks import Loop
from strobe.errors import UsageError
from tests.callbacks.trainings import full_steps, is_window

TRAINING = """
net = torch.nn.Linear(8, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
batches = torch.utils.data.DataLoader(Rows(), batch_size=4)
with strobe.callbacks.Loop(output_path="data", HOW) as loop:
    for epoch in range(4):
        for batch in loop.epoch(batches):
            optimizer.zero_grad()
            net(batch).square().mean().backward()
            optimizer.step()
"""


@pytest.mark.slow
def test_by_step(tmp_path: Path):
    found = full_steps(tmp_path, TRAINING.replace("HOW", "start_step=7, stop_step=9"))
    assert is_window(found, 7, 9), found


@pytest.mark.slow
def test_by_epoch(tmp_path: Path):
    found = full_steps(tmp_path, TRAINING.replace("HOW", "start_epoch=2, stop_epoch=3"))
    assert is_window(found, 6, 15), found


@pytest.mark.slow
def test_nothing_said_is_the_window_of_strobe_run(tmp_path: Path):
    found = full_steps(tmp_path, TRAINING.replace("HOW", "profile_memory=True"))
    assert is_window(found, 6, 10), found


@pytest.mark.parametrize(
    "given",
    [
        {"start_step": 0},
        {"start_step": 5, "stop_step": 4},
        {"start_step": 5, "start_epoch": 1},
        {"start_step": 5, "light": True},
        {"start_epoch": "two"},
        {"start_steps": 5},
    ],
)
def test_a_stretch_that_makes_no_sense_is_told(given: dict):
    with pytest.raises(UsageError) as caught:
        Loop(**given)
    assert caught.value.hint
