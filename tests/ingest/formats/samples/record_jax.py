"""Record a sample with JAX: a profile of XLA on the CPU, and its events as JAX itself reads them.

python tests/ingest/formats/samples/record_jax.py
"""

import gzip
import json
import tempfile
from collections import Counter
from pathlib import Path

import jax
import jax.numpy as jnp

SAMPLES = Path(__file__).parent
STEPS = 3


@jax.jit
def train_step(weights: jax.Array, batch: jax.Array) -> jax.Array:
    def loss(weights: jax.Array) -> jax.Array:
        return jnp.mean(jnp.tanh(batch @ weights) ** 2)

    return weights - 0.1 * jax.grad(loss)(weights)


def record() -> None:
    weights, batch = jnp.ones((16, 8)), jnp.ones((4, 16))
    weights = train_step(weights, batch).block_until_ready()
    options = jax.profiler.ProfileOptions()
    options.python_tracer_level = 0
    options.host_tracer_level = 2
    with tempfile.TemporaryDirectory() as folder:
        with jax.profiler.trace(folder, profiler_options=options):
            for step in range(STEPS):
                with jax.profiler.StepTraceAnnotation("train", step_num=step):
                    weights = train_step(weights, batch).block_until_ready()
        target = SAMPLES / "xplane" / "step.xplane.pb"
        _write(target, _one(folder, "*.xplane.pb").read_bytes())
        # JAX writes the same once more as JSON.
        trace = gzip.decompress(_one(folder, "*.trace.json.gz").read_bytes())
        _write(SAMPLES / "jax_trace" / "step.trace.json.gz", trace)
    planes = jax.profiler.ProfileData.from_file(str(target)).planes
    truth = {
        plane.name: {
            line.name: dict(sorted(Counter(event.name for event in line.events).items()))
            for line in plane.lines
        }
        for plane in planes
    }
    (target.parent / "truth.json").write_text(json.dumps(truth, indent=1) + "\n")


def _one(folder: str, pattern: str) -> Path:
    (found,) = Path(folder).rglob(pattern)
    return found


def _write(path: Path, content: bytes) -> None:
    """The names of source files, without the folder of this checkout and as long as before."""
    root = str(SAMPLES.parents[3]).encode()
    content = content.replace(root, b"/".ljust(len(root), b"x"))
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(gzip.compress(content, mtime=0) if path.suffix == ".gz" else content)


if __name__ == "__main__":
    record()
