"""Compilations of a real torch.compile, recorded by a real process."""

import pytest

from strobe.reading import open_run
from tests.warm import python, recorded

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
    done = python(*command, cwd=folder)
    assert done.returncode == 0, done.stderr
    return done


@pytest.mark.slow
def test_every_compilation_is_a_span_with_its_line(tmp_path):
    (tmp_path / "train.py").write_text(SCRIPT, encoding="utf-8")
    done = run(tmp_path, *recorded("RUN", "--light", "train.py"))
    assert done.stdout == run(tmp_path, "train.py").stdout
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
