"""Logistic regression of many classes, written out: gradients and update by hand."""

import torch

torch.manual_seed(0)
torch.set_num_threads(1)
rows, columns, classes = 512, 1024, 512
x = torch.randn(12, rows, columns)
y = torch.randint(0, classes, (12, rows))
weight = (0.01 * torch.randn(columns, classes)).requires_grad_()
bias = torch.zeros(classes, requires_grad=True)
for epoch in range(10):
    for batch, labels in zip(x, y):
        loss = torch.nn.functional.cross_entropy(batch @ weight + bias, labels)
        loss.backward()
        with torch.no_grad():
            weight -= 0.05 * weight.grad
            bias -= 0.05 * bias.grad
        weight.grad = bias.grad = None
    print(epoch, loss.item())
