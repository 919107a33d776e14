"""Classify sound by its spectrum; a thread mixes noise into the clips ahead of training."""

import queue
import threading

import jax
import jax.numpy as jnp
import numpy as np

STEPS, BATCH, SAMPLES, CLASSES = 700, 96, 4096, 20


def clips():
    rng = np.random.default_rng(0)
    sound = rng.normal(size=(800, SAMPLES)).astype(np.float32)
    return sound, rng.integers(0, CLASSES, len(sound)).astype(np.int32)


def mixed(sound, rng):
    """Each clip with pink noise of its own: white noise, shaped by its spectrum."""
    white = np.fft.rfft(rng.normal(size=sound.shape), axis=1)
    shape = 1 / np.sqrt(np.arange(1, white.shape[1] + 1))
    return (sound + np.fft.irfft(white * shape, axis=1)).astype(np.float32)


def prefetched(sound, labels):
    """Batches that a thread makes ahead."""
    made = queue.Queue(maxsize=32)

    def fill():
        rng = np.random.default_rng(1)
        noisy = mixed(sound, rng)
        for _ in range(STEPS):
            chosen = rng.integers(0, len(sound), BATCH)
            made.put((noisy[chosen], labels[chosen]))

    threading.Thread(target=fill, daemon=True).start()
    for _ in range(STEPS):
        yield made.get()


def init(key, sizes):
    keys = jax.random.split(key, len(sizes) - 1)
    shapes = zip(keys, sizes[:-1], sizes[1:], strict=True)
    return [(jax.random.normal(k, (a, b)) / np.sqrt(a), jnp.zeros(b)) for k, a, b in shapes]


def loss_of(params, sound, labels):
    x = jnp.log1p(jnp.abs(jnp.fft.rfft(sound, axis=1)))[:, :1024]
    for weights, bias in params[:-1]:
        x = jax.nn.relu(x @ weights + bias)
    weights, bias = params[-1]
    chances = jax.nn.log_softmax(x @ weights + bias)
    return -jnp.take_along_axis(chances, labels[:, None], axis=1).mean()


@jax.jit
def train_step(params, sound, labels):
    loss, gradients = jax.value_and_grad(loss_of)(params, sound, labels)
    return jax.tree.map(lambda p, g: p - 1e-3 * g, params, gradients), loss


def main():
    params = init(jax.random.key(0), (1024, 1024, 1024, CLASSES))
    history = []
    for sound, labels in prefetched(*clips()):
        params, loss = train_step(params, sound, labels)
        history.append(float(loss))
    print(history[-1])


if __name__ == "__main__":
    main()
