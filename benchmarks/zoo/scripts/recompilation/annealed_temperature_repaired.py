"""A compiled network with a temperature that falls now and then."""

import torch
import torch._dynamo
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
torch._dynamo.config.recompile_limit = 100
torch._dynamo.config.specialize_float = True


class Chooser(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 32)
        )
        self.codes = nn.Linear(32, 256)
        self.register_buffer("temperature", torch.tensor(2.0))

    def forward(self, x):
        weights = torch.softmax(self.layers(x) / self.temperature, dim=1)
        return self.codes(weights)


model = Chooser()
compiled = torch.compile(model, backend="aot_eager")
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
data = torch.randn(30, 128, 256)
for step in range(160):
    x = data[step % 30]
    loss = nn.functional.mse_loss(compiled(x), x)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 20 == 19:
        model.temperature *= 0.9
    if step % 20 == 0:
        print(f"{step} {loss.item():.4f} at {float(model.temperature):.2f}")
