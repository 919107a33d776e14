"""A rank of the job that benchmarks/dynamic.py edits the file of: small steps of even length."""

import json
import os
import subprocess
import sys
import time


def train(step_s: float, report: str, stop: str) -> None:
    import torch

    torch.set_num_threads(1)
    model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 8))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    ends = []
    due = time.monotonic()
    while not os.path.exists(stop):
        began = time.monotonic_ns()
        optimizer.zero_grad()
        model(torch.randn(16, 64)).square().mean().backward()
        optimizer.step()
        ended = time.monotonic_ns()
        ends.append((ended, ended - began))
        due = max(due + step_s, time.monotonic())
        time.sleep(max(0.0, due - time.monotonic()))
    with open(f"{report}-{os.environ['RANK']}.json", "w", encoding="utf-8") as file:
        json.dump(ends, file)


def launch(ranks: int, *args: str) -> int:
    """As many ranks, without a launcher of torch's: they share nothing but the run."""
    children = [
        subprocess.Popen(
            [sys.executable, __file__, "train", *args],
            env={**os.environ, "RANK": str(rank), "WORLD_SIZE": str(ranks)},
        )
        for rank in range(ranks)
    ]
    return max(child.wait() for child in children)


if __name__ == "__main__":
    what, *rest = sys.argv[1:]
    if what == "train":
        train(float(rest[0]), rest[1], rest[2])
    else:
        sys.exit(launch(int(rest[0]), *rest[1:]))
