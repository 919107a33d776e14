"""Steps of several calls: `python gathering.py SHAPE CALLS`, where SHAPE is one of the loops."""

import sys

import jax
import jax.numpy as jnp
import numpy as np

SHAPE, CALLS = sys.argv[1], int(sys.argv[2])
STEPS, WIDTH, BATCH = 20, 256, 256


def loss_of(params, x, y):
    for layer in params[:-1]:
        x = jnp.tanh(x @ layer)
    return jnp.mean((x @ params[-1] - y) ** 2)


gradients_of = jax.jit(jax.grad(loss_of))


@jax.jit
def add_gradients(sums, params, x, y):
    return [s + g for s, g in zip(sums, jax.grad(loss_of)(params, x, y), strict=True)]


@jax.jit
def apply(params, sums):
    return [p - 0.01 * s / CALLS for p, s in zip(params, sums, strict=True)]


@jax.jit
def step_towards(params, target, x, y):
    """A target that is another network's, copied now and then."""
    wanted = y + 0.1 * loss_of(target, x, y)
    gradients = jax.grad(loss_of)(params, x, wanted)
    return [p - 0.01 * g for p, g in zip(params, gradients, strict=True)]


def batches(count):
    random = np.random.default_rng(0)
    for _ in range(count):
        x = random.normal(size=(BATCH, 32)).astype(np.float32)
        yield x, x.sum(axis=1, keepdims=True)


def summed(params, data):
    sums = None
    for _ in range(CALLS):
        gradients = gradients_of(params, *next(data))
        sums = gradients if sums is None else jax.tree.map(jnp.add, sums, gradients)
    return sums


def main():
    keys = jax.random.split(jax.random.key(0), 3)
    sizes = [(32, WIDTH), (WIDTH, WIDTH), (WIDTH, 1)]
    params = [jax.random.normal(k, s) / 16 for k, s in zip(keys, sizes, strict=True)]
    data = batches(STEPS * CALLS)
    target = params
    for number in range(STEPS):
        if SHAPE == "programs":
            params = apply(params, summed(params, data))
        elif SHAPE == "operations":
            params = jax.tree.map(lambda p, s: p - 0.01 * s / CALLS, params, summed(params, data))
        elif SHAPE == "sums":
            sums = jax.tree.map(jnp.zeros_like, params)
            for _ in range(CALLS):
                sums = add_gradients(sums, params, *next(data))
            params = apply(params, sums)
        elif SHAPE == "target":
            if number % CALLS == 0:
                target = params
            params = step_towards(params, target, *next(data))
    jax.block_until_ready(params)


if __name__ == "__main__":
    main()
