"""Another thread runs the model for its own ends while training goes on."""

import threading

import torch
from common import data, model
from torch.nn import functional

net, served = model(), model()
stop = threading.Event()


def serve():
    while not stop.is_set():
        with torch.no_grad():
            served(torch.zeros(4, 8))


thread = threading.Thread(target=serve)
thread.start()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for x, y in data(20):
    optimizer.zero_grad()
    loss = functional.mse_loss(net(x), y)
    loss.backward()
    optimizer.step()
stop.set()
thread.join()
print(loss.item())
