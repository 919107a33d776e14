"""Click prediction from many categorical columns."""

import torch
from torch import nn

COLUMNS, VALUES, WIDTH = 100, 16, 8
torch.manual_seed(0)
torch.set_num_threads(1)


class Clicks(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(COLUMNS * VALUES, WIDTH)
        self.register_buffer("offsets", torch.arange(COLUMNS) * VALUES)
        self.deep = nn.Sequential(
            nn.Linear(COLUMNS * WIDTH, 768), nn.ReLU(), nn.Linear(768, 256), nn.ReLU(),
            nn.Linear(256, 1),
        )  # fmt: skip

    def forward(self, columns):
        return self.deep(self.table(columns + self.offsets).flatten(1)).squeeze(1)


rows = torch.randint(0, VALUES, (128 * 50, COLUMNS))
clicked = (rows[:, 0] > rows[:, 1]).float()
model = Clicks()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, foreach=True)
criterion = nn.BCEWithLogitsLoss()
for epoch in range(3):
    for x, y in zip(rows.split(128), clicked.split(128)):
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
