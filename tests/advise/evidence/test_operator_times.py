import numpy as np
import pytest

from strobe.advise.evidence.operator_times import (
    bare,
    operator_costs,
    origins,
    undisturbed_ns,
    where_called,
    why_not,
)
from strobe.advise.finding import CannotTell
from strobe.advise.training import Training
from tests.advise.drawings import no_core, same, steps
from tests.advise.operators import Op, training
from tests.analyse.drawings import DEVICE
from tests.helpers import make_run

LENGTHS = {"forward": 100, "backward": 100, "update": 20}


def test_calls_that_are_alike_are_one_cost_by_their_medians(tmp_path):
    # What is longer in one step was disturbed; what is longer in each of them takes as long.
    disturbed = Op("aten::mm", 10, us_at={7: 40})
    found = training(
        tmp_path, lengths_us=LENGTHS,
        forward=[disturbed, Op("aten::mm", 10), Op("aten::mm", 25), Op("aten::add", 5)],
    )  # fmt: skip
    costs = {cost.name: cost for cost in operator_costs(found)}
    assert costs["aten::mm"].calls == 3 and costs["aten::mm"].cost_ns == 45_000
    assert costs["aten::add"].cost_ns == 5_000 and costs["aten::add"].type == "add"


def test_operators_of_a_phase_never_take_more_than_it_takes(tmp_path):
    found = training(
        tmp_path, lengths_us=LENGTHS, forward=[Op("aten::mm", 150), Op("aten::add", 50)]
    )
    costs = {cost.name: cost.cost_ns for cost in operator_costs(found)}
    assert costs == {"aten::mm": 75_000, "aten::add": 25_000}


def test_where_steps_that_were_not_recorded_take_longer_their_operators_do(tmp_path):
    recorded_us = {"forward": 50, "backward": 100, "update": 40}
    found = training(
        tmp_path, lengths_us=LENGTHS, recorded_us=recorded_us,
        forward=[Op("aten::sort", 40)], backward=[Op("aten::mm", 30)], update=[Op("aten::add", 15)],
    )  # fmt: skip
    costs = {cost.name: cost.cost_ns for cost in operator_costs(found)}
    # The update is slowed by its recording, and its operators by more than what is taken off.
    assert costs == {"aten::sort": 80_000, "aten::mm": 30_000, "aten::add": 15_000}


def test_a_phase_of_a_compiled_program_consists_of_its_operators(tmp_path):
    found = training(tmp_path, lengths_us=LENGTHS, forward=[Op("sort", 30), Op("dot", 10)])
    found.runs_programs = True
    costs = {cost.name: cost.cost_ns for cost in operator_costs(found)}
    assert costs == {"sort": 75_000, "dot": 25_000}


def test_operators_of_a_compiled_program_share_its_time_across_phases(tmp_path):
    """What they take together, 150 us, is spread over the 200 us of both phases alike."""
    found = training(
        tmp_path, lengths_us=LENGTHS, forward=[Op("svd", 90)], backward=[Op("dot", 60)]
    )
    found.runs_programs = True
    costs = {cost.name: cost.cost_ns for cost in operator_costs(found)}
    assert costs == {"svd": pytest.approx(120_000), "dot": pytest.approx(80_000)}


def test_inner_and_backward_operators_know_what_the_model_called(tmp_path):
    found = training(
        tmp_path, lengths_us=LENGTHS,
        forward=[Op("aten::linear", 20, inside=(Op("aten::addmm", 15),))],
        backward=[Op("autograd: AddmmBackward0", 30, of=0, inside=(Op("aten::mm", 25),))],
    )  # fmt: skip
    costs = {cost.name: cost for cost in operator_costs(found)}
    assert costs["aten::addmm"].root == "aten::linear"
    assert costs["aten::mm"].root == "aten::linear" and costs["aten::mm"].direction == "backward"
    assert costs["aten::linear"].cost_ns == 5_000


def test_origins_climb_to_the_top_and_over_the_link():
    ids = np.array([1, 2, 3, 10, 11])
    found = origins(ids, np.array([-1, 1, 2, -1, 10]), np.array([-1, -1, -1, 2, -1]))
    assert found["top_id"].tolist() == [1, 1, 1, 10, 10]
    assert found["cause_id"].tolist() == [1, 2, 3, 2, 2]
    assert found["root_id"].tolist() == [1, 1, 1, 1, 1]


def test_without_operators_or_with_a_device_it_cannot_be_told(tmp_path):
    light = Training(make_run(tmp_path / "a", steps(*same({"forward": 5}, 9))))
    assert isinstance(why_not(light), CannotTell)
    assert isinstance(why_not(Training(make_run(tmp_path / "b", DEVICE))), CannotTell)


def test_without_looks_the_module_is_where(tmp_path):
    found = training(tmp_path, lengths_us=LENGTHS, forward=[Op("aten::sort", 10, scope="net.a")])
    assert where_called(found, operator_costs(found)) == "net.a"


def test_bare():
    assert bare("aten::mm") == "mm" and bare("mm") == "mm"


def test_the_undisturbed_step_is_never_shorter_than_its_operators(tmp_path):
    """The steps had no core for nearly all of their time."""
    counters = no_core((0, 0), (14_000, 13_900))["counters"]
    drawn = training(
        tmp_path, lengths_us={"forward": 1000}, tables={"counters": counters},
        forward=[Op("aten::mm", 600)],
    )  # fmt: skip
    costs = operator_costs(drawn)
    assert undisturbed_ns(drawn, costs) == sum(cost.cost_ns for cost in costs)
    assert undisturbed_ns(drawn, []) < 100_000
