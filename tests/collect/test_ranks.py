"""Who says which rank a process is."""

from pathlib import Path

import pytest

from strobe.collect import ranks
from strobe.collect.ranks import Place


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch):
    for name in (name for launcher in ranks._LAUNCHERS for name in launcher):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize("launcher", ranks._LAUNCHERS, ids=lambda names: names[0])
def test_each_launcher_is_understood(
    launcher: tuple[str, str, str], monkeypatch: pytest.MonkeyPatch
):
    assert ranks.of_this_process() == Place()
    for name, value in zip(launcher, ("5", "8", "1"), strict=True):
        monkeypatch.setenv(name, value)
    assert ranks.of_this_process() == Place(5, 8, 1)


def test_torchrun_below_slurm_is_asked_first(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("SLURM_PROCID", "0")
    monkeypatch.setenv("RANK", "3")
    assert ranks.of_this_process().rank == 3


def test_nonsense_is_not_a_rank(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("RANK", "-1")
    assert ranks.of_this_process() == Place()


def test_ranks_have_all_ended_when_the_last_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def say(rank: int, *lines: str) -> None:
        raw = tmp_path / f"rank_{rank}" / "raw"
        raw.mkdir(parents=True, exist_ok=True)
        with open(raw / "facts.jsonl", "a", encoding="utf-8") as file:
            file.writelines(f"{line}\n" for line in lines)

    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "2")
    say(0, '{"type": "process"}', '{"type": "end", "state": "finished"}')
    assert not ranks.have_all_ended(tmp_path)
    say(1, '{"type": "process"}')
    assert not ranks.have_all_ended(tmp_path)
    say(1, '{"type": "end", "state": "finished"}')
    assert ranks.have_all_ended(tmp_path)
