"""Two processes of jax.distributed: `python several.py RANK PORT OUT [pmap]`."""

import functools
import json
import sys

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec

RANK, PORT, OUT = int(sys.argv[1]), sys.argv[2], sys.argv[3]
IS_MAPPED = sys.argv[4:] == ["pmap"]
STEPS = 24


@jax.jit
def train_step(weights, x):
    loss, gradient = jax.value_and_grad(lambda w: jnp.mean(jnp.tanh(x @ w) ** 2))(weights)
    return weights - 0.1 * gradient, loss


def main():
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    jax.distributed.initialize(f"localhost:{PORT}", num_processes=2, process_id=RANK)
    losses = list(by_pmap() if IS_MAPPED else by_jit())
    with open(OUT, "w") as file:
        json.dump([float(loss).hex() for loss in losses], file)


def by_jit():
    mesh = jax.make_mesh((2,), ("data",))
    split, whole = (NamedSharding(mesh, PartitionSpec(*axes)) for axes in (("data",), ()))
    weights = jax.make_array_from_callback((64, 64), whole, lambda at: np.ones((64, 64))[at] / 64)
    for step in range(STEPS):
        x = np.random.default_rng(step).normal(size=(128, 64)).astype(np.float32)
        batch = jax.make_array_from_callback(x.shape, split, lambda at, x=x: x[at])
        weights, loss = train_step(weights, batch)
        yield float(loss)


def by_pmap():
    """Each process has the part of the batch that its own device gets."""

    @functools.partial(jax.pmap, axis_name="data")
    def train_step(weights, x):
        loss, gradient = jax.value_and_grad(lambda w: jnp.mean(jnp.tanh(x @ w) ** 2))(weights)
        loss, gradient = jax.lax.pmean((loss, gradient), "data")
        return weights - 0.1 * gradient, loss

    weights = jnp.ones((1, 64, 64)) / 64
    for step in range(STEPS):
        x = np.random.default_rng(step).normal(size=(2, 64, 64)).astype(np.float32)
        weights, loss = train_step(weights, x[RANK : RANK + 1])
        yield loss[0]


if __name__ == "__main__":
    main()
