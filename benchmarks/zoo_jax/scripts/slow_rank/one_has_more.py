"""Two processes, one of which has longer sequences than the other."""

import multiprocessing
import socket

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec

STEPS, BATCH, WIDTH = 80, 256, 256
PASSES = (1, 3)


@jax.jit
def encode(x, weights, passes):
    return jax.lax.fori_loop(0, passes, lambda _, x: jnp.tanh(x @ weights), x)


@jax.jit
def train_step(weights, x):
    loss, gradient = jax.value_and_grad(lambda w: jnp.mean(jnp.tanh(x @ w) ** 2))(weights)
    return weights - 0.1 * gradient, loss


def work(rank, port):
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    jax.distributed.initialize(f"localhost:{port}", num_processes=2, process_id=rank)
    mesh = jax.make_mesh((2,), ("data",))
    split, whole = (NamedSharding(mesh, PartitionSpec(*axes)) for axes in (("data",), ()))
    start = np.eye(WIDTH, dtype=np.float32)
    weights = jax.make_array_from_callback(start.shape, whole, lambda at: start[at])
    frozen = np.random.default_rng(1).normal(size=(WIDTH, WIDTH)).astype(np.float32) / 16
    for step in range(STEPS):
        x = np.random.default_rng(step).normal(size=(BATCH, WIDTH)).astype(np.float32)
        mine = np.asarray(encode(np.tile(x, (8, 1)), frozen, 4 * PASSES[rank]))[:BATCH]
        batch = jax.make_array_from_process_local_data(split, mine)
        weights, loss = train_step(weights, batch)
        float(loss)


def main():
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=work, args=(rank, port)) for rank in range(2)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()


if __name__ == "__main__":
    main()
