"""One small training, compiled in one of several ways: `python compiling.py WAY OUT`."""

import json
import os
import sys

os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=2")

import functools
import time

import jax
import jax.numpy as jnp
import numpy as np
import optax

STEPS, WIDTH = 24, 256
OPTIMIZER = optax.adam(1e-3)
BEGAN = []


def loss_of(params, x, y):
    return jnp.mean((jnp.tanh(x @ params["first"]) @ params["second"] - y) ** 2)


def train_step(state, x, y, axis=None):
    params, optimizer = state
    loss, gradients = jax.value_and_grad(loss_of)(params, x, y)
    if axis:
        loss, gradients = jax.lax.pmean((loss, gradients), axis)
    updates, optimizer = OPTIMIZER.update(gradients, optimizer)
    return (optax.apply_updates(params, updates), optimizer), loss


def begin():
    keys = jax.random.split(jax.random.key(0))
    shapes = {"first": (32, WIDTH), "second": (WIDTH, 1)}
    params = {
        name: jax.random.normal(key, shape) / 8
        for key, (name, shape) in zip(keys, shapes.items(), strict=True)
    }
    return params, OPTIMIZER.init(params)


def batches(*leading):
    rng = np.random.default_rng(0)
    BEGAN.append(time.perf_counter())
    for _ in range(STEPS):
        x = rng.normal(size=(*leading, 256, 32)).astype(np.float32)
        yield x, x[..., :1]


def mapped(donate):
    devices = jax.local_device_count()
    state = jax.tree.map(lambda array: jnp.stack([array] * devices), begin())
    step = jax.pmap(functools.partial(train_step, axis="devices"), axis_name="devices",
                    donate_argnums=(0,) if donate else ())  # fmt: skip
    for x, y in batches(devices):
        state, loss = step(state, x, y)
        yield loss[0]


def decorated():
    """As a decorator, with an argument that is part of the program."""

    @functools.partial(jax.pmap, axis_name="i", static_broadcasted_argnums=(3,))
    def update(state, x, y, axis):
        return train_step(state, x, y, axis)

    state = jax.tree.map(lambda array: jnp.stack([array] * 2), begin())
    for x, y in batches(2):
        state, loss = update(state, x, y, "i")
        yield loss[0]


def ahead_of_time():
    """Two programs of one function, for batches of two sizes in turn."""
    state, compiled = begin(), {}
    for size in (256, 128):
        x = jax.ShapeDtypeStruct((size, 32), jnp.float32)
        y = jax.ShapeDtypeStruct((size, 1), jnp.float32)
        compiled[size] = jax.jit(train_step, donate_argnums=0).lower(state, x, y).compile()
    for number, (x, y) in enumerate(batches()):
        size = 128 if number % 3 else 256
        state, loss = compiled[size](state, x[:size], y[:size])
        yield loss


def not_compiled():
    """Also where optax has compiled a part of what it does."""
    (params, optimizer), gradient_of = begin(), jax.value_and_grad(loss_of)
    for x, y in batches():
        loss, gradients = gradient_of(params, x, y)
        updates, optimizer = OPTIMIZER.update(gradients, optimizer)
        params = optax.apply_updates(params, updates)
        yield loss


WAYS = {
    "mapped": functools.partial(mapped, donate=False),
    "mapped and donated": functools.partial(mapped, donate=True),
    "decorated": decorated,
    "ahead of time": ahead_of_time,
    "not compiled": not_compiled,
}


def main():
    way, out = sys.argv[1:]
    losses = [float(loss).hex() for loss in WAYS[way]()]
    told = {"losses": losses, "seconds": time.perf_counter() - BEGAN[0]}
    with open(out, "w") as file:
        json.dump(told, file)


if __name__ == "__main__":
    main()
