"""Small adapters between the layers of a pretrained encoder learn; the encoder stays as it is."""

import torch
from torch import nn

WIDTH, TOKENS, LAYERS, STEPS = 192, 64, 4, 60


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(WIDTH, 4, batch_first=True)
        self.feed = nn.Sequential(
            nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH)
        )
        self.adapter = nn.Sequential(nn.Linear(WIDTH, 16), nn.ReLU(), nn.Linear(16, WIDTH))

    def forward(self, x):
        x = x + self.attention(x, x, x, need_weights=False)[0]
        return x + self.adapter(self.feed(x))


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.Sequential(*(Block() for _ in range(LAYERS)))
        self.head = nn.Linear(WIDTH, 5)

    def forward(self, x):
        return self.head(self.blocks(x).mean(1))


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = Classifier()
    learned = [*model.head.parameters()]
    model.blocks.requires_grad_(False)
    for block in model.blocks:
        block.adapter.requires_grad_(True)
        learned += block.adapter.parameters()
    optimizer = torch.optim.AdamW(learned, lr=1e-3)
    x, y = torch.randn(STEPS, 8, TOKENS, WIDTH), torch.randint(0, 5, (STEPS, 8))
    for step in range(STEPS):
        loss = nn.functional.cross_entropy(model(x[step]), y[step])
        model.zero_grad()
        loss.backward()
        optimizer.step()
    print(loss.item())


if __name__ == "__main__":
    main()
