"""Gradient descent with single operations, on parameters of 28 bytes."""

import jax
import jax.numpy as jnp
import numpy as np


def loss_fn(params, x, y):
    return jnp.mean((x @ params["w"] + params["b"] - y) ** 2)


random = np.random.default_rng(0)
params = {"w": jnp.zeros(6), "b": jnp.zeros(())}
for step in range(1, 21):
    x = random.normal(size=(32, 6)).astype(np.float32)
    loss, gradients = jax.value_and_grad(loss_fn)(params, x, x[:, 0])
    params = jax.tree.map(lambda p, g: p - 0.1 * g, params, gradients)
    print("metric", step, "loss", repr(float(loss)))
print("result", repr(float(params["w"].sum())))
