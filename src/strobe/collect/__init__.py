"""Runs inside the user's training process: light, standard library only, never raises into it.

To add a framework, write a module with `FRAMEWORK` and a class of hooks, and add one line here.
"""

# The package whose import triggers the hooks, and the module with the hooks.
COLLECTORS = {
    "jax": "strobe.collect.jax.hooks:JaxHooks",
    "mindspore": "strobe.collect.mindspore.hooks:MindSporeHooks",
    "torch": "strobe.collect.torch.hooks:TorchHooks",
}


def inject_path() -> str:
    """The folder that, on PYTHONPATH, makes every Python process started below record itself."""
    import os

    return os.path.join(os.path.dirname(os.path.abspath(__file__)), "start", "inject")
