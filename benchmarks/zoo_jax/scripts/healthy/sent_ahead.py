"""Regression; the loss is looked at now and then, and the device is kept busy."""

import functools

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


@functools.partial(jax.jit, donate_argnums=0)
def train_step(params, x, y):
    loss, gradients = jax.value_and_grad(loss_of)(params, x, y)
    return jax.tree.map(lambda p, g: p - 1e-3 * g, params, gradients), loss


def main():
    params = init(jax.random.key(0), (FEATURES, 768, 768, 1))
    random = np.random.default_rng(0)
    for step in range(STEPS):
        x = random.normal(size=(BATCH, FEATURES)).astype(np.float32)
        params, loss = train_step(params, x, x.sum(axis=1, keepdims=True))
        if step % 50 == 0:
            print(step, float(loss))
    jax.block_until_ready(params)


if __name__ == "__main__":
    main()
