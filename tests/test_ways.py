"""Every way to switch it on gives the same tables of the same training."""

import json
import subprocess
from pathlib import Path

import pytest

import strobe
from tests.faults.processes import ask
from tests.installed import environment

SCRIPT = """
import sys
import torch
torch.manual_seed(0)
torch.set_num_threads(1)
net = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
rows = torch.utils.data.TensorDataset(torch.randn(40, 8))

def train(batches=None):
    for (batch,) in batches or torch.utils.data.DataLoader(rows, batch_size=4):
        optimizer.zero_grad()
        loss = net(batch).square().mean()
        loss.backward()
        optimizer.step()
    return loss.item()
"""

# What follows the training in the script.
CALLS = {
    "plain": "print(train())",
    "context": """
import strobe
with strobe.Profiler(output_path="context", steps=(4, 7), profile_memory=True):
    print(train())
""",
    "start and stop": """
import strobe
profiler = strobe.Profiler(output_path="start and stop", steps=(4, 7), profile_memory=True)
profiler.start()
print(train())
profiler.stop()
profiler.analyse(mode="sync")
""",
    "decorator": """
import strobe
train = strobe.profile(output_path="decorator", steps=(4, 7), profile_memory=True)(train)
print(train())
""",
    "schedule": """
import strobe
chosen = strobe.schedule(wait=2, warmup=1, active=3, repeat=1)
with strobe.Profiler(output_path="schedule", schedule=chosen, profile_memory=True):
    print(train())
""",
    "from_config": """
import strobe
with strobe.Profiler.from_config("job-from_config.yaml"):
    print(train())
""",
    "loop": """
from strobe.callbacks import Loop
with Loop(output_path="loop", start_step=4, stop_step=6, profile_memory=True) as loop:
    print(train(loop.epoch(torch.utils.data.DataLoader(rows, batch_size=4))))
""",
}

YAML = """
profile: True
profile_start_step: 4
profile_stop_step: 6
init_start_profile: False
profile_memory: True
output_path: '{name}/rank_{{id}}'
"""

OPTIONS = {"start": True, "steps": [4, 7], "profile_memory": True}

WAYS = [*(name for name in CALLS if name != "plain"), "run", "config", "environment", "mindspore"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("ways")


@pytest.fixture(scope="module")
def plain_result(installed: Path, folder: Path) -> str:
    return _run(installed, folder, "plain").stdout


def _run(python: Path, folder: Path, way: str) -> subprocess.CompletedProcess:
    script = folder / f"{way}.py"
    script.write_text(SCRIPT + CALLS.get(way, CALLS["plain"]))
    (folder / f"job-{way}.yaml").write_text(YAML.format(name=way))
    words = [str(python), str(script)]
    variables = {}
    given = json.dumps({**OPTIONS, "output_path": way})
    if way == "run":
        words[1:1] = ["-m", "strobe", "run", "-q", "-o", way, "--steps", "4:7", "--profile-memory"]
    elif way == "config":
        words[1:1] = ["-m", "strobe", "run", "-q", "--config", f"job-{way}.yaml"]
    elif way == "environment":
        variables["STROBE_OPTIONS"] = given
    elif way == "mindspore":
        variables["MS_PROFILER_OPTIONS"] = given
    return subprocess.run(
        words, cwd=folder, env=environment(**variables), capture_output=True, text=True,
        timeout=120, check=True,
    )  # fmt: skip


def told(run: Path) -> dict[str, object]:
    """What must be the same whichever way a training was recorded."""
    tables = ("events", "op_args", "allocations", "batches", "counters", "links", "queues")
    return {
        "steps": ask(run, "select step from steps order by step"),
        "recorded": ask(
            run,
            "select step, count(*) from events where kind = 'module' and step between 4 and 6"
            " group by step order by step",
        ),
        "operators": ask(
            run,
            "select distinct step, name from events where kind = 'op' and step between 4 and 6"
            " order by all",
        ),
        "kinds": ask(run, "select distinct kind from events where kind <> 'gc' order by kind"),
        "tables": {name for name in tables if ask(run, f"select count(*) from {name}") != [(0,)]},
        "problems": ask(run, "select what from problems"),
    }


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_the_same_steps_and_tables(way: str, installed: Path, folder: Path, plain_result: str):
    done = _run(installed, folder, way)
    assert done.stdout == plain_result, done.stderr
    if not (folder / "reference").exists():
        with strobe.open_run(folder / way):
            (folder / way).rename(folder / "reference")
        run = folder / "reference"
    else:
        run = folder / way
    found, expected = told(run), told(folder / "reference")
    assert found == expected
    assert [step for (step,) in found["steps"]] == list(range(1, 11))
    assert [step for step, _ in found["recorded"]] == [4, 5, 6]
    assert {"events", "op_args", "allocations", "batches", "counters"} <= found["tables"]
