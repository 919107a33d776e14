"""The loss is no result of the program, so it cannot be recorded; another number is."""

import jax
import jax.numpy as jnp
import numpy as np


@jax.jit
def train_step(weights, x):
    loss, gradient = jax.value_and_grad(lambda w: jnp.mean((x @ w) ** 2))(weights)
    return weights - 0.1 * gradient, loss * 2


random = np.random.default_rng(0)
weights = jnp.asarray(random.normal(size=(8, 4)), jnp.float32)
for _ in range(12):
    weights, doubled = train_step(weights, random.normal(size=(16, 8)).astype(np.float32))
    float(doubled)
print("result", repr(float(weights.sum())))
