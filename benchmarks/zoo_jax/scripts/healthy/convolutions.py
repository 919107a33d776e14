"""An image classifier with optax, convolutions, and a short evaluation at the end of each epoch."""

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax

EPOCHS, BATCHES, BATCH = 4, 30, 64


class Net(nn.Module):
    @nn.compact
    def __call__(self, x):
        for channels in (16, 32):
            x = nn.relu(nn.Conv(channels, (3, 3))(x))
            x = nn.avg_pool(x, (2, 2), strides=(2, 2))
        return nn.Dense(10)(x.reshape(x.shape[0], -1))


net, optimizer = Net(), optax.sgd(1e-2, momentum=0.9)


def loss_of(params, images, labels):
    logits = net.apply(params, images)
    return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()


@jax.jit
def train_step(params, state, images, labels):
    loss, gradients = jax.value_and_grad(loss_of)(params, images, labels)
    updates, state = optimizer.update(gradients, state)
    return optax.apply_updates(params, updates), state, loss


@jax.jit
def accuracy(params, images, labels):
    return jnp.mean(net.apply(params, images).argmax(axis=1) == labels)


def main():
    random = np.random.default_rng(0)
    images = random.normal(size=(BATCHES, BATCH, 28, 28, 1)).astype(np.float32)
    labels = random.integers(0, 10, size=(BATCHES, BATCH))
    params = net.init(jax.random.key(0), images[0])
    state = optimizer.init(params)
    for epoch in range(EPOCHS):
        for number in range(BATCHES):
            params, state, loss = train_step(params, state, images[number], labels[number])
        print(epoch, float(loss), float(accuracy(params, images[0], labels[0])))


if __name__ == "__main__":
    main()
