"""flax.nnx as its guides show it: metrics are state that training and evaluation both carry.

`python with_nnx.py [first | each]`: evaluate before training too, or after each step.
"""

import sys

import numpy as np
import optax
from flax import nnx

EPOCHS, STEPS, EVALUATIONS = 2, 20, 6
MODE = sys.argv[1] if len(sys.argv) > 1 else ""


class Net(nnx.Module):
    def __init__(self, rngs):
        self.first = nnx.Linear(32, 64, rngs=rngs)
        self.norm = nnx.BatchNorm(64, rngs=rngs)
        self.dropout = nnx.Dropout(0.1)
        self.second = nnx.Linear(64, 10, rngs=rngs)

    def __call__(self, x, rngs):
        return self.second(nnx.relu(self.dropout(self.norm(self.first(x)), rngs=rngs)))


def loss_of(model, batch, rngs):
    logits = model(batch["x"], rngs)
    losses = optax.softmax_cross_entropy_with_integer_labels(logits, batch["y"])
    return losses.mean(), logits


@nnx.jit
def train_step(model, optimizer, metrics, batch, rngs):
    take_gradient = nnx.value_and_grad(loss_of, has_aux=True)
    (loss, logits), gradients = take_gradient(model, batch, rngs)
    metrics.update(loss=loss, logits=logits, labels=batch["y"])
    optimizer.update(model, gradients)


@nnx.jit
def eval_step(model, metrics, batch):
    loss, logits = loss_of(model, batch, None)
    metrics.update(loss=loss, logits=logits, labels=batch["y"])


def evaluate(model, metrics, random, count=EVALUATIONS):
    model.eval()
    metrics.reset()
    for _ in range(count):
        eval_step(model, metrics, make_batch(random))
    metrics.compute()
    metrics.reset()
    model.train()


def make_batch(random):
    return {"x": random.normal(size=(16, 32)).astype("float32"), "y": random.integers(0, 10, 16)}


def main():
    random = np.random.default_rng(0)
    model, rngs = Net(nnx.Rngs(0)), nnx.Rngs(0)
    optimizer = nnx.Optimizer(model, optax.sgd(0.01, 0.9), wrt=nnx.Param)
    metrics = nnx.MultiMetric(accuracy=nnx.metrics.Accuracy(), loss=nnx.metrics.Average("loss"))
    if MODE == "first":
        evaluate(model, metrics, random)
    for _ in range(EPOCHS):
        for _ in range(STEPS):
            train_step(model, optimizer, metrics, make_batch(random), rngs)
            if MODE == "each":
                evaluate(model, metrics, random, 1)
        evaluate(model, metrics, random)


if __name__ == "__main__":
    main()
