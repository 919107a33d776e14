"""Language model on random tokens; a checkpoint every few steps."""

import argparse
import os

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, vocabulary=4000, width=384):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.body = nn.LSTM(width, width, batch_first=True)
        self.head = nn.Linear(width, vocabulary)

    def forward(self, ids):
        out, _ = self.body(self.embedding(ids))
        return self.head(out[:, -1])


def save(model, optimizer, step):
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, "last.pt.new")
    with open("last.pt.new", "rb+") as file:
        os.fsync(file.fileno())
    os.replace("last.pt.new", "last.pt")
    print("saved at step", step)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=120)
    parser.add_argument("--save-every", type=int, default=8)
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = Model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    tokens = torch.randint(0, 4000, (4, 17 * args.steps))
    for step in range(1, args.steps + 1):
        ids = tokens[:, 17 * (step - 1) : 17 * step]
        loss = nn.functional.cross_entropy(model(ids[:, :-1]), ids[:, -1])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % args.save_every == 0:
            save(model, optimizer, step)
    print("loss", loss.item())


if __name__ == "__main__":
    main()
