"""Two compiled functions: gradients, whose sum and norm the script computes, and updates."""

import jax
import jax.numpy as jnp
import numpy as np
import optax

random = np.random.default_rng(0)
weights = jnp.asarray(random.normal(size=(8, 8)), jnp.float32)
optimizer = optax.sgd(0.1)
state = optimizer.init(weights)
value_and_gradient = jax.jit(jax.value_and_grad(lambda w, x: jnp.mean((x @ w) ** 2)))


@jax.jit
def update(weights, state, gradient):
    updates, state = optimizer.update(gradient, state)
    return optax.apply_updates(weights, updates), state


losses = []
for step in range(1, 13):
    total = jnp.zeros_like(weights)
    for _ in range(2):
        x = random.normal(size=(4, 8)).astype(np.float32)
        loss, gradient = value_and_gradient(weights, x)
        total = total + gradient / 2
        losses.append((step, loss))
    norm = optax.global_norm(total)
    weights, state = update(weights, state, total)
    print("metric", step, "gradient_norm", repr(float(norm)))
for step, loss in losses:
    print("metric", step, "loss", repr(float(loss)))
print("result", repr(float(weights.sum())))
