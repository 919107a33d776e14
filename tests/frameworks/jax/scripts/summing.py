"""optax.MultiSteps: `python summing.py SHAPE OUT`, where SHAPE tells how many calls are a step."""

import functools
import json
import sys

import jax
import jax.numpy as jnp
import numpy as np
import optax

SHAPE, OUT = sys.argv[1:3]
CALLS = 60


def each(update):
    """Calls that make the next update, once so many have been made."""
    return jnp.where(update < 5, 2, 5)


def optimizer():
    schedule = {"one": 1, "scheduled": each}.get(SHAPE, 4)
    skips = optax.skip_not_finite if SHAPE == "skipped" else None
    return optax.MultiSteps(optax.adam(1e-3), schedule, should_skip_update_fn=skips)


def loss_of(params, x, y):
    for layer in params[:-1]:
        x = jnp.tanh(x @ layer)
    return jnp.mean((x @ params[-1] - y) ** 2)


def batches():
    random = np.random.default_rng(0)
    for number in range(CALLS):
        x = random.normal(size=(256, 32)).astype(np.float32)
        if SHAPE == "skipped" and number % 10 == 1:
            x[0, 0] = np.inf
        yield x, x.sum(axis=1, keepdims=True)


def train():
    tx = optimizer()
    keys = jax.random.split(jax.random.key(0), 3)
    sizes = [(32, 256), (256, 256), (256, 1)]
    params = [jax.random.normal(k, s) / 16 for k, s in zip(keys, sizes, strict=True)]
    given = (0,) if SHAPE in ("donated", "donated ahead") else ()

    @functools.partial(jax.jit, donate_argnums=given)
    def train_step(state, x, y):
        params, opt_state = state
        loss, gradients = jax.value_and_grad(loss_of)(params, x, y)
        updates, opt_state = tx.update(gradients, opt_state, params)
        return (optax.apply_updates(params, updates), opt_state), loss

    state = params, tx.init(params)
    for x, y in batches():
        state, loss = train_step(state, x, y)
        if SHAPE != "donated ahead":
            float(loss)
    return state[1].gradient_step, loss


def train_nnx():
    """flax.nnx gives a compiled function its objects as a plain list of arrays."""
    from flax import nnx

    model = nnx.Linear(32, 1, rngs=nnx.Rngs(0))
    state = nnx.Optimizer(model, optimizer(), wrt=nnx.Param)

    @nnx.jit
    def train_step(model, state, x, y):
        loss, gradients = nnx.value_and_grad(lambda model: jnp.mean((model(x) - y) ** 2))(model)
        state.update(model, gradients)
        return loss

    for x, y in batches():
        loss = train_step(model, state, x, y)
        float(loss)
    return state.opt_state.gradient_step[...], loss


def main():
    updates, loss = train_nnx() if SHAPE == "nnx" else train()
    with open(OUT, "w") as file:
        json.dump({"updates": int(updates), "loss": float(loss).hex()}, file)


if __name__ == "__main__":
    main()
