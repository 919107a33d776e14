"""Two programs that train, each with a loss of its own, in half precision."""

import jax
import jax.numpy as jnp
import numpy as np


def critic_loss(critic, generator, x):
    return jnp.mean((x @ critic - x @ generator @ critic) ** 2)


def generator_loss(generator, critic, x):
    return jnp.mean(x @ generator @ critic)


@jax.jit
def train_critic(critic, generator, x):
    loss, gradient = jax.value_and_grad(critic_loss)(critic, generator, x)
    return critic - 0.01 * gradient, loss


@jax.jit
def train_generator(generator, critic, x):
    loss, gradient = jax.value_and_grad(generator_loss)(generator, critic, x)
    return generator - 0.01 * gradient, loss


random = np.random.default_rng(0)
critic = jnp.asarray(random.normal(size=(8, 8)), jnp.bfloat16)
generator = jnp.asarray(random.normal(size=(8, 8)), jnp.bfloat16)
for step in range(1, 13):
    x = jnp.asarray(random.normal(size=(16, 8)), jnp.bfloat16)
    critic, d = train_critic(critic, generator, x)
    generator, g = train_generator(generator, critic, x)
    print("metric", step, "loss/critic_loss", repr(float(d)))
    print("metric", step, "loss/generator_loss", repr(float(g)))
print("result", repr(float(critic.sum())))
