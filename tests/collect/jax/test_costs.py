"""What is told of programs that XLA has loaded; with a client that says what it is told to."""

import sys
from types import SimpleNamespace

from strobe.collect.jax.costs import Costs
from strobe.collect.jax.programs import Program


def loaded(module, flops, fingerprint):
    return SimpleNamespace(
        hlo_modules=lambda: [SimpleNamespace(name=module)],
        fingerprint=fingerprint,
        cost_analysis=lambda: {"flops": flops, "bytes accessed": 7.0, "utilization0{}": 1.0},
    )


def test_each_program_that_trains_is_told_once_the_newest_first(monkeypatch):
    executables = [loaded("jit_train_step", 30.0, b"new"), loaded("jit_train_step", 20.0, b"old"),
                   loaded("jit_other", 5.0, b"other")]  # fmt: skip
    client = SimpleNamespace(live_executables=lambda: executables)
    jax = SimpleNamespace(local_devices=lambda: [SimpleNamespace(client=client)])
    monkeypatch.setitem(sys.modules, "jax", jax)
    step, other = Program("train_step", 1), Program("other", 2)
    step.trains = True
    told = []
    recorder = SimpleNamespace(
        journal=SimpleNamespace(string=lambda kind, text: text),
        mark=lambda code, name, value: told.append((name, value)),
    )
    costs = Costs(recorder, lambda: [step, other])
    costs.tell()
    costs.tell()
    assert told == [("train_step program_flops", 30), ("train_step program_bytes", 7)]
