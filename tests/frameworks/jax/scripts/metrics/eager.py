"""Nothing is compiled; the function has another result, too."""

import jax
import jax.numpy as jnp
import numpy as np


def loss_fn(weights, x):
    made = x @ weights
    return jnp.mean(made**2), made


random = np.random.default_rng(0)
weights = jnp.asarray(random.normal(size=(8, 4)), jnp.float32)
for step in range(1, 13):
    x = random.normal(size=(16, 8)).astype(np.float32)
    (loss, made), gradient = jax.value_and_grad(loss_fn, has_aux=True)(weights, x)
    weights = weights - 0.1 * gradient
    print("metric", step, "loss", repr(float(loss)))
print("result", repr(float(weights.sum())))
