"""Train and validate in turn; the best model is kept."""

import argparse
import copy

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split


@torch.no_grad()
def accuracy(model, loader):
    model.eval()
    right = sum((model(x).argmax(1) == y).sum().item() for x, y in loader)
    model.train()
    return right / len(loader.dataset)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=4)
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    x = torch.randn(64 * 46, 256)
    everything = TensorDataset(x, (x[:, :8].sum(1) > 0).long())
    train, valid = random_split(everything, [64 * 44, 64 * 2])
    train_loader = DataLoader(train, batch_size=64, shuffle=True)
    valid_loader = DataLoader(valid, batch_size=128)
    model = nn.Sequential(
        nn.Linear(256, 1280), nn.ReLU(), nn.Dropout(0.1), nn.Linear(1280, 1280), nn.ReLU(),
        nn.Linear(1280, 2),
    )  # fmt: skip
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    best, best_weights = 0.0, None
    for epoch in range(args.epochs):
        for a, b in train_loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(a), b)
            loss.backward()
            optimizer.step()
        score = accuracy(model, valid_loader)
        if score > best:
            best, best_weights = score, copy.deepcopy(model.state_dict())
        print(f"epoch {epoch}: accuracy {score:.3f}")
    model.load_state_dict(best_weights)


if __name__ == "__main__":
    main()
