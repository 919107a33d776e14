"""Trainings of 4 epochs of 5 steps, in processes of their own, and what was recorded of them."""

from pathlib import Path

from tests.faults.processes import ask, write
from tests.warm import python

EPOCHS, STEPS_AN_EPOCH = 4, 5

COMMON = """
import sys, warnings
warnings.simplefilter("ignore")
import torch
torch.manual_seed(0)
torch.set_num_threads(1)
import strobe
import strobe.callbacks

class Rows(torch.utils.data.Dataset):
    def __len__(self):
        return 20

    def __getitem__(self, index):
        return torch.full((8,), float(index) / 20)
"""


def full_steps(folder: Path, text: str) -> list[int]:
    """The steps whose modules were recorded: a window may end with the data of the next step."""
    done = python(write(folder, COMMON + text), cwd=folder)
    assert done.returncode == 0, done.stderr
    run = folder / "data"
    assert ask(run, "select count(*) from steps") == [(EPOCHS * STEPS_AN_EPOCH,)]
    assert ask(run, "select count(*) from problems where source = 'recorder'") == [(0,)]
    found = ask(run, """
        select distinct step from events e join tracks t on t.id = track_id
        where kind = 'module' and step is not null order by step""")  # fmt: skip
    return [step for (step,) in found]


def is_window(found: list[int], first: int, last: int) -> bool:
    """The step before a window may be recorded too: it takes the cost of starting up."""
    return found in (list(range(first, last + 1)), list(range(max(1, first - 1), last + 1)))
