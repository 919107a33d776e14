from pathlib import Path

import pytest

from tests.callbacks.lightning_training import TRAINING
from tests.callbacks.trainings import full_steps, is_window

pytest.importorskip("lightning")

GIVEN = 'callbacks=[strobe.callbacks.LightningCallback(output_path="data", HOW)]'


@pytest.mark.slow
@pytest.mark.parametrize(
    "how, first, last",
    [("start_step=7, stop_step=9", 7, 9), ("start_epoch=2, stop_epoch=2", 6, 10)],
)
def test_by_step_and_by_epoch(how: str, first: int, last: int, tmp_path: Path):
    given = GIVEN.replace("HOW", how)
    found = full_steps(tmp_path, TRAINING.replace("GIVEN", given))
    assert is_window(found, first, last), found
