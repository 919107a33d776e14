"""When a window is recorded in pieces: no profiler, no training, steps as the test says."""

from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest

from strobe.collect.jax.windows import JaxWindows
from strobe.collect.steps import StepCount
from strobe.collect.torch.windows import TorchWindows
from strobe.collect.windows import Windows
from strobe.model.journal import Mark
from strobe.model.options import Options


class _Plain:
    """A profiler that records nothing."""

    FIRST_PIECE_STEPS = 3

    def at_boundary(self):
        Windows.at_boundary(self)  # here, not on a thread of its own

    def hindrance(self):
        return ""

    def start_profiler(self, options):
        return "profiler"

    def stop_profiler(self, profiler):
        return b""

    def write(self, recorded, stem):
        return Path(f"{stem}.trace"), 10_000_000_000  # the next piece has one step


def _pieces(tmp_path, windows: type[Windows], steps: int) -> list[tuple[int, int]]:
    """The windows that began: which, and whether it goes on where the one before ended."""
    marks = []
    journal = SimpleNamespace(
        fact=lambda **_: None, patient=nullcontext, string=lambda *_: 0, mark=lambda *_: None
    )
    recorder = SimpleNamespace(
        options=Options(steps=(2, 2 + steps), timeline_limit=1_000_000), journal=journal,
        run=tmp_path, raw=tmp_path, is_off=False, likely_rank=lambda: 0,
        mark=lambda *mark: marks.append(mark), guarded=lambda call: call, say=print, problem=print,
    )  # fmt: skip
    count = StepCount()
    made = type("Plain", (_Plain, windows), {})(recorder, count)
    for _ in range(steps + 3):
        made.at_boundary()
        count.said()
    made.close()
    return [(mark[2], mark[1]) for mark in marks if mark[0] == Mark.WINDOW_BEGAN]


def test_between_two_steps_of_torch_nothing_runs_and_pieces_are_one_window(tmp_path):
    first, *others = _pieces(tmp_path, TorchWindows, steps=5)
    assert first == (1, 0)
    assert others
    assert all(goes_on == 1 for _, goes_on in others)


def test_the_device_of_jax_runs_on_between_pieces_and_each_is_a_window_of_its_own(tmp_path):
    pieces = _pieces(tmp_path, JaxWindows, steps=5)
    assert len(pieces) > 1
    assert all(goes_on == 0 for _, goes_on in pieces)


@pytest.mark.parametrize(("steps", "pieces"), [(10, 1), (40, 2)])
def test_a_window_of_jax_that_is_not_long_is_one_piece(tmp_path, monkeypatch, steps, pieces):
    monkeypatch.setattr(_Plain, "FIRST_PIECE_STEPS", JaxWindows.FIRST_PIECE_STEPS)
    monkeypatch.setattr(_Plain, "write", lambda self, recorded, stem: (Path(f"{stem}.trace"), 1))
    assert len(_pieces(tmp_path, JaxWindows, steps)) == pieces


def test_a_piece_is_no_larger_than_what_timeline_limit_leaves(tmp_path):
    recorder = SimpleNamespace(
        options=Options(timeline_limit=1), guarded=lambda call: call, run=tmp_path
    )
    made = type("Plain", (_Plain, TorchWindows), {})(recorder, StepCount())
    made.wrote(180_000, steps=3)
    assert made._piece_steps == 13  # 0.82 MB at 60 kB per step
