"""optax.MultiSteps: three calls per update."""

import jax
import jax.numpy as jnp
import numpy as np
import optax

optimizer = optax.MultiSteps(optax.adam(0.01), every_k_schedule=3)


def loss_fn(weights, x):
    return jnp.mean((x @ weights) ** 2)


@jax.jit
def train_step(weights, state, x):
    loss, gradient = jax.value_and_grad(loss_fn)(weights, x)
    updates, state = optimizer.update(gradient, state, weights)
    return optax.apply_updates(weights, updates), state, loss


random = np.random.default_rng(0)
weights = jnp.asarray(random.normal(size=(8, 4)), jnp.float32)
state = optimizer.init(weights)
for call in range(18):
    x = random.normal(size=(16, 8)).astype(np.float32)
    weights, state, loss = train_step(weights, state, x)
    print("metric", call // 3 + 1, "loss", repr(float(loss)))
print("result", repr(float(weights.sum())))
