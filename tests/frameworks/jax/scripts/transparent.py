"""What a script may do with a compiled function, recorded or not: none of it may notice."""

import functools
import inspect
import json
import sys
import traceback
import weakref

import jax
import jax.numpy as jnp


@jax.jit
def square(x):
    """The square."""
    return x * x


class Model:
    @functools.partial(jax.jit, static_argnums=0)
    def method(self, x):
        return x + 1


@functools.partial(jax.jit, static_argnames="power")
def raised(x, power=2):
    return x**power


@functools.partial(jax.jit, donate_argnums=0)
def train(x):
    return x * 1.5


@jax.jit
def fails(x):
    raise ValueError("as the script wants")


def main():
    x = jnp.arange(4.0)
    told = {
        "type": type(square).__name__,
        "doc": square.__doc__,
        "name": square.__name__,
        "signature": str(inspect.signature(square)),
        "value": square(x).tolist(),
        "method": Model().method(x).tolist(),
        "static": raised(x, power=3).tolist(),
        "lowered": square.lower(x).as_text() == jax.jit(square.__wrapped__).lower(x).as_text(),
        "compiled": square.lower(x).compile()(x).tolist(),
        "flops": square.lower(x).cost_analysis()["flops"],
        "gradient": jax.grad(lambda x: square(x).sum())(x).tolist(),
        "mapped": jax.vmap(square)(x).tolist(),
        "nested": jax.jit(lambda x: square(square(x)))(x).tolist(),
        "scanned": jax.lax.scan(lambda c, v: (square(c) + v, c), 1.0, x)[0].item(),
        "shape": jax.eval_shape(square, x).shape,
        "jaxpr": str(jax.make_jaxpr(square)(x)),
        "weak": weakref.ref(square)() is square,
        "hash": len({square, square}),
        "keyword": square(x=x).tolist(),
        "traces": square._cache_size(),
    }
    state = x + 0
    for _ in range(5):
        before, state = state, train(state)
    told["donated"] = before.is_deleted()
    told["trained"] = state.tolist()
    try:
        fails(x)
    except ValueError as error:
        told["error"] = str(error)
        frames = traceback.extract_tb(error.__traceback__)
        told["frames"] = [f.name for f in frames if "strobe" not in f.filename]
    try:
        square(1, 2, 3)
    except TypeError as error:
        told["wrong call"] = str(error)
    with jax.disable_jit():
        told["not compiled"] = square(x).tolist()
    with open(sys.argv[1], "w") as file:
        json.dump(told, file, default=str)


if __name__ == "__main__":
    main()
