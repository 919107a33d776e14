"""A training whose batches come from grain, too slowly or long before they are needed.

`with_grain.py slow|quick`, with the result asked for at every step or at the end alone.
"""

import sys
import time

import grain
import jax
import jax.numpy as jnp
import numpy as np

STEPS, BATCH, FEATURES = 30, 16, 32


class Source:
    def __init__(self, wait_s):
        self.wait_s = wait_s

    def __len__(self):
        return STEPS * BATCH

    def __getitem__(self, index):
        time.sleep(self.wait_s)
        x = np.full(FEATURES, index % 7, dtype=np.float32)
        return x, x.sum(keepdims=True)


@jax.jit
def train_step(weights, x, y):
    loss, gradient = jax.value_and_grad(lambda w: jnp.mean((x @ w - y) ** 2))(weights)
    return weights - 1e-4 * gradient, loss


def main(speed, asks):
    read = grain.ReadOptions(num_threads=1, prefetch_buffer_size=1)
    if speed == "quick":
        read = grain.ReadOptions(num_threads=4, prefetch_buffer_size=500)
    wait_s = 0.001 if speed == "slow" else 0.0
    batches = grain.MapDataset.source(Source(wait_s)).batch(BATCH).to_iter_dataset(read)
    weights = jnp.zeros((FEATURES, 1))
    iterator = iter(batches)
    for _ in range(STEPS):
        x, y = next(iterator)
        weights, loss = train_step(weights, x, y)
        if asks == "each":
            float(loss)
        if speed == "quick":
            time.sleep(0.01)
    print(float(loss).hex())


main(*sys.argv[1:])
