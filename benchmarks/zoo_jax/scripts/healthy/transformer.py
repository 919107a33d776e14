"""A small transformer with flax and optax: compute and little else."""

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax.training.train_state import TrainState

STEPS, BATCH, LENGTH, WIDTH, WORDS = 60, 16, 64, 128, 500


class Block(nn.Module):
    @nn.compact
    def __call__(self, x):
        x = x + nn.SelfAttention(num_heads=4)(nn.LayerNorm()(x))
        return x + nn.Dense(WIDTH)(nn.gelu(nn.Dense(4 * WIDTH)(nn.LayerNorm()(x))))


class Net(nn.Module):
    @nn.compact
    def __call__(self, words):
        x = nn.Embed(WORDS, WIDTH)(words)
        for _ in range(4):
            x = Block()(x)
        return nn.Dense(WORDS)(x)


@jax.jit
def train_step(state, words):
    def loss_of(params):
        logits = state.apply_fn(params, words[:, :-1])
        return optax.softmax_cross_entropy_with_integer_labels(logits, words[:, 1:]).mean()

    loss, gradients = jax.value_and_grad(loss_of)(state.params)
    return state.apply_gradients(grads=gradients), loss


def batches():
    random = np.random.default_rng(0)
    for _ in range(STEPS):
        yield random.integers(0, WORDS, size=(BATCH, LENGTH + 1))


def main():
    net = Net()
    params = net.init(jax.random.key(0), jnp.zeros((1, LENGTH), jnp.int32))
    state = TrainState.create(apply_fn=net.apply, params=params, tx=optax.adam(1e-3))
    for words in batches():
        state, loss = train_step(state, words)
        float(loss)


if __name__ == "__main__":
    main()
