"""A compiled step takes and returns a typed random key, before its loss."""

import jax
import jax.numpy as jnp
import numpy as np
import optax


@jax.jit
def train_step(key, weights, x):
    key, part = jax.random.split(key)

    def loss_fn(weights):
        return jnp.mean((x * jax.random.bernoulli(part, 0.9, x.shape) @ weights) ** 2)

    loss, gradient = jax.value_and_grad(loss_fn)(weights)
    return key, weights - 0.1 * gradient, loss, optax.global_norm(gradient)


random = np.random.default_rng(0)
key = jax.random.key(0)
weights = jnp.asarray(random.normal(size=(8, 4)), jnp.float32)
for step in range(1, 13):
    x = random.normal(size=(16, 8)).astype(np.float32)
    key, weights, loss, norm = train_step(key, weights, x)
    print("metric", step, "loss", repr(float(loss)))
    print("metric", step, "gradient_norm", repr(float(norm)))
print("result", repr(float(weights.sum())))
