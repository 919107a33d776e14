"""A fix is told in the words of the framework that trains."""

import pytest

from strobe.advise import exposed_communication, library_iterator, memory_growth, periodic_stall
from strobe.advise.finding import Finding
from strobe.advise.training import Training
from tests.advise.drawings import steps
from tests.helpers import make_run

WORDS = [
    exposed_communication._WAYS,
    library_iterator.LOADERS,
    memory_growth._COLLECT,
    memory_growth._NUMBER,
    periodic_stall._SAVE_ASYNCHRONOUSLY,
]


def training(tmp_path, frameworks: set[str], parts=()) -> Training:
    run = make_run(tmp_path, steps(*(parts or [{"gap": 10, "forward": 90}] * 20)))
    run.manifest.ranks[0].frameworks = dict.fromkeys(frameworks, "1.0")
    return Training(run)


@pytest.mark.parametrize(
    ("frameworks", "speaks"),
    [
        (set(), "torch"),
        ({"torch"}, "torch"),
        ({"jax"}, "jax"),
        ({"mindspore"}, "mindspore"),
        ({"jax", "torch"}, "torch"),
    ],
)
def test_the_words_are_those_of_the_only_framework_and_else_of_torch(tmp_path, frameworks, speaks):
    assert training(tmp_path, frameworks).framework == speaks


@pytest.mark.parametrize("words", WORDS, ids=lambda words: next(iter(str(words).split())))
def test_each_framework_has_its_own_words(words):
    assert {*words} == {"torch", "jax", "mindspore"}
    for framework in ("jax", "mindspore"):
        assert "torch" not in str(words[framework])


def test_a_jax_training_is_not_told_to_use_no_grad(tmp_path):
    usual, long = {"gap": 100, "forward": 9900}, {"gap": 40_100, "forward": 9900}
    parts = [long if number % 10 == 0 else usual for number in range(1, 61)]
    verdict = periodic_stall.check(training(tmp_path, {"jax"}, parts))
    assert isinstance(verdict, Finding)
    assert not any("torch" in fix for fix in verdict.fixes)
