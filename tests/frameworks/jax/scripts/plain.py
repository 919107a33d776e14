"""A small network trained by hand: `python plain.py SHAPE OUT`, where SHAPE is one of the loops."""

import functools
import json
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np

SHAPE, OUT = sys.argv[1:3]
STEPS = 80 if SHAPE == "starved" else 24
WIDTH, BATCH = 256, 512
PAUSE_S = 0.1


def init(key):
    keys = jax.random.split(key, 3)
    sizes = [(32, WIDTH), (WIDTH, WIDTH), (WIDTH, 1)]
    return [
        jax.random.normal(k, size) / np.sqrt(size[0]) for k, size in zip(keys, sizes, strict=True)
    ]


def loss_of(params, x, y):
    for layer in params[:-1]:
        x = jnp.tanh(x @ layer)
    return jnp.mean((x @ params[-1] - y) ** 2)


def batches(pause_s=0.0):
    random = np.random.default_rng(0)
    for number in range(STEPS):
        if pause_s:
            time.sleep(pause_s)
        size = BATCH - number if SHAPE == "ragged" else BATCH
        x = random.normal(size=(size, 32)).astype(np.float32)
        yield x, x.sum(axis=1, keepdims=True)


@jax.jit
def train_step(params, x, y):
    loss, gradients = jax.value_and_grad(loss_of)(params, x, y)
    return [p - 0.01 * g for p, g in zip(params, gradients, strict=True)], loss


@functools.partial(jax.jit, donate_argnums=0)
def donating_step(params, x, y):
    loss, gradients = jax.value_and_grad(loss_of)(params, x, y)
    return [p - 0.01 * g for p, g in zip(params, gradients, strict=True)], loss


gradients_of = jax.jit(jax.value_and_grad(loss_of))
evaluate = jax.jit(loss_of)


@jax.jit
def apply(params, gradients):
    return [p - 0.01 * g for p, g in zip(params, gradients, strict=True)]


def loop(params):
    step = donating_step if SHAPE in ("donated", "ahead") else train_step
    pause_s = PAUSE_S if SHAPE == "starved" else 0.0
    losses = []
    for x, y in batches(pause_s):
        if SHAPE == "two programs":
            loss, gradients = gradients_of(params, x, y)
            params = apply(params, gradients)
        elif SHAPE == "by hand":
            loss, gradients = gradients_of(params, x, y)
            params = jax.tree.map(lambda p, g: p - 0.01 * g, params, gradients)
        elif SHAPE == "not compiled":
            loss, gradients = jax.value_and_grad(loss_of)(params, x, y)
            params = jax.tree.map(lambda p, g: p - 0.01 * g, params, gradients)
        elif SHAPE == "annotated":  # two calls are a step
            with jax.profiler.StepTraceAnnotation("train", step_num=len(losses)):
                params, _ = step(params, x[::2], y[::2])
                params, loss = step(params, x[1::2], y[1::2])
        else:
            params, loss = step(params, x, y)
        losses.append(loss if SHAPE == "ahead" else float(loss))
        if SHAPE == "evaluating" and len(losses) % 8 == 0:
            for _ in range(4):
                evaluate(params, x, y).block_until_ready()
    jax.block_until_ready(params)
    return [float(loss) for loss in losses]


def main():
    params = init(jax.random.key(0))
    began = time.perf_counter()
    losses = loop(params)
    seconds = time.perf_counter() - began
    with open(OUT, "w") as file:
        json.dump({"losses": [loss.hex() for loss in losses], "seconds": seconds}, file)


if __name__ == "__main__":
    main()
