"""A rank of the job that benchmarks/dynamic.py edits the file of: small steps of even length, which
all ranks make together."""

import json
import os
import subprocess
import sys
import time


def train(step_s: float, report: str, stop: str) -> None:
    import torch
    from torch import distributed

    torch.set_num_threads(1)
    distributed.init_process_group(
        "gloo", init_method=f"file://{stop}-store",
        rank=int(os.environ["RANK"]), world_size=int(os.environ["WORLD_SIZE"]),
    )  # fmt: skip
    model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 8))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    ends = []
    due = time.monotonic()
    is_over = torch.zeros(1)
    while not is_over.item():
        began = time.monotonic_ns()
        optimizer.zero_grad()
        model(torch.randn(16, 64)).square().mean().backward()
        optimizer.step()
        ended = time.monotonic_ns()
        ends.append((ended, ended - began))
        is_over += os.path.exists(stop)
        distributed.all_reduce(is_over)
        due = max(due + step_s, time.monotonic())
        time.sleep(max(0.0, due - time.monotonic()))
    distributed.destroy_process_group()
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
