"""Run a script of the zoo and print how many seconds its loop took, from the end of its third step
on: `python stopwatch.py SCRIPT`. A step is a call of its `train_step`.

Of processes that the script starts, none is timed: it is timed whole then.
"""

import runpy
import sys
import time

import jax

_WARM_UP_STEPS = 3

moments: list[float] = []


class Timed:
    """A function that is looked up by its name in the script: its calls, and when they returned."""

    def __init__(self, function):
        self._function = function

    def __call__(self, *args, **kwargs):
        result = self._function(*args, **kwargs)
        if len(moments) < _WARM_UP_STEPS:
            jax.block_until_ready(result)
        moments.append(time.perf_counter())
        return result


def main() -> None:
    path = sys.argv[1]
    sys.argv[:] = [path]
    began = time.perf_counter()
    script = runpy.run_path(path, run_name="zoo")
    script["main"].__globals__["train_step"] = Timed(script["train_step"])
    script["main"]()
    ended = time.perf_counter()
    first = moments[_WARM_UP_STEPS - 1] if len(moments) >= _WARM_UP_STEPS else began
    print(f"{ended - first:.4f}")


if __name__ == "__main__":
    main()
