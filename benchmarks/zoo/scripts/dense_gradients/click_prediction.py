"""Clicks are predicted from the numbers of users and items, looked up in two large tables."""

import torch
from torch import nn

USERS, ITEMS, WIDTH, BATCH, STEPS = 120_000, 60_000, 32, 256, 80


class TwoTowers(nn.Module):
    def __init__(self):
        super().__init__()
        self.users = nn.Embedding(USERS, WIDTH)
        self.items = nn.Embedding(ITEMS, WIDTH)
        self.head = nn.Sequential(
            nn.Linear(2 * WIDTH, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 1)
        )

    def forward(self, user, item):
        return self.head(torch.cat([self.users(user), self.items(item)], 1)).squeeze(1)


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = TwoTowers()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    users = torch.randint(0, USERS, (STEPS, BATCH))
    items = torch.randint(0, ITEMS, (STEPS, BATCH))
    clicked = torch.randint(0, 2, (STEPS, BATCH)).float()
    for user, item, click in zip(users, items, clicked, strict=True):
        loss = nn.functional.binary_cross_entropy_with_logits(model(user, item), click)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(loss.item())


if __name__ == "__main__":
    main()
