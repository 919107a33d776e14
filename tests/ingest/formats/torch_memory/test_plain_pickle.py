"""Pickles are read as plain data, or not at all."""

import contextlib
import os
import pickle
import pickletools
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strobe.ingest.formats.torch_memory import plain_pickle
from strobe.ingest.formats.torch_memory.plain_pickle import Refused, loads

PROTOCOLS = range(2, pickle.HIGHEST_PROTOCOL + 1)
plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner) | st.tuples(inner, inner),
    max_leaves=30,
)


@given(plain, st.sampled_from(PROTOCOLS))
@settings(max_examples=200, deadline=None)
def test_plain_data_comes_back(value, protocol):
    assert loads(pickle.dumps(value, protocol)) == value


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_long_lists_shared_parts_and_loops_come_back(protocol):
    part = {"filename": "a.py", "line": 1}
    value = {
        "many": list(range(3000)),
        "shared": [part, part],
        "table": {i: i for i in range(3000)},
    }
    found = loads(pickle.dumps(value, protocol))
    assert found == value and found["shared"][0] is found["shared"][1]
    loop: list = []
    loop.append(loop)
    found = loads(pickle.dumps(loop, protocol))
    assert found[0] is found


class Runs:
    """Unpickled by Python, it leaves a file."""

    def __init__(self, path) -> None:
        self.path = path

    def __reduce__(self):
        return os.system, (f"touch {self.path}",)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_pickle_that_would_run_something_is_refused_and_runs_nothing(tmp_path, protocol):
    hostile = pickle.dumps({"segments": [], "device_traces": [Runs(tmp_path / "ran")]}, protocol)
    with pytest.raises(Refused):
        loads(hostile)
    assert not (tmp_path / "ran").exists()


def test_every_opcode_that_names_or_calls_is_unknown():
    asks = {"GLOBAL", "STACK_GLOBAL", "INST", "OBJ", "REDUCE", "BUILD", "NEWOBJ", "NEWOBJ_EX",
            "PERSID", "BINPERSID", "EXT1", "EXT2", "EXT4"}  # fmt: skip
    for opcode in pickletools.opcodes:
        if opcode.name in asks:
            with pytest.raises(Refused, match=f"opcode {opcode.name}\\)"):
                loads(b"\x80\x04" + opcode.code.encode("latin-1"))


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"\x80\x04",
        b"\x80\x04]",
        b"\x80\x04e.",
        b"\x80\x04}(K\x01u.",
        b"\x80\x04}(]K\x01u.",  # a list as a key
        b"\x80\x04](K\x01d.",
        b"\x80\x04X" + struct.pack("<I", 2**32 - 1) + b"x.",
        b"\x80\x04\x8d" + struct.pack("<Q", 2**64 - 1) + b"x.",
        b"\x80\x04\x8b" + struct.pack("<i", -5) + b".",
        b"\x80\x04\x8b" + struct.pack("<i", 100) + b"\xff" * 100 + b".",
        b"\x80\x04h\x07.",
        b"\x80\x040.",
        b"\x80\x04\x87.",
    ],
)
def test_damaged_pickles_are_refused(text):
    with pytest.raises(Refused):
        loads(text)


def test_every_cut_is_refused():
    whole = pickle.dumps({"a": [1, 2.5, "text", (1, 2)], "b": None})
    for end in range(len(whole)):
        with pytest.raises(Refused):
            loads(whole[:end])


@given(st.binary(max_size=200))
@settings(max_examples=500, deadline=None)
def test_any_bytes_are_data_or_refused(text):
    with contextlib.suppress(Refused):
        loads(b"\x80\x04" + text)


def test_bombs_are_bounded(monkeypatch):
    with pytest.raises(Refused, match="more values"):
        loads(pickle.dumps(list(range(1000))), most_values=500)
    monkeypatch.setattr(plain_pickle, "MOST_CONTAINERS", 100)
    with pytest.raises(Refused, match="more lists"):
        loads(pickle.dumps([[] for _ in range(1000)]))
    monkeypatch.setattr(plain_pickle, "_DEEPEST_STACK", 100)
    with pytest.raises(Refused, match="more values"):
        loads(b"\x80\x04" + b"N" * 1000)
    # Ten lists that each hold the one before ten times over: ten lists, not ten billion.
    laughs = b"\x80\x04]\x94" + b"".join(
        b"](" + b"h" + bytes([i]) + (b"h" + bytes([i])) * 9 + b"e\x94" for i in range(9)
    )
    assert len(loads(laughs + b".")) == 10
