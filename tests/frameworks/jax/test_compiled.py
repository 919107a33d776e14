"""strobe.profile_compiled on functions of the real JAX."""

import json

import pytest

from tests.frameworks.environment import run, strobe

pytestmark = pytest.mark.slow

SCRIPT = """
import functools, json, sys
import jax, jax.numpy as jnp
import strobe

def loss_of(w, x):
    return jnp.mean(jnp.tanh(x @ w) ** 2)

@functools.partial(jax.jit, donate_argnums=0)
def train_step(w, x):
    loss, gradient = jax.value_and_grad(loss_of)(w, x)
    return w - 0.1 * gradient, loss

w, x = jnp.ones((256, 128)) / 256, jnp.ones((512, 256))
strobe.profile_compiled(train_step, w, x, repeat=5, output_path=sys.argv[1])
print(w.is_deleted(), float(loss_of(w, x)) > 0)
"""


def test_operators_of_a_jitted_step(tmp_path):
    saved = tmp_path / "step.json"
    done = run("jax", "-c", SCRIPT, saved)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["False", "True"]  # what was to be given away is still there
    answer = json.loads(saved.read_text())
    assert answer["strobe"]["function"] == "train_step" and answer["strobe"]["repeat"] == 5
    product = 2 * 512 * 256 * 128
    flops = [f.get("computation", 0) for f in answer["profiler"]["opr_footprint"].values()]
    assert sum(flops) >= 2 * product  # the product, and that of its gradient
    shapes = [f.get("in_shapes") for f in answer["profiler"]["opr_footprint"].values()]
    assert [[512, 256], [256, 128]] in shapes
    times = [time for of in answer["profiler"]["host"].values() for time in of.values()]
    assert 0 < sum(time["end"] - time["start"] for time in times) < 60
    told = json.loads(strobe("jax", "operators", saved, "--json"))
    assert told["ok"] and told["rows"]
