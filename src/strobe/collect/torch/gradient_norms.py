"""The norm of the gradients before an update, where the script does not compute it itself.

It reads every gradient once, so it is computed only as often as this costs a share of training time
that nobody notices, and never inside a window, where its operators would be recorded. Where an
update sees only a part of the gradients, or scaled ones, there is none.
"""

import sys
from time import monotonic_ns
from typing import TYPE_CHECKING, Any

from strobe.collect.torch.scalars import ScalarReader
from strobe.model.automatic_metrics import GRADIENT_NORM, Series
from strobe.model.metric_tables import AUTOMATIC

if TYPE_CHECKING:
    from strobe.collect.torch.hooks import TorchHooks

# Its share of training time is at most one part in this.
_SHARE = 500
# Before it was measured once: what a first call may cost.
_EXPECTED_NS = 1_000_000
# A device reads gradients at about this rate; the host cannot measure that without waiting.
_BYTES_PER_NS = 200
# Cannot be measured now: look again.
_RETRY_NS = 20_000_000
_NEVER_NS = 1 << 62
# An optimizer that makes no update in this many of the others loses its turn.
_MOST_MISSED = 16


class GradientNorms:
    def __init__(self, hooks: "TorchHooks", torch: Any, reader: ScalarReader) -> None:
        self._hooks, self._torch, self._reader = hooks, torch, reader
        self._began_ns = monotonic_ns()
        # When the next measurement is within the budget.
        self.due_ns = self._began_ns + _EXPECTED_NS * _SHARE
        # Whether the script computes it.
        self.is_known = False
        self._tags: dict[int, str] = {}
        # Whose turn it is; and updates of others since it is.
        self._turn = self._missed = 0

    def after_fork_in_child(self) -> None:
        self._began_ns = monotonic_ns()
        self.due_ns = self._began_ns + _EXPECTED_NS * _SHARE

    def measure(self, optimizer: Any, number: int, optimizers: int = 1) -> None:
        """Before an update of this optimizer, the number of which names its values. Where there are
        several, they have turns.
        """
        began_ns = monotonic_ns()
        if number != self._turn % optimizers and self._missed < _MOST_MISSED:
            self._missed += 1
            return
        self._turn, self._missed = number + 1, 0
        if self.is_known or self._is_sharded():
            self.due_ns = _NEVER_NS
            return
        if self._is_watched():
            self.due_ns = began_ns + _RETRY_NS
            return
        gradients = self._gradients(optimizer)
        if not gradients:  # none yet, or not such as can be measured
            self.due_ns = began_ns + _RETRY_NS
            return
        value = self._reader.read(self._norm(gradients))
        cost_ns = monotonic_ns() - began_ns
        if not gradients[0].is_cpu:
            size = sum(one.numel() * one.element_size() for one in gradients)
            cost_ns += size // _BYTES_PER_NS
        # From its beginning: the time that is spent here belongs to what it is a share of.
        self.due_ns = began_ns + cost_ns * _SHARE
        if value is not None:
            tag = self._tags.get(number)
            if tag is None:
                series = Series(GRADIENT_NORM, "", optimizer=number)
                tag = self._tags[number] = series.tag
            self._hooks.recorder.metrics.scalars({tag: value}, None, AUTOMATIC, began_ns)

    def _is_watched(self) -> bool:
        """Whether somebody records operators, or a device's graph."""
        core = self._torch._C
        windows = self._hooks.windows
        return (
            windows.is_recording
            or windows.has_others
            or core._len_torch_dispatch_stack() > 0
            or self._torch.autograd._profiler_enabled()
            or self._reader.captures > 0
        )

    def _is_sharded(self) -> bool:
        """Whether a rank may have only a part of the gradients."""
        distributed = self._torch.distributed
        if not distributed.is_available() or not distributed.is_initialized():
            return False
        if distributed.get_world_size() == 1:
            return False
        is_split = "torch.distributed.optim.zero_redundancy_optimizer" in sys.modules
        return is_split or not self._hooks.has_exchange

    def _gradients(self, optimizer: Any) -> list[Any]:
        """Empty if there are none, or if one of them is not a plain tensor of all its values."""
        torch = self._torch
        if getattr(optimizer, "grad_scale", None) is not None:
            return []  # the update will divide them
        found = [
            parameter.grad
            for group in optimizer.param_groups
            for parameter in group["params"]
            if parameter.grad is not None
        ]
        for one in found:
            is_plain = one.__class__ is torch.Tensor and one.layout is torch.strided
            if not is_plain or not one.is_floating_point() or one.device != found[0].device:
                return []
        return found if found and (found[0].is_cpu or found[0].is_cuda) else []

    def _norm(self, gradients: list[Any]) -> Any:
        """In the same way as torch.nn.utils.clip_grad_norm_, so that it is the same number."""
        torch = self._torch
        by_type: dict[Any, list[Any]] = {}
        for one in gradients:
            by_type.setdefault(one.dtype, []).append(one)
        with torch._C.DisableTorchFunction(), torch.no_grad():
            norms = [norm for some in by_type.values() for norm in torch._foreach_norm(some, 2.0)]
            return torch.linalg.vector_norm(torch.stack(norms), 2.0)
