"""flax and optax, as their guides show it: a train state, a batch as a dictionary, evaluation."""

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax.training.train_state import TrainState

STEPS, EVERY = 40, 10


class Block(nn.Module):
    width: int

    @nn.compact
    def __call__(self, x):
        return x + nn.Dense(self.width, name="out")(nn.relu(nn.Dense(4 * self.width, name="in")(x)))


class Net(nn.Module):
    @nn.compact
    def __call__(self, x):
        x = nn.Dense(128, name="embed")(x)
        for number in range(2):
            x = Block(128, name=f"block_{number}")(x)
        return nn.Dense(1, name="head")(x)


@jax.jit
def train_step(state, batch):
    def loss_of(params):
        return jnp.mean((state.apply_fn(params, batch["x"]) - batch["y"]) ** 2)

    loss, gradients = jax.value_and_grad(loss_of)(state.params)
    return state.apply_gradients(grads=gradients), {"loss": loss}


@jax.jit
def eval_step(state, batch):
    return jnp.mean((state.apply_fn(state.params, batch["x"]) - batch["y"]) ** 2)


def main():
    net = Net()
    random = np.random.default_rng(0)
    x = random.normal(size=(256, 16)).astype(np.float32)
    batch = {"x": x, "y": x.sum(axis=1, keepdims=True)}
    state = TrainState.create(
        apply_fn=net.apply, params=net.init(jax.random.key(0), x), tx=optax.adam(1e-3)
    )
    for step in range(STEPS):
        state, metrics = train_step(state, batch)
        float(metrics["loss"])
        if (step + 1) % EVERY == 0:
            for _ in range(3):
                float(eval_step(state, batch))


if __name__ == "__main__":
    main()
