"""How jax is told to stop telling of compilations: its releases have other names for that."""

import sys
from types import SimpleNamespace

import pytest

from strobe.collect.jax_compile import Compilations


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
