"""Run a script under TraceML: `traceml run under_traceml.py --args SCRIPT ...`.

TraceML needs a plain loop changed: `init()` at its beginning, and every step inside
`trace_step(model)`. Both are done here for a script that stays as it is: a step begins with the
first forward call of a module that trains, and ends with the update.
"""

import sys

import torch
import traceml_ai as traceml
from torch.nn.modules.module import register_module_forward_pre_hook
from torch.optim.optimizer import register_optimizer_step_post_hook
from watching import run_as_main


class Steps:
    def __init__(self):
        self._open = None
        register_module_forward_pre_hook(self._before_forward)
        register_optimizer_step_post_hook(self._after_update)

    def _before_forward(self, module, _):
        if self._open is None and module.training and torch.is_grad_enabled():
            self._open = traceml.trace_step(module)
            self._open.__enter__()

    def _after_update(self, *_):
        if self._open is not None:
            step, self._open = self._open, None
            step.__exit__(None, None, None)


if __name__ == "__main__":
    traceml.init()
    Steps()
    run_as_main(sys.argv[1:])
