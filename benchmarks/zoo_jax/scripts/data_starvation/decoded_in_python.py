"""Regression on records that are decoded in Python, value by value, as they are needed."""

import jax
import jax.numpy as jnp
import numpy as np

STEPS, BATCH, FEATURES = 150, 512, 128


def init(key, sizes):
    keys = jax.random.split(key, len(sizes) - 1)
    shapes = zip(keys, sizes[:-1], sizes[1:], strict=True)
    return [(jax.random.normal(k, (a, b)) / np.sqrt(a), jnp.zeros(b)) for k, a, b in shapes]


def forward(params, x):
    for weights, bias in params[:-1]:
        x = jax.nn.relu(x @ weights + bias)
    weights, bias = params[-1]
    return x @ weights + bias


def loss_of(params, x, y):
    return jnp.mean((forward(params, x) - y) ** 2)


@jax.jit
def train_step(params, x, y):
    loss, gradients = jax.value_and_grad(loss_of)(params, x, y)
    return jax.tree.map(lambda p, g: p - 1e-3 * g, params, gradients), loss


VALUES = np.random.default_rng(0).normal(size=(256, FEATURES))
RAW = [",".join(f"{value:.3f}" for value in row) for row in VALUES]


def decode(line):
    return [float(field) for field in line.split(",")]


def batches():
    order = np.random.default_rng(1)
    for _ in range(STEPS):
        chosen = order.integers(0, len(RAW), size=BATCH)
        x = np.array([decode(RAW[i]) for i in chosen], dtype=np.float32)
        yield x, x.sum(axis=1, keepdims=True)


def main():
    params = init(jax.random.key(0), (FEATURES, 768, 768, 1))
    history = []
    for x, y in batches():
        params, loss = train_step(params, x, y)
        history.append(float(loss))
    print(history[-1])


if __name__ == "__main__":
    main()
