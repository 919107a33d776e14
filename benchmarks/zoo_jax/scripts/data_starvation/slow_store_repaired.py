"""Regression on rows that come from a store over the network, asked for when they are needed."""

import time
from concurrent.futures import ThreadPoolExecutor

import jax
import jax.numpy as jnp
import numpy as np

STEPS, BATCH, FEATURES = 200, 512, 128


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


def fetch(number):
    """A page of the store; the answer takes its time."""
    time.sleep(0.012)
    x = np.random.default_rng(number).normal(size=(BATCH, FEATURES)).astype(np.float32)
    return x, x.sum(axis=1, keepdims=True)


def pages():
    with ThreadPoolExecutor(4) as pool:
        yield from pool.map(fetch, range(STEPS))


def main():
    params = init(jax.random.key(0), (FEATURES, 768, 768, 1))
    history = []
    for x, y in pages():
        params, loss = train_step(params, x, y)
        history.append(float(loss))
    print(history[-1])


if __name__ == "__main__":
    main()
