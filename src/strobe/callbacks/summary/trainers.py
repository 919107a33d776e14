"""SummaryCollector as a callback of MindSpore, Lightning and transformers.

Some methods have the same name in two of them; the number of arguments tells which one calls:
MindSpore passes its run context, Lightning a trainer and a module, transformers arguments, state
and control.
"""

import functools
import math
import sys
from collections.abc import Mapping
from typing import Any

from strobe.callbacks.summary import contents
from strobe.callbacks.summary.mindspore_training import MindSporeTraining

# Where each trainer has the base class of its callbacks.
_BASES = (
    ("mindspore.train", "Callback"), ("mindspore.train.callback", "Callback"),
    ("lightning.pytorch.callbacks", "Callback"), ("pytorch_lightning.callbacks", "Callback"),
    ("transformers", "TrainerCallback"),
)  # fmt: skip
_MINDSPORE, _LIGHTNING, _TRANSFORMERS = 1, 2, 3


def callback_class(own: type) -> type:
    """The class itself, or a subclass that the trainers imported so far accept as a callback."""
    found: list[type] = []
    for module, name in _BASES:
        base = getattr(sys.modules.get(module), name, None)
        if isinstance(base, type) and not any(issubclass(one, base) for one in (own, *found)):
            found.append(base)
    return _combined(own, tuple(found))


@functools.cache
def _combined(own: type, bases: tuple[type, ...]) -> type:
    if not bases:
        return own
    body = {"__module__": own.__module__, "__doc__": own.__doc__, "__qualname__": own.__qualname__}
    return type(own.__name__, (own, *bases), body)


class TrainerCalls:
    """The methods that trainers call; nothing in them raises into training."""

    def _prepare_trainer(self) -> None:
        self._mindspore = MindSporeTraining(self)
        self._hook: Any = None
        self._loss: Any = None
        self._inputs: Any = None

    # MindSpore

    def begin(self, run_context: Any) -> None:
        self._mindspore.begin(run_context)

    def step_end(self, run_context: Any) -> None:
        self._mindspore.step_end(run_context)

    def epoch_end(self, run_context: Any) -> None:
        self._mindspore.epoch_end(run_context)

    def end(self, run_context: Any) -> None:
        self._mindspore.end(run_context)

    on_eval_begin, on_eval_end, on_train_step_end = begin, end, step_end

    # Names that several of them call

    def on_train_begin(self, *given: Any, **more: Any) -> None:
        if len(given) == _MINDSPORE:
            self.begin(*given)
        elif len(given) == _TRANSFORMERS and more.get("model") is not None:
            self._watch(more["model"])

    def on_train_epoch_end(self, *given: Any, **more: Any) -> None:
        if len(given) == _MINDSPORE:
            self.epoch_end(*given)
        elif len(given) == _LIGHTNING:
            trainer, module = given
            self._save_epoch(trainer.current_epoch + 1, module)

    def on_train_end(self, *given: Any, **more: Any) -> None:
        if len(given) == _MINDSPORE:
            self.end(*given)
        elif len(given) == _TRANSFORMERS:
            self._unwatch()
            self.finish()  # type: ignore[attr-defined]

    def on_epoch_end(self, *given: Any, **more: Any) -> None:
        if len(given) == _TRANSFORMERS:
            self._save_epoch(math.ceil(given[1].epoch or 0), more.get("model"))

    def _save_epoch(self, epoch: int, model: Any) -> None:
        self.guarded("epoch", lambda: self._checkpoints.save("epoch", epoch, model))  # type: ignore[attr-defined]

    # Lightning

    def on_train_batch_end(
        self, trainer: Any, module: Any, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        optimizers = trainer.optimizers
        self.step(  # type: ignore[attr-defined]
            loss=outputs, model=module, inputs=batch, step=trainer.global_step,
            optimizer=optimizers[0] if optimizers else None, epoch=trainer.current_epoch + 1,
            total_steps=self.guarded("steps", lambda: _lightning_steps(trainer)),  # type: ignore[attr-defined]
        )  # fmt: skip

    def on_validation_end(self, trainer: Any, module: Any) -> None:
        if not getattr(trainer, "sanity_checking", False):
            self._evaluated(trainer.callback_metrics)

    def on_test_end(self, trainer: Any, module: Any) -> None:
        self._evaluated(trainer.callback_metrics)

    def on_fit_end(self, trainer: Any, module: Any) -> None:
        self.finish()  # type: ignore[attr-defined]

    def on_exception(self, trainer: Any, module: Any, exception: BaseException) -> None:
        self.finish()  # type: ignore[attr-defined]

    # transformers

    def on_step_end(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        epochs = math.ceil(state.epoch or 0) or None
        self.step(  # type: ignore[attr-defined]
            loss=self._loss, model=more.get("model"), inputs=self._inputs, step=state.global_step,
            optimizer=more.get("optimizer"), epoch=epochs, total_steps=state.max_steps,
        )  # fmt: skip
        self._loss = self._inputs = None

    def on_evaluate(
        self, args: Any, state: Any, control: Any, metrics: Any = None, **more: Any
    ) -> None:
        self._evaluated(metrics or {})

    def _evaluated(self, metrics: Mapping[str, Any]) -> None:
        self.guarded("evaluation", lambda: self.take_evaluation(dict(metrics)))  # type: ignore[attr-defined]

    def _watch(self, model: Any) -> None:
        """transformers passes neither the loss nor the batch of a step to its callbacks."""
        if self._hook is None and hasattr(model, "register_forward_hook"):
            self._hook = model.register_forward_hook(self._forward_ended, with_kwargs=True)

    def _unwatch(self) -> None:
        hook, self._hook = self._hook, None
        if hook is not None:
            hook.remove()

    def _forward_ended(
        self, module: Any, given: tuple[Any, ...], named: dict[str, Any], outputs: Any
    ) -> None:
        if module.training:  # what a hook returns would replace the outputs
            self.guarded("outputs", lambda: self._remember(given, named, outputs))  # type: ignore[attr-defined]

    def _remember(self, given: tuple[Any, ...], named: dict[str, Any], outputs: Any) -> None:
        loss = contents.first_of(outputs)
        self._loss = loss.detach() if hasattr(loss, "detach") else None
        batch = given or tuple(named.values())
        self._inputs = batch[0] if batch else None


def _lightning_steps(trainer: Any) -> int | None:
    if trainer.max_steps and trainer.max_steps > 0:
        return int(trainer.max_steps)
    epochs, batches = trainer.max_epochs, trainer.num_training_batches
    if not epochs or epochs < 0 or not math.isfinite(batches):
        return None
    return int(epochs * math.ceil(batches / max(1, trainer.accumulate_grad_batches)))
