"""Regression with a penalty on all singular values of a layer, worked out at every step."""

import jax
import jax.numpy as jnp
import numpy as np

STEPS, BATCH, FEATURES = 80, 512, 128


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
    values = jnp.linalg.svd(params[0][0], compute_uv=False)
    return jnp.mean((forward(params, x) - y) ** 2) + 1e-4 * values.max()


@jax.jit
def train_step(params, x, y):
    loss, gradients = jax.value_and_grad(loss_of)(params, x, y)
    return jax.tree.map(lambda p, g: p - 1e-3 * g, params, gradients), loss


def main():
    params = init(jax.random.key(0), (FEATURES, 512, 512, 1))
    random = np.random.default_rng(0)
    x = random.normal(size=(BATCH, FEATURES)).astype(np.float32)
    y = x.sum(axis=1, keepdims=True)
    for _ in range(STEPS):
        params, loss = train_step(params, x, y)
        float(loss)


if __name__ == "__main__":
    main()
