"""Names of metrics that were recorded by themselves, and samples per second."""

from strobe.ingest.recording.automatic import names
from strobe.model.automatic_metrics import GRADIENT_NORM, LEARNING_RATE, LOSS, Series, series_of


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
