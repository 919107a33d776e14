"""Values are named after what the script writes."""

import sys

from strobe.collect.metrics.call_names import CallNames, name_of_argument
from strobe.model.automatic_metrics import series_of


class Value:
    def backward(self, *args, **kwargs):
        return name_of_argument(sys._getframe(1))

    def mean(self):
        return self

    def __truediv__(self, other):
        return self

    def __add__(self, other):
        return self

    def __neg__(self):
        return self


class Library:
    def scale(self, value):
        return value

    def backward(self, value):
        return name_of_argument(sys._getframe(1), is_passed_on=True)


def grad(*args, **kwargs):
    return name_of_argument(sys._getframe(1))


loss, other, library = Value(), Value(), Library()
losses = {"real": loss}


def test_the_object_of_a_method_names_the_value():
    assert loss.backward() == "loss"
    assert (-loss).backward(retain_graph=True) == "loss"
    assert losses["real"].backward() == "real"
    assert loss.mean().backward() == "loss"
    assert (loss / 4).backward() == "loss"
    assert (loss + other).backward() == "loss + other"


def test_an_argument_names_the_value():
    assert grad(loss, [other]) == "loss"
    assert grad(outputs=other, inputs=loss) == "other"
    assert library.backward(loss) == "loss"
    assert library.scale(loss / 2).backward() == "loss"


def test_each_element_of_a_list_has_its_name():
    def second(*args):
        return name_of_argument(sys._getframe(1), element=1)

    both = [loss, other]
    assert second([loss, other / 2]) == "other"
    assert second(both) == "both.1"


def test_a_call_of_several_lines_has_a_name():
    # fmt: off
    name = library.scale(
        loss / 4
    ).backward(
        retain_graph=True,
    )
    # fmt: on
    assert name == "loss"


def test_source_that_cannot_be_read_has_no_name():
    scope = {"loss": loss}
    exec("name = loss.backward()", scope)
    assert scope["name"] == ""


def test_each_instruction_has_its_tag():
    names = CallNames()

    def tag():
        return series_of(names.tag("loss", sys._getframe(1)))

    first, second = (tag() for _ in range(2))
    third = tag()
    assert first == second
    assert first.kind == "loss" and third.line == first.line + 1
