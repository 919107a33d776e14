"""Runs inside the user's training process: light, standard library only, never raises into it.

To add a framework: write its module with `FRAMEWORK` and a class of hooks, add one line here.
"""

# The package whose import is waited for, and who then hangs the hooks in.
COLLECTORS = {
    "jax": "strobe.collect.jax.hooks:JaxHooks",
    "mindspore": "strobe.collect.mindspore.hooks:MindSporeHooks",
    "torch": "strobe.collect.torch.hooks:TorchHooks",
}


def inject_path() -> str:
    """The folder that, on PYTHONPATH, makes every Python process below record itself."""
    import os

    return os.path.join(os.path.dirname(os.path.abspath(__file__)), "start", "inject")
