"""Nothing is compiled; the norm is computed after the gradient, and read at the end of the step."""

import jax
import jax.numpy as jnp
import numpy as np
import optax


def loss_fn(params, x, y):
    return jnp.mean((jnp.tanh(x @ params["a"]) @ params["b"] - y) ** 2)


random = np.random.default_rng(0)
params = {name: jnp.asarray(random.normal(size=size), jnp.float32)
          for name, size in (("a", (8, 16)), ("b", (16, 1)))}  # fmt: skip
optimizer = optax.adam(0.01)
state = optimizer.init(params)
for step in range(1, 13):
    x = random.normal(size=(32, 8)).astype(np.float32)
    loss, gradients = jax.value_and_grad(loss_fn)(params, x, x[:, :1])
    norm = optax.global_norm(gradients)
    updates, state = optimizer.update(gradients, state, params)
    params = optax.apply_updates(params, updates)
    print("metric", step, "loss", repr(float(loss)))
    print("metric", step, "gradient_norm", repr(float(norm)))
print("result", repr(float(params["a"].sum())))
