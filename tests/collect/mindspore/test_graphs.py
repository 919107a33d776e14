"""How compilations are named, without MindSpore."""

import threading
from types import SimpleNamespace

from strobe.collect.journal import Journal
from strobe.collect.mindspore.graphs import Graphs


class Tensor:
    dtype = "Float32"

    def __init__(self, *shape: int):
        self.shape = shape

    def __repr__(self):
        raise AssertionError("whoever asks for a value waits for it")


def names(*signatures: tuple) -> list[str]:
    """Of one function, compiled for each of these in turn."""
    journal = Journal()
    graphs = Graphs(SimpleNamespace(journal=journal), lambda thing: False)
    for given in signatures:
        graphs._name((None, given, 'function "step" at the file "train.py"'))
    return [text.partition(" at ")[0] for _, text in journal._strings]


def test_a_compilation_tells_what_is_another_than_before():
    assert names((Tensor(64, 8), 3), (Tensor(64, 9), 3), (Tensor(64, 9), 4)) == [
        "compilation 1 of step",
        "compilation 2 of step (Float32[64, 9], was Float32[64, 8])",
        "compilation 3 of step (4, was 3)",
    ]


def test_tensors_in_tuples_are_told_by_their_shapes_as_well():
    first, then = (Tensor(1), (Tensor(2), [Tensor(3)])), (Tensor(1), (Tensor(2), [Tensor(4)]))
    assert names(first, then) == [
        "compilation 1 of step",
        "compilation 2 of step (Float32[4], was Float32[3])",
    ]


def test_what_is_neither_tensor_nor_number_is_told_by_its_class():
    assert names((object(),), (Tensor(1),))[1] == "compilation 2 of step (Float32[1], was object)"


def test_a_function_that_is_made_again_is_the_cause():
    """In each epoch, with the same arguments; one that is compiled again for no reason is not."""
    journal, thread = Journal(), threading.get_ident()
    graphs = Graphs(SimpleNamespace(journal=journal), lambda thing: False)
    for address in (1, 1, 2):
        graphs.called[thread] = address
        graphs._name((None, (Tensor(64, 8),), 'function "step" at the file "train.py"'))
    graphs.forget(2)  # gone, and another one has come to its address
    graphs._name((None, (Tensor(64, 8),), 'function "step" at the file "train.py"'))
    assert [text.partition(" at ")[0] for _, text in journal._strings] == [
        "compilation 1 of step",
        "compilation 2 of step",
        "compilation 3 of step (the function was created again)",
        "compilation 4 of step (the function was created again)",
    ]
