"""The rules about operators on real trainings: each fault is found, and its repaired twin is well.

Only verdicts and places are checked: how long things take differs with the machine.
"""

import textwrap

import pytest

from strobe.reading import open_run
from tests.warm import python, recorded

pytest.importorskip("torch")

HEAD = """
import sys
import torch
from torch import nn
torch.manual_seed(0)
torch.set_num_threads(1)
FAULT = sys.argv[1] == "fault"
def train(net, x, y, optimizer=None):
    optimizer = optimizer or torch.optim.SGD(net.parameters(), lr=1e-3)
    for _ in range(24):
        optimizer.zero_grad()
        nn.functional.mse_loss(net(x), y).backward()
        optimizer.step()
"""

SCRIPTS = {
    "hot-operator": """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.a, self.b = nn.Linear(256, 512), nn.Linear(512, 10)
            def forward(self, x):
                x = self.a(x).relu()
                if FAULT:
                    x = torch.sort(x, dim=-1)[0]  # here
                return self.b(x)
        train(Net(), torch.randn(256, 256), torch.randn(256, 10))
    """,
    "tiny-operators": """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.a, self.b = nn.Linear(64, 64), nn.Linear(64, 8)
            def forward(self, x):
                if FAULT:
                    x = torch.stack([torch.tanh(self.a(row)) for row in x])  # here
                else:
                    x = torch.tanh(self.a(x))
                return self.b(x)
        train(Net(), torch.randn(192, 64), torch.randn(192, 8))
    """,
    "double-precision": """
        net = nn.Sequential(nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 10))
        x, y = torch.randn(256, 256), torch.randn(256, 10)
        train(*(part.double() if FAULT else part for part in (net, x, y)))
    """,
    "layout-copies": """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.a = nn.Conv2d(3, 32, 1)
            def forward(self, x):
                x = self.a(x)
                for _ in range(4):
                    if FAULT:
                        last = x.permute(0, 2, 3, 1).contiguous()
                        x = last.permute(0, 3, 1, 2).contiguous()
                    x = torch.relu(x)
                return x.mean((2, 3))
        train(Net(), torch.randn(16, 3, 48, 48), torch.randn(16, 32))
    """,
    "unfused-optimizer": """
        net = nn.Sequential(*[nn.Linear(32, 32) for _ in range(50)])
        how = {"foreach": False} if FAULT else {"fused": True}
        adam = torch.optim.Adam(net.parameters(), **how)
        train(net, torch.randn(32, 32), torch.randn(32, 32), adam)
    """,
}  # fmt: skip
SEEN = ("hot-operator", "tiny-operators")  # whose line is looked at


@pytest.fixture(scope="module")
def advised(tmp_path_factory):
    """The advice on a script, and its text."""

    def record(rule, how):
        folder = tmp_path_factory.mktemp(f"{rule}-{how}")
        text = HEAD + textwrap.dedent(SCRIPTS[rule])
        (folder / "train.py").write_text(text, encoding="utf-8")
        done = python(*recorded("RUN", "train.py", how), cwd=folder)
        assert done.returncode == 0, done.stderr
        with open_run(folder / "RUN") as opened:
            return opened.advise(*SCRIPTS), text

    return record


@pytest.mark.slow
@pytest.mark.parametrize("rule", SCRIPTS)
def test_the_fault_is_the_first_finding(rule, advised):
    advice, text = advised(rule, "fault")
    assert next(iter(advice.findings), None) == rule, advice
    finding = advice.findings[rule]
    assert finding.expected_speedup > 1.15
    if rule in SEEN and "train.py" in str(finding.where):
        lines = [number for number, line in enumerate(text.splitlines(), 1) if "# here" in line]
        assert finding.where == f"train.py:{lines[0]}"
    assert finding.where


@pytest.mark.slow
@pytest.mark.parametrize("rule", SCRIPTS)
def test_its_repaired_twin_is_clear(rule, advised):
    advice, _ = advised(rule, "repaired")
    assert not advice.findings and set(advice.clear) == set(SCRIPTS)
