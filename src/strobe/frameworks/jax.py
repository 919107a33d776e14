"""JAX, with XLA and the libraries that JAX trainings use."""

from strobe.frameworks.framework import Compiler, DebugMode, Framework, Iterator

_SETTING = "remove-jax-setting"

JAX = Framework(
    name="jax",
    packages=("jax", "jaxlib"),
    events=r"^PjitFunction\(|^jit_\w|^jit\(|^XLA (Modules|Ops)$",
    # What is differentiated. Other operators of a program may be of any part of the step.
    forward_nodes=r"jvp\(",
    # In a loop (jax.lax.scan), or with only its program as path, because the compiler added it.
    looped_nodes=r"/while/|^jit_[^/]*/[^/]*$",
    one_hot_scope="jit(_one_hot)",
    float64=("f64", "c128"),
    checkpoints=("orbax",),
    single_operations="/jax/",
    model_traversal="/flax/nnx/",
    result_checks="check_special",
    compiler=Compiler(
        "XLA",
        "warm-up.xla-compiles",
        ("jax/_src/compiler.py", "jax/_src/interpreters/", "jax/_src/pjit.py"),
    ),
    fewest_kernels=1,  # a compiled program runs a step in a few kernels
    iterators={
        "grain": Iterator("grain", ("grain-workers", "grain-read-threads")),
        "tensorflow": Iterator("tf.data", ("tensorflow-prefetch", "tensorflow-operators")),
    },
    debug_modes={
        "jax_debug_nans": DebugMode("nan-checks", _SETTING),
        "jax_debug_infs": DebugMode("infinity-checks", _SETTING),
        "jax_disable_jit": DebugMode("single-operations", _SETTING),
        "jax_check_tracer_leaks": DebugMode(fix=_SETTING),
        "jax_enable_checks": DebugMode(fix=_SETTING),
    },
)
