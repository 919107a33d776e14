"""Names of metrics that were recorded by themselves, and samples per second."""

import numpy as np

from strobe.ingest.recording.automatic import names, of_optimizers
from strobe.ingest.recording.journal_reader import Journal
from strobe.model.automatic_metrics import GRADIENT_NORM, LEARNING_RATE, LOSS, Series, series_of
from strobe.model.journal import Mark


def named(*series):
    found = names([one.tag for one in series])
    return [found[one.tag] for one in series]


def loss(name, function="<module>", line=1):
    return Series(LOSS, name, function, line)


def rate(optimizer, group, name=""):
    return Series(LEARNING_RATE, name, optimizer=optimizer, group=group)


def test_what_is_written_can_be_read_again():
    series = Series(LOSS, "loss", "train", 7, -1, -1)
    assert series_of(series.tag) == series
    assert series_of("loss") is None and series_of("a\tb\tc\td\te\tf") is None


def test_one_loss_alone_has_the_plain_name():
    assert named(loss("total")) == ["loss"]
    assert named(loss("loss", "f", 3), loss("loss", "f", 9)) == ["loss", "loss"]


def test_several_losses_are_named_after_their_variables():
    assert named(loss("d"), loss("g")) == ["loss/d", "loss/g"]
    assert named(loss("", line=3), loss("g")) == ["loss/line 3", "loss/g"]


def test_variables_of_the_same_name_are_named_after_their_functions():
    found = named(loss("loss", "actor"), loss("loss", "critic"), loss("entropy"))
    assert found == ["loss/actor.loss", "loss/critic.loss", "loss/entropy"]


def test_learning_rates_are_numbered_if_there_are_several():
    assert named(rate(0, 0)) == ["learning_rate"]
    assert named(rate(1, 0), rate(0, 1), rate(0, 0)) == [
        "learning_rate/2", "learning_rate/1", "learning_rate/0",
    ]  # fmt: skip
    assert named(rate(0, 0, "body"), rate(0, 1, "head")) == [
        "learning_rate/body", "learning_rate/head",
    ]  # fmt: skip


def test_norms_of_the_script_replace_those_that_were_computed_before():
    computed = Series(GRADIENT_NORM, "", optimizer=0)
    assert named(computed) == ["gradient_norm"]
    assert named(computed, Series(GRADIENT_NORM, "net", "train", 4)) == [None, "gradient_norm"]


def test_other_tags_keep_their_names():
    assert names(["accuracy", "loss/validation"]) == {}


def test_a_computed_norm_has_the_number_of_its_optimizer_if_there_are_several():
    norm = Series(GRADIENT_NORM, "", optimizer=1)
    found = named(norm, rate(0, 0), rate(1, 0))
    assert found == ["gradient_norm/1", "learning_rate/0", "learning_rate/1"]


def journal(*marks):
    """Updates: when they begin and end, and of which optimizer."""
    began, ended = Mark.UPDATE_BEGAN, Mark.UPDATE_ENDED
    rows = [row for begin, end, ref in marks for row in ((begin, began, ref), (end, ended, ref))]
    ts_ns, code, ref = (np.array(column, dtype=np.int64) for column in zip(*rows, strict=True))
    return Journal(ts_ns, ts_ns * 0, ref, ts_ns * 0, code)


def divided(times, *marks):
    tag = loss("loss").tag
    there = journal(*marks)
    found = of_optimizers({tag: np.array(times)}, there, there.ts_ns)
    if not found:
        return None
    tags, which = found[tag]
    assert [series_of(one).group for one in tags] == list(range(len(tags)))
    return which.tolist()


def test_a_loss_that_two_optimizers_train_on_in_turn_is_divided():
    updates = [(at, at + 2, 7 if at % 20 else 5) for at in range(10, 90, 10)]
    assert divided(range(5, 85, 10), *updates) == [0, 1, 0, 1, 0, 1, 0, 1]
    assert divided(range(11, 91, 10), *updates) == [0, 1, 0, 1, 0, 1, 0, 1]  # in a closure


def test_a_loss_whose_optimizer_is_replaced_is_not_divided():
    updates = [(at, at + 2, 5 + at // 50) for at in range(10, 90, 10)]
    assert divided(range(5, 85, 10), *updates) is None


def test_names_of_a_divided_loss_have_the_numbers_of_the_optimizers():
    first, second = (loss("loss")._replace(group=number) for number in range(2))
    assert named(first, second) == ["loss/0", "loss/1"]
    assert named(first, second, loss("other")) == ["loss/loss/0", "loss/loss/1", "loss/other"]
