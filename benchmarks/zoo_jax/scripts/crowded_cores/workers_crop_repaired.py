"""Classify pictures; two processes resample and turn them ahead of training."""

import multiprocessing

import jax
import numpy as np
import optax

STEPS, BATCH, SIDE, CLASSES = 400, 64, 32, 10
LAYOUT = ("NHWC", "HWIO", "NHWC")


def pictures(seed, count=512):
    rng = np.random.default_rng(seed)
    return rng.random((count, SIDE, SIDE, 3), np.float32), rng.integers(0, CLASSES, count)


def turned(picture, angle):
    """By bilinear interpolation, channel by channel."""
    y, x = np.mgrid[:SIDE, :SIDE] - (SIDE - 1) / 2
    cos, sin = np.cos(angle), np.sin(angle)
    from_x = np.clip(cos * x + sin * y + (SIDE - 1) / 2, 0, SIDE - 1.001)
    from_y = np.clip(cos * y - sin * x + (SIDE - 1) / 2, 0, SIDE - 1.001)
    left, top = from_x.astype(int), from_y.astype(int)
    right, below = (from_x - left)[..., None], (from_y - top)[..., None]
    upper = picture[top, left] * (1 - right) + picture[top, left + 1] * right
    lower = picture[top + 1, left] * (1 - right) + picture[top + 1, left + 1] * right
    return (upper * (1 - below) + lower * below).astype(np.float32)


def produce(made, seed):
    images, labels = pictures(0)
    rng = np.random.default_rng(seed)
    images = np.stack([turned(image, rng.uniform(-0.3, 0.3)) for image in images])
    while True:
        chosen = rng.integers(0, len(images), BATCH)
        made.put((images[chosen], labels[chosen]))


def init(key):
    keys = jax.random.split(key, 4)
    shapes = ((4, 4, 3, 96), (2, 2, 96, 192), (2, 2, 192, 384), (384, CLASSES))
    pairs = zip(keys, shapes, strict=True)
    return [jax.random.normal(k, s) / np.sqrt(np.prod(s[:-1])) for k, s in pairs]


def loss_of(params, x, y):
    for kernel in params[:-1]:
        strides = kernel.shape[:2]
        x = jax.lax.conv_general_dilated(x, kernel, strides, "VALID", dimension_numbers=LAYOUT)
        x = jax.nn.relu(x)
    logits = x.mean(axis=(1, 2)) @ params[-1]
    return optax.softmax_cross_entropy_with_integer_labels(logits, y).mean()


optimizer = optax.sgd(0.05, momentum=0.9)


@jax.jit
def train_step(params, state, x, y):
    loss, gradients = jax.value_and_grad(loss_of)(params, x, y)
    updates, state = optimizer.update(gradients, state)
    return optax.apply_updates(params, updates), state, loss


def main():
    context = multiprocessing.get_context("fork")
    made = context.Queue(maxsize=24)
    workers = [context.Process(target=produce, args=(made, seed), daemon=True) for seed in (1, 2)]
    for worker in workers:
        worker.start()
    params = init(jax.random.key(0))
    state = optimizer.init(params)
    history = []
    for _ in range(STEPS):
        x, y = made.get()
        params, state, loss = train_step(params, state, x, y)
        history.append(float(loss))
    print(history[-1])


if __name__ == "__main__":
    main()
