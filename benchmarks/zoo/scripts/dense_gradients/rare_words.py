"""Texts are classified by the mean of their words, out of a large vocabulary."""

import torch
from torch import nn

WORDS, WIDTH, LENGTH, BATCH, STEPS = 80_000, 64, 20, 48, 60


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(WORDS, WIDTH)
        self.encoder = nn.GRU(WIDTH, 96, batch_first=True)
        self.head = nn.Linear(96, 4)

    def forward(self, text):
        return self.head(self.encoder(self.words(text))[0].mean(1))


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = Classifier()
    optimizers = [torch.optim.Adam(model.parameters(), lr=1e-3)]
    texts = torch.randint(0, WORDS, (STEPS, BATCH, LENGTH))
    labels = torch.randint(0, 4, (STEPS, BATCH))
    for text, label in zip(texts, labels, strict=True):
        loss = nn.functional.cross_entropy(model(text), label)
        for optimizer in optimizers:
            optimizer.zero_grad()
        loss.backward()
        for optimizer in optimizers:
            optimizer.step()
    print(loss.item())


if __name__ == "__main__":
    main()
