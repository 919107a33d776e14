"""Many small layers whose update is written outside the compiled function, array by array."""

import jax
import jax.numpy as jnp
import numpy as np

STEPS, BATCH, FEATURES, LAYERS = 80, 64, 64, 60


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


gradients_of = jax.value_and_grad(loss_of)


@jax.jit
def train_step(params, moments, x, y):
    loss, gradients = gradients_of(params, x, y)
    moments = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, moments, gradients)
    return jax.tree.map(lambda p, m: p - 1e-3 * m, params, moments), moments, loss


def main():
    params = init(jax.random.key(0), (FEATURES,) * LAYERS + (1,))
    moments = jax.tree.map(jnp.zeros_like, params)
    random = np.random.default_rng(0)
    x = random.normal(size=(BATCH, FEATURES)).astype(np.float32)
    y = x.sum(axis=1, keepdims=True)
    for _ in range(STEPS):
        params, moments, loss = train_step(params, moments, x, y)
        float(loss)


if __name__ == "__main__":
    main()
