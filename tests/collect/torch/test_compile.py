"""Compilations of a real torch.compile, recorded by a real process."""

import subprocess
import sys

import pytest

from strobe.reading import open_run

pytest.importorskip("torch")

SCRIPT = """
import torch
torch.manual_seed(0)
net = torch.compile(torch.nn.Linear(4, 4), backend="eager", dynamic=False)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for number in range(12):
    optimizer.zero_grad()
    net(torch.ones(2 + number // 4, 4)).sum().backward()  # line 8
    optimizer.step()
print("weight", net._orig_mod.weight.sum().item())
"""


def run(folder, *command):
    done = subprocess.run(
        [sys.executable, *command], cwd=folder, capture_output=True, text=True, timeout=180,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done


def test_every_compilation_is_a_span_with_its_line(tmp_path):
    (tmp_path / "train.py").write_text(SCRIPT, encoding="utf-8")
    recorded = run(tmp_path, "-m", "strobe", "run", "--light", "-q", "-o", "RUN", "train.py")
    assert recorded.stdout == run(tmp_path, "train.py").stdout
    with open_run(tmp_path / "RUN") as opened:
        found = opened.sql("""
            SELECT name, dur_ns FROM events
            WHERE kind = 'annotation' AND starts_with(name, 'compilation ') ORDER BY ts_ns
        """).fetchall()
        assert not opened.problems.fetchall()
    # Three sizes of batch: the function 0 is compiled three times.
    names = [name for name, _ in found]
    assert [name.split()[1] for name in names] == ["0/0", "0/1", "0/2"]
    assert all(name.endswith("train.py:8") for name in names)
    assert all(dur_ns > 100_000 for _, dur_ns in found)
