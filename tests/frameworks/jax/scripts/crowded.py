"""A training with a thread and a process beside it, which compute for a second each."""

import multiprocessing
import threading
import time

import jax
import jax.numpy as jnp

IS_OVER = threading.Event()


def compute():
    began = time.thread_time()
    while time.thread_time() < began + 1:
        pass


def compute_and_wait():
    compute()
    IS_OVER.wait()


@jax.jit
def train_step(weights, x):
    loss, gradients = jax.value_and_grad(lambda w: ((x @ w) ** 2).mean())(weights)
    return weights - 0.1 * gradients, loss


def main():
    process = multiprocessing.get_context("spawn").Process(target=compute)
    thread = threading.Thread(target=compute_and_wait, name="mixer")
    weights, x = jnp.ones((64, 64)), jnp.ones((32, 64))
    weights, loss = train_step(weights, x)
    process.start()
    thread.start()
    began = time.monotonic()
    # Both have computed by then, unless they share their core, and were looked at after that.
    while time.monotonic() < began + 6 or process.exitcode is None:
        weights, loss = train_step(weights, x)
        float(loss)
        time.sleep(0.01)
    IS_OVER.set()


if __name__ == "__main__":
    main()
