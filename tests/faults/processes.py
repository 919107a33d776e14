"""Start real processes, with Strobe and without, and ask the run what was recorded."""

import os
import subprocess
import sys
from pathlib import Path

import strobe

TIMEOUT_S = 120

# A training of STEPS steps (5 unless said) that touches nothing but a tiny model.
TRAINING = """
import os, sys, torch
torch.manual_seed(0)
torch.set_num_threads(1)
net = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)

def train(steps=5):
    for _ in range(steps):
        optimizer.zero_grad()
        loss = net(torch.randn(4, 8)).square().mean()
        loss.backward()
        optimizer.step()
    return loss.item()
"""

# The same for a fault that does not depend on torch: `strobe.step()` makes a process record, and
# it starts twenty times as quickly.
SAID = """
import os, signal, sys, time
import strobe

def train(steps=5):
    for _ in range(steps):
        strobe.step()
"""


def write(folder: Path, text: str, name: str = "train.py") -> Path:
    script = folder / name
    script.write_text(text, encoding="utf-8")
    return script


def training(folder: Path, text: str, name: str = "train.py") -> Path:
    """A script that begins with TRAINING."""
    return write(folder, TRAINING + text, name)


def said_training(folder: Path, text: str, name: str = "train.py") -> Path:
    """A script that begins with SAID."""
    return write(folder, SAID + text, name)


def start(*words: object, **options: object) -> subprocess.Popen:
    """A Python process in a session of its own, with pipes."""
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
    command = [sys.executable, *map(str, words)]
    return subprocess.Popen(command, text=True, start_new_session=True, **options)


def end(process: subprocess.Popen) -> subprocess.CompletedProcess:
    try:
        out, err = process.communicate(timeout=TIMEOUT_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, 9)
        raise
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def python(*words: object, **options: object) -> subprocess.CompletedProcess:
    return end(start(*words, **options))


def recorded(run: Path, *words: object) -> tuple[object, ...]:
    """The words after `python` that record to a run, without a summary."""
    return ("-m", "strobe", "run", "-q", "-o", run, *words)


def with_and_without(
    run: Path, *words: object, options: tuple[str, ...] = (), **more: object
) -> tuple[subprocess.CompletedProcess, subprocess.CompletedProcess]:
    """The same script twice at once: under Strobe, and bare."""
    ours, bare = start(*recorded(run, *options, *words), **more), start(*words, **more)
    return end(ours), end(bare)


def lines_of_ours(done: subprocess.CompletedProcess) -> list[str]:
    """Strobe's own lines on stderr."""
    return [line for line in done.stderr.splitlines() if line.startswith("strobe: ")]


def ask(run: Path, query: str) -> list[tuple]:
    with strobe.open_run(run) as opened:
        return opened.sql(query).fetchall()


def steps(run: Path) -> dict[int, int]:
    """How many steps each rank has."""
    return dict(ask(run, "select rank, count(*) from steps group by rank order by rank"))


def problems(run: Path) -> list[str]:
    return [what for (what,) in ask(run, "select what from problems order by all")]


def states(run: Path) -> tuple[str, list[str]]:
    """How the run ended, and each of its ranks."""
    with strobe.open_run(run) as opened:
        return opened.manifest.state, [rank.state for rank in opened.manifest.ranks]
