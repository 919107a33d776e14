"""The YAML of a job, in the words of mindformers."""

import subprocess
import sys
from pathlib import Path

import pytest

from strobe.collect.start.job_config import read, summary
from strobe.errors import UsageError
from strobe.model.options import Options

MINDFORMERS = """
seed: 0
output_dir: './output'
run_mode: 'train'
runner_config:
  epochs: 2
  profile: 7
profile: {profile}
profile_start_step: 3
profile_stop_step: 5
init_start_profile: False
profile_communication: False
profile_memory: True
"""


def given(folder: Path, text: str) -> dict | None:
    path = folder / "job.yaml"
    path.write_text(text, encoding="utf-8")
    return read(path)


def test_the_keys_of_mindformers(tmp_path: Path):
    assert given(tmp_path, MINDFORMERS.format(profile="True")) == {
        "profile_communication": False,
        "profile_memory": True,
        "output_path": "./output/profile",
        "steps": (3, 6),
    }
    assert given(tmp_path, MINDFORMERS.format(profile="False")) is None
    assert given(tmp_path, "seed: 0\n") is None


@pytest.mark.parametrize(
    "path",
    ["data/rank_{id}", "data/rank_{rank_id}/", "data/rank_0", "data/rank_{id}/profiler/", "data"],
)
def test_ranks_have_their_own_folders_in_the_run(path: str, tmp_path: Path):
    found = given(tmp_path, f"profile: true\noutput_path: '{path}'\n")
    assert found == {"output_path": "data", "steps": (1, 11)}


def test_a_section_of_our_own_takes_every_option(tmp_path: Path):
    text = "steps: 4000\nprofile: true\nstrobe:\n  schedule: [1, 1, 2]\n  formats: [csv]\n"
    assert given(tmp_path, text) == {"schedule": [1, 1, 2], "formats": ["csv"]}


def test_from_the_beginning_whatever_the_first_step(tmp_path: Path):
    text = "profile: true\ninit_start_profile: true\nprofile_start_step: 4\nprofile_stop_step: 6\n"
    assert given(tmp_path, text) == {"steps": (1, 7)}


@pytest.mark.parametrize(
    "text, ranks", [("[0, 3]", (0, 3)), ("'0,8-10'", (0, 8, 9, 10)), ("2", (2,)), ("null", ())]
)
def test_ranks_that_are_recorded_in_full(text: str, ranks: tuple[int, ...], tmp_path: Path):
    options = Options.from_json(given(tmp_path, f"profile: true\nprofile_rank_ids: {text}\n"))
    assert options.ranks == ranks


@pytest.mark.parametrize(
    "text, what",
    [
        ("profile: true\nprofile_stop_stp: 3", "Did you mean profile_stop_step?"),
        ("profile: false\nprofile_memry: true", "Did you mean profile_memory?"),
        ("profile: true\nstrobe:\n  with_stak: true", "Did you mean with_stack?"),
        ("profile: true\nprofile_start_step: 9\nprofile_stop_step: 3", "contains no step"),
        ("profile: maybe", "profile must be true or false"),
        ("profile: [", "is not valid YAML"),
        ("- profile", "does not consist of keys"),
        ("profile: true\nstrobe: 3", "must contain options"),
        ("profile: true\nprofile_rank_ids: [first]", "profile_rank_ids must be a list of ranks"),
    ],
)
def test_mistakes_are_told_with_their_file(text: str, what: str, tmp_path: Path):
    with pytest.raises(UsageError) as caught:
        given(tmp_path, text)
    assert what in str(caught.value) and "job.yaml" in caught.value.where


def test_a_missing_file_is_told(tmp_path: Path):
    with pytest.raises(UsageError, match="cannot read"):
        read(tmp_path / "job.yaml")


@pytest.mark.slow
def test_without_pyyaml_its_installation_is_told(tmp_path: Path):
    code = """
import sys
sys.modules["yaml"] = None
import strobe
try:
    strobe.Profiler.from_config("job.yaml")
except strobe.StrobeError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "needs PyYAML" in done.stdout and "pip install 'strobe[yaml]'" in done.stdout


MONITOR = """
callbacks:
  - type: MFLossMonitor
  - type: SummaryMonitor
    summary_dir: './output/summary/rank_{id}/'
    collect_freq: 5
    collect_specified_data: None
    custom_lineage_data:
      data: v1
    max_file_size: null
"""


def summary_of(folder: Path, text: str) -> dict | None:
    path = folder / "job.yaml"
    path.write_text(text, encoding="utf-8")
    return summary(path)


def test_the_options_of_a_summary_monitor_are_read(tmp_path: Path):
    assert summary_of(tmp_path, MONITOR) == {
        "summary_dir": "./output/summary", "collect_freq": 5, "custom_lineage_data": {"data": "v1"}
    }  # fmt: skip
    assert summary_of(tmp_path, "callbacks: [{type: SummaryMonitor}]") == {}
    assert summary_of(tmp_path, MINDFORMERS.format(profile="True")) is None
    assert summary_of(tmp_path, "callbacks: [{type: CheckpointMonitor}, text]") is None


@pytest.mark.parametrize(
    "text, what",
    [
        (MONITOR.replace("5", "-5"), "collect_freq must be greater than 0"),
        (MONITOR.replace("collect_freq", "frequency"), "SummaryMonitor has no key 'frequency'"),
        (MONITOR + "  - type: SummaryMonitor\n", "2 SummaryCollectors"),
    ],
)
def test_a_mistake_in_a_summary_monitor_is_an_error_of_the_file(text, what, tmp_path: Path):
    with pytest.raises(UsageError, match=what) as caught:
        summary_of(tmp_path, text)
    assert caught.value.where == str(tmp_path / "job.yaml")
