"""The oldest and the newest torch, where interpreters with them are named.

Both pull gigabytes, so no environment is made for them: STROBE_TEST_PYTHON_TORCH_OLDEST and
STROBE_TEST_PYTHON_TORCH_NEWEST name a Python that has torch and what Strobe needs.
"""

import os

import pytest

from tests.frameworks.environment import rows, run

pytestmark = pytest.mark.slow

SCRIPT = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(net.parameters())
data = TensorDataset(torch.randn(40, 8))
for epoch in range(2):
    for (x,) in DataLoader(data, batch_size=4, num_workers=2):
        optimizer.zero_grad()
        net(x).mean().backward()
        optimizer.step()
"""


@pytest.mark.parametrize("which", ["torch_oldest", "torch_newest"])
@pytest.mark.parametrize("option", ["--no-with-stack", "--with-stack"])
def test_a_recording_is_complete(tmp_path, which, option):
    if not os.environ.get(f"STROBE_TEST_PYTHON_{which.upper()}"):
        pytest.skip(f"STROBE_TEST_PYTHON_{which.upper()} names no interpreter")
    (tmp_path / "train.py").write_text(SCRIPT)
    words = ("-m", "strobe", "run", "-q", option, "-o", "run", "train.py")
    done = run(which, *words, cwd=tmp_path)
    assert done.returncode == 0 and done.stderr == "", done.stderr
    (found,) = rows(which, tmp_path / "run", """
        SELECT (SELECT count(*) FROM steps) AS steps,
               (SELECT count(*) FROM batches WHERE worker >= 0) AS batches,
               (SELECT count(*) FROM events WHERE kind = 'op' AND scope = 'Sequential.0') > 0
                   AS has_modules,
               (SELECT count(*) FROM events WHERE kind = 'phase' AND name = 'backward') AS backward,
               (SELECT count(*) FROM problems) AS problems
    """)  # fmt: skip
    assert found == {
        "steps": 20, "batches": 20, "has_modules": True, "backward": 20, "problems": 0,
    }  # fmt: skip
