"""A compiled step that donates its state, with a scheduled learning rate and a norm."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import optax


def loss_fn(params, x, y):
    return jnp.mean((jnp.tanh(x @ params["a"]) @ params["b"] - y) ** 2)


schedule = optax.cosine_decay_schedule(0.01, 20)
optimizer = optax.inject_hyperparams(optax.adam)(learning_rate=schedule)


@functools.partial(jax.jit, donate_argnums=(0, 1))
def train_step(params, state, x, y):
    loss, gradients = jax.value_and_grad(loss_fn)(params, x, y)
    updates, state = optimizer.update(gradients, state, params)
    metrics = {"accuracy": x.mean(), "norm": optax.global_norm(gradients), "loss": loss}
    return optax.apply_updates(params, updates), state, metrics


random = np.random.default_rng(0)
params = {name: jnp.asarray(random.normal(size=size), jnp.float32)
          for name, size in (("a", (8, 16)), ("b", (16, 1)))}  # fmt: skip
state = optimizer.init(params)
for step in range(1, 13):
    x = random.normal(size=(32, 8)).astype(np.float32)
    params, state, metrics = train_step(params, state, x, x[:, :1])
    print("metric", step, "loss", repr(float(metrics["loss"])))
    print("metric", step, "gradient_norm", repr(float(metrics["norm"])))
    print("metric", step, "learning_rate", repr(float(state.hyperparams["learning_rate"])))
print("result", repr(float(params["a"].sum())))
