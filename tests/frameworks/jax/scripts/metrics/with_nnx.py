"""flax.nnx, whose own transformations take the gradient and compile the step."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx


class Net(nnx.Module):
    def __init__(self, rngs):
        self.inner = nnx.Linear(8, 16, rngs=rngs)
        self.outer = nnx.Linear(16, 1, rngs=rngs)

    def __call__(self, x):
        return self.outer(nnx.relu(self.inner(x)))


def loss_fn(net, x, y):
    return jnp.mean((net(x) - y) ** 2)


@nnx.jit
def train_step(net, optimizer, x, y):
    loss, gradients = nnx.value_and_grad(loss_fn)(net, x, y)
    optimizer.update(net, gradients)
    return loss


net = Net(nnx.Rngs(0))
optimizer = nnx.Optimizer(net, optax.adam(0.01), wrt=nnx.Param)
random = np.random.default_rng(0)
for step in range(1, 13):
    x = random.normal(size=(16, 8)).astype(np.float32)
    loss = train_step(net, optimizer, x, x[:, :1])
    print("metric", step, "loss", repr(float(loss)))
print("result", repr(float(jax.tree.leaves(nnx.state(net))[0].sum())))
