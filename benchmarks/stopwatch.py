"""Are the parts of a step right? Strobe's against a stopwatch put into the script by hand.

    python -m benchmarks.stopwatch [--repeat N]

The script reads the clock after the batch, after the loss, before and after backward and after the
update. Steps in which full recording starts or ends are left out: Strobe tells its own work apart,
the stopwatch cannot.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

SCRIPT = """
import json, sys, time
import torch
from torch import nn
from torch.nn import functional

torch.manual_seed(0)
torch.set_num_threads(1)


class Slow(torch.utils.data.Dataset):
    def __len__(self):
        return 60 * 16

    def __getitem__(self, index):
        until = time.perf_counter() + 0.0003
        while time.perf_counter() < until:
            pass
        return torch.randn(128), index % 10


net = nn.Sequential(nn.Linear(128, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(),
                    nn.Linear(1024, 10))
optimizer = torch.optim.Adam(net.parameters())
now, rows = time.perf_counter_ns, []
ended = now()
for x, y in torch.utils.data.DataLoader(Slow(), batch_size=16):
    came = now()
    loss = functional.cross_entropy(net(x), y)
    forward = now()
    optimizer.zero_grad()
    cleared = now()
    loss.backward()
    backward = now()
    optimizer.step()
    updated = now()
    rows.append([came - ended, forward - came, backward - cleared, updated - backward,
                 updated - ended])
    ended = updated
json.dump(rows, open(sys.argv[1], "w"))
"""
PARTS = ("gap", "forward", "backward", "update", "step")


def differences(folder: Path) -> dict[str, list[float]]:
    import strobe

    script, truth = folder / "train.py", folder / "truth.json"
    script.write_text(SCRIPT)
    command = [sys.executable, "-m", "strobe", "run", "-q", "-o", str(folder / "run")]
    subprocess.run([*command, str(script), str(truth)], check=True)
    with strobe.open_run(folder / "run") as run:
        rows = run.sql(
            "SELECT gap_ns, forward_ns, backward_ns, update_ns, dur_ns, recorder_ns"
            " FROM steps ORDER BY step"
        ).fetchall()
    measured = json.loads(truth.read_text())
    assert len(rows) == len(measured), (len(rows), len(measured))
    # The first step begins for Strobe when it asks for data, not when the stopwatch was started.
    pairs = [(a, b) for a, b in zip(measured[1:], rows[1:], strict=True) if not b[5]]
    return {
        part: [(ours[i] - truth[i]) / truth[i] for truth, ours in pairs]
        for i, part in enumerate(PARTS)
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=3)
    args = parser.parse_args()
    found: dict[str, list[float]] = {part: [] for part in PARTS}
    for _ in range(args.repeat):
        with tempfile.TemporaryDirectory() as folder:
            for part, values in differences(Path(folder)).items():
                found[part] += values
    for part, values in found.items():
        values.sort()
        within = sum(abs(value) <= 0.02 for value in values) / len(values)
        print(
            f"{part:9} median {statistics.median(values):+.2%}"
            f"  [{values[len(values) // 20]:+.2%} .. {values[-1 - len(values) // 20]:+.2%}]"
            f"  {within:.0%} of {len(values)} steps within 2 %"
        )


if __name__ == "__main__":
    main()
