"""Gradients in a compiled function inside of the step; losses are read after training."""

import jax
import jax.numpy as jnp
import numpy as np


def loss_fn(weights, x):
    return jnp.mean(jnp.tanh(x @ weights) ** 2)


gradients_of = jax.jit(jax.value_and_grad(loss_fn))


@jax.jit
def step_of(weights, x):
    loss, gradients = gradients_of(weights, x)
    return loss, weights - 0.1 * gradients


random = np.random.default_rng(0)
weights = jnp.asarray(random.normal(size=(64, 64)), jnp.float32)
losses = []
for _ in range(20):
    loss, weights = step_of(weights, random.normal(size=(256, 64)).astype(np.float32))
    losses.append(loss)
for step, loss in enumerate(losses, start=1):
    print("metric", step, "loss", repr(float(loss)))
print("result", repr(float(weights.sum())))
