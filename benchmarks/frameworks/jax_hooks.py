"""What light recording costs three JAX loops, by clocks around its hooks.

    PYTHON -m benchmarks.frameworks.jax_hooks [--repeat N]

PYTHON has JAX and Strobe.
"""

import functools

from benchmarks.frameworks.hooks import STEPS, Hooks, Stopwatch, clock, main

WAYS = {
    "waits": "a loop that waits for every loss",
    "ahead": "a loop that asks for every tenth loss",
    "donates": "a loop that waits, with donated parameters",
}
BATCH, SIZES, RATE = 256, (784, 1024, 1024, 10), 0.05


def clock_hooks(way: str, is_recorded: bool) -> None:
    clock(_around, functools.partial(train, way), is_recorded)


def _around(hooks: Hooks, sign: int) -> None:
    import jax
    from jax._src.lib import xla_client

    from strobe.collect.jax.calls import _set_call

    compiled, array = type(jax.jit(_around)), xla_client.ArrayImpl
    _set_call(compiled, compiled.__call__, hooks.clocked(compiled.__call__, sign))
    array._value = property(hooks.clocked(array.__dict__["_value"].fget, sign))
    array.block_until_ready = hooks.clocked(array.__dict__["block_until_ready"], sign)


def train(way: str, watch: Stopwatch) -> None:
    import jax
    import jax.numpy as jnp
    import numpy as np

    def loss_of(parameters, x, y):
        for weight, bias in parameters[:-1]:
            x = jax.nn.relu(x @ weight + bias)
        weight, bias = parameters[-1]
        chances = jax.nn.log_softmax(x @ weight + bias)
        return -jnp.take_along_axis(chances, y[:, None], axis=1).mean()

    @functools.partial(jax.jit, donate_argnums=(0,) if way == "donates" else ())
    def train_step(parameters, x, y):
        loss, gradients = jax.value_and_grad(loss_of)(parameters, x, y)
        return jax.tree.map(lambda p, g: p - RATE * g, parameters, gradients), loss

    random = np.random.default_rng(0)
    parameters = [
        (jnp.asarray(random.normal(size=size) / size[0] ** 0.5, jnp.float32), jnp.zeros(size[1]))
        for size in zip(SIZES[:-1], SIZES[1:], strict=True)
    ]
    x = random.normal(size=(8, BATCH, SIZES[0])).astype(np.float32)
    y = x[..., :10].argmax(axis=-1).astype(np.int32)
    for step in range(STEPS):
        parameters, loss = train_step(parameters, x[step % 8], y[step % 8])
        if way != "ahead" or step % 10 == 9:
            float(loss)
        watch.step()


if __name__ == "__main__":
    main("benchmarks.frameworks.jax_hooks", __doc__, WAYS)
