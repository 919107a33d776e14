"""Compilations of jax: why, and how it is told to stop telling of them."""

import sys
from types import SimpleNamespace

import pytest

from strobe.collect.jax import compile
from strobe.collect.jax.compile import Compilations
from strobe.model.journal import MADE_ANEW


@pytest.mark.parametrize(
    "name",
    ["unregister_event_duration_listener", "_unregister_event_duration_listener_by_callback"],
)
def test_it_listens_no_longer_whatever_jax_calls_that(monkeypatch, name):
    listeners = []
    monitoring = SimpleNamespace(
        register_event_duration_secs_listener=listeners.append,
        get_event_duration_listeners=lambda: listeners,
        **{name: listeners.remove},
    )
    monkeypatch.setitem(sys.modules, "jax", SimpleNamespace(monitoring=monitoring))
    monkeypatch.setitem(sys.modules, "jax._src", SimpleNamespace(monitoring=monitoring))
    compilations = Compilations(SimpleNamespace())
    compilations.install()
    assert listeners == [compilations.heard]
    compilations.uninstall()
    compilations.uninstall()
    assert listeners == []


def made():
    """A function that is made anew, as by jax.jit in a loop: other objects, the same code."""

    def train_step():
        pass

    return train_step


@pytest.fixture
def causes(monkeypatch):
    monkeypatch.setattr(compile, "_signature", lambda call: call.signature)
    compilations = Compilations(SimpleNamespace())

    def asked(function, **signature):
        return compilations._cause(SimpleNamespace(function=function, signature=signature))

    return asked


def test_a_function_that_is_made_anew_for_each_epoch_is_told_whatever_its_last_batch_was(causes):
    first, second = made(), made()
    assert causes(first, x="float32[8]") == ""
    assert causes(first, x="float32[3]") == "x was float32[8], now float32[3]"
    assert causes(second, x="float32[8]").startswith(MADE_ANEW)
    assert causes(second, x="float32[3]").startswith(MADE_ANEW)
    assert causes(second, x="float32[5]") == "x was float32[3], now float32[5]"


def test_one_that_is_kept_and_compiled_again_for_the_same_shapes_has_another_cause(causes):
    kept = made()
    causes(kept, x="float32[8]")
    assert causes(kept, x="float32[8]").startswith("called with the same shapes")
