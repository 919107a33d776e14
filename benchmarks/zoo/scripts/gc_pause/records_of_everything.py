"""Each sample's prediction is kept as a record, for an error analysis afterwards."""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def records_of(step, logits, labels):
    guesses = logits.argmax(dim=1).tolist()
    return [
        {"step": step, "guess": guess, "label": label, "tags": []}
        for guess, label in zip(guesses, labels.tolist())
    ]


def train(args):
    x = torch.randn(2048 * 12, 64)
    data = TensorDataset(x, (x.sum(dim=1) > 0).long())
    loader = DataLoader(data, batch_size=None, sampler=torch.arange(len(x)).split(2048))
    net = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 2))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    history, step = [], 0
    for _ in range(args.epochs):
        for batch, labels in loader:
            logits = net(batch)
            loss = nn.functional.cross_entropy(logits, labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            history.extend(records_of(step, logits.detach(), labels))
            step += 1
    wrong = sum(record["guess"] != record["label"] for record in history)
    print(f"{len(history)} records, {wrong} wrong")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=25)
    torch.manual_seed(0)
    torch.set_num_threads(1)
    train(parser.parse_args())
