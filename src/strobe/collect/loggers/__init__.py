"""What a script gives to other loggers is recorded too: they work on as before.

To add a logger, write a module with a function `install`, which wraps the logger's methods with
`wrap` (loggers/calls.py), and add a line here for each package whose import it waits for.
"""

import functools
import importlib

from strobe.collect.recorder import Recorder

# The package whose import makes the methods exist, and the function that wraps them.
LOGGERS = {
    "accelerate.accelerator": "strobe.collect.loggers.accelerate:install",
    "lightning.fabric.loggers": "strobe.collect.loggers.lightning:install_loggers",
    "lightning.pytorch.loggers": "strobe.collect.loggers.lightning:install_loggers",
    "lightning.pytorch.trainer.trainer": "strobe.collect.loggers.lightning:install_trainer",
    "lightning_fabric.loggers": "strobe.collect.loggers.lightning:install_loggers",
    "mindspore.train.summary._writer_pool": "strobe.collect.loggers.mindspore:install",
    "mlflow": "strobe.collect.loggers.mlflow:install",
    "pytorch_lightning.loggers": "strobe.collect.loggers.lightning:install_loggers",
    "pytorch_lightning.trainer.trainer": "strobe.collect.loggers.lightning:install_trainer",
    "tensorboardX.writer": "strobe.collect.loggers.tensorboard:install",
    "torch.utils.tensorboard.writer": "strobe.collect.loggers.tensorboard:install",
    "transformers.trainer_callback": "strobe.collect.loggers.transformers:install",
    "wandb": "strobe.collect.loggers.wandb:install",
}


def begin(recorder: Recorder) -> None:
    """Wrap the methods of every logger, now or when it is imported."""
    from strobe.collect.start.autostart import when_imported

    # The option that switches automatic metrics off.
    if not getattr(recorder.options, "metrics", True):
        return
    for package, path in LOGGERS.items():
        when_imported(package, functools.partial(_install, recorder, package, path))


def _install(recorder: Recorder, package: str, path: str) -> None:
    if recorder.is_off:
        return
    from strobe.collect.loggers import calls

    module, name = path.split(":")
    with calls.installing(recorder, package):
        getattr(importlib.import_module(module), name)(package)
