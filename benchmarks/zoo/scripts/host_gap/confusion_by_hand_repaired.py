"""Image classifier that keeps a confusion matrix while it trains."""

import argparse

import torch
from torch import nn

CLASSES = 50


class Confusion:
    def __init__(self):
        self.counts = torch.zeros(CLASSES * CLASSES, dtype=torch.long)

    def update(self, logits, labels):
        guesses = logits.argmax(dim=1)
        self.counts += torch.bincount(labels * CLASSES + guesses, minlength=CLASSES**2)


def make_model():
    return nn.Sequential(
        nn.Flatten(), nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(),
        nn.Linear(256, CLASSES),
    )  # fmt: skip


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=4)
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    all_images = torch.rand(256 * 30, 1, 28, 28)
    all_labels = torch.randint(0, CLASSES, (256 * 30,))
    model, confusion = make_model(), Confusion()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for epoch in range(args.epochs):
        for chosen in torch.randperm(len(all_images)).split(256):
            images, labels = all_images[chosen], all_labels[chosen]
            logits = model(images)
            loss = nn.functional.cross_entropy(logits, labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            confusion.update(logits.detach(), labels)
        print(f"epoch {epoch}: loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
