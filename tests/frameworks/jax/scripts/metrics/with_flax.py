"""flax.linen with a TrainState."""

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax.training.train_state import TrainState


class Net(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.Dense(1)(nn.relu(nn.Dense(16)(x)))


@jax.jit
def train_step(state, x, y):
    def loss_fn(params):
        made = state.apply_fn(params, x)
        return jnp.mean((made - y) ** 2), made

    (loss, made), gradients = jax.value_and_grad(loss_fn, has_aux=True)(state.params)
    return state.apply_gradients(grads=gradients), loss, made.mean()


random = np.random.default_rng(0)
net = Net()
params = net.init(jax.random.key(0), jnp.zeros((1, 8)))
rate = optax.inject_hyperparams(optax.sgd)(learning_rate=0.05)
state = TrainState.create(apply_fn=net.apply, params=params, tx=rate)
for step in range(1, 13):
    x = random.normal(size=(16, 8)).astype(np.float32)
    state, loss, _ = train_step(state, x, x[:, :1])
    print("metric", step, "loss", repr(float(loss)))
    print("metric", step, "learning_rate", repr(float(np.float32(0.05))))
print("result", repr(float(loss)))
