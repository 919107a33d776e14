"""Forecast a signal; a callback writes every step to a log that must not be lost."""

import json
import os
import time

import torch
from torch import nn


class Log:
    """One line of JSON for each call, sent to a collector that answers after a while."""

    def __init__(self, path):
        self.file = open(path, "w")

    def send(self, **fields):
        self.file.write(json.dumps(fields) + "\n")
        self.file.flush()
        os.fsync(self.file.fileno())
        time.sleep(0.008)  # the collector's receipt


class Trainer:
    def __init__(self, model, log):
        self.model, self.log = model, log
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
        self.callbacks = [self.on_step_end]

    def on_step_end(self, step, loss):
        if step % 50 == 0:
            self.log.send(step=step, loss=loss)

    def fit(self, batches):
        for step, (x, y) in enumerate(batches):
            loss = nn.functional.mse_loss(self.model(x), y)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            for callback in self.callbacks:
                callback(step, loss.item())


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    time_axis = torch.linspace(0, 100, 64 * 160 + 256)
    windows = (time_axis.sin() + 0.1 * torch.randn_like(time_axis)).unfold(0, 256, 1)
    batches = [
        (windows[i : i + 64, :-16], windows[i : i + 64, -16:]) for i in range(0, 64 * 160, 64)
    ]
    model = nn.Sequential(nn.Linear(240, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(),
                          nn.Linear(1024, 16))  # fmt: skip
    Trainer(model, Log("training.log")).fit(batches)


if __name__ == "__main__":
    main()
