"""shard_map over four devices of one process: each has a part of the batch."""

import os

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=4"

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import PartitionSpec as P

STEPS = 24


def main():
    mesh = jax.make_mesh((4,), ("data",), axis_types=(jax.sharding.AxisType.Auto,))

    @jax.jit
    @partial(jax.shard_map, mesh=mesh, in_specs=(P(), P("data")), out_specs=(P(), P()))
    def train_step(weights, x):
        loss, gradient = jax.value_and_grad(lambda w: jnp.mean(jnp.tanh(x @ w) ** 2))(weights)
        gradient = jax.lax.pmean(gradient, "data")
        return weights - 0.1 * gradient, jax.lax.pmean(loss, "data")

    weights = jnp.ones((64, 64)) / 64
    for step in range(STEPS):
        x = np.random.default_rng(step).normal(size=(128, 64)).astype(np.float32)
        weights, loss = train_step(weights, x)
        float(loss)


if __name__ == "__main__":
    main()
