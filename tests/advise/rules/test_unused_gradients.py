import json

import pytest

from strobe.advise.finding import CannotTell, Clear, Finding
from strobe.advise.rules import unused_gradients
from strobe.model.journal import DISCARDED_GRADIENTS, UNTRAINED_PARAMETERS
from tests.advise.drawings import same, steps
from tests.advise.operators import Op, Training, training
from tests.helpers import make_run

LENGTHS_US = {"forward": 400, "backward": 500, "update": 100}


def noted(*found):
    """What the recorder noted of the model's parameters, one after the other."""
    return {"places": {
        "rank": [0] * len(found), "what": [UNTRAINED_PARAMETERS] * len(found),
        "number": list(range(1, len(found) + 1)), "file": ["/x/train.py"] * len(found),
        "line": [31] * len(found), "function": ["main"] * len(found),
        "details": [json.dumps(one) for one in found],
    }}  # fmt: skip


BACKBONE = {"tensors": 4, "modules": ["backbone"], "trained": ["head"]}


def model(tmp_path, tables, order=("backbone", "head")):
    """Two layers of 100 us, whose backward takes 200 us and 100 us."""
    back = {"backbone": 200, "head": 100}
    forward = [Op("aten::linear", 100, [[8, 8]], scope=f"Net.{name}") for name in order]
    backward = [Op("AddmmBackward0", back[name], scope=f"Net.{name}", of=number)
                for number, name in reversed(list(enumerate(order)))]  # fmt: skip
    return training(
        tmp_path, lengths_us=LENGTHS_US, tables=tables, forward=forward, backward=backward
    )


def test_what_runs_before_the_first_trained_module_needs_no_backward(tmp_path):
    verdict = unused_gradients.check(model(tmp_path, noted(BACKBONE)))
    assert isinstance(verdict, Finding) and not verdict.is_certain
    assert verdict.share == pytest.approx(200 / 1000, abs=0.001)
    assert verdict.fixes[0] == "Call `model.backbone.requires_grad_(False)` before training"
    assert verdict.where == "train.py:31"
    assert verdict.title == (
        "Computing gradients that no optimizer uses takes about 20% of step time."
    )
    assert verdict.why.startswith("No optimizer updates 4 parameter tensors of backbone, ")


@pytest.mark.parametrize(("modules", "named"), [
    (["a"], "2 parameter tensors of a"),
    (["a", "b"], "2 parameter tensors of a and b"),
    (["a", "b", "c"], "2 parameter tensors of a, b and other modules"),
])  # fmt: skip
def test_two_modules_are_named(modules, named):
    assert unused_gradients._parameters(2, modules) == named


def test_behind_a_trained_module_half_of_it_is_needed(tmp_path):
    verdict = unused_gradients.check(model(tmp_path, noted(BACKBONE), order=("head", "backbone")))
    assert isinstance(verdict, Finding)
    assert verdict.share == pytest.approx(100 / 1000, abs=0.001)


def test_what_was_noted_last_counts(tmp_path):
    """A second optimizer made its first update later."""
    assert isinstance(
        unused_gradients.check(model(tmp_path, noted(BACKBONE, {"tensors": 0}))), Clear
    )


def test_when_all_parameters_are_trained_it_is_clear(tmp_path):
    assert isinstance(unused_gradients.check(model(tmp_path, None)), Clear)


def test_without_operators_it_cannot_be_told(tmp_path):
    run = make_run(tmp_path, steps(*same({"forward": 100}, 20)), noted(BACKBONE))
    assert isinstance(unused_gradients.check(Training(run)), CannotTell)


def discarded(model="Net", updates=16, cleared=16):
    found = noted({"module": model, "updates": updates, "discarded": cleared})
    found["places"]["what"] = [DISCARDED_GRADIENTS]
    return found


def test_gradients_that_are_cleared_before_they_are_used(tmp_path):
    verdict = unused_gradients.check(model(tmp_path, discarded()))
    assert isinstance(verdict, Finding) and not verdict.is_certain
    assert verdict.share == pytest.approx(0.5 * 300 / 1000, abs=0.001)
    assert verdict.title == (
        "Computing gradients of Net that are cleared without being used takes about 15% of step "
        "time."
    )
    assert verdict.why.startswith("50% of the backward passes of Net compute gradients that are")
    assert verdict.where == "train.py:31" and "detach" in verdict.fixes[0]


def test_gradients_that_others_follow_from_are_needed(tmp_path):
    """Those of a discriminator through which the loss of a generator goes."""
    forward = [Op("aten::linear", 100, [[8, 8]], scope=f"{name}.fc") for name in ("Gen", "Net")]
    backward = [Op("AddmmBackward0", 200, scope="Net.fc", of=1),
                Op("AddmmBackward0", 200, scope="Gen.fc", of=0)]  # fmt: skip
    drawn = training(tmp_path, lengths_us=LENGTHS_US, tables=discarded(), forward=forward,
                     backward=backward)  # fmt: skip
    verdict = unused_gradients.check(drawn)
    assert isinstance(verdict, Clear) and "other gradients depend on them" in verdict.why
