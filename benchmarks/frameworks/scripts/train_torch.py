import tempfile

import torch
from common import RATE, RECORDED, SIZES, Stopwatch, batches, uses_own_profiler, weights
from torch import nn

layers = [nn.Linear(*size) for size in zip(SIZES[:-1], SIZES[1:], strict=True)]
for layer, start in zip(layers, weights(), strict=True):
    layer.weight.data = torch.from_numpy(start.T.copy())
    nn.init.zeros_(layer.bias)
model = nn.Sequential(layers[0], nn.ReLU(), layers[1], nn.ReLU(), layers[2])
optimizer = torch.optim.SGD(model.parameters(), lr=RATE)
criterion = nn.CrossEntropyLoss()
profiler = torch.profiler.profile(
    activities=[torch.profiler.ProfilerActivity.CPU], record_shapes=True
)

watch = Stopwatch()
for step, (x, y) in enumerate(batches(), 1):
    if uses_own_profiler() and step == RECORDED.start:
        profiler.start()
    loss = criterion(model(torch.from_numpy(x)), torch.from_numpy(y).long())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    watch.step(loss.item())
    if uses_own_profiler() and step == RECORDED.stop - 1:
        profiler.stop()
        profiler.export_chrome_trace(f"{tempfile.mkdtemp()}/trace.json")
watch.write()
