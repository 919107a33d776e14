import importlib

from strobe.web.questions import QUESTIONS, question_of


def test_every_question_has_its_function_and_its_place():
    names = [question.name for question in QUESTIONS]
    assert names == sorted(names) and len(names) == len(set(names))
    for question in QUESTIONS:
        module, _, name = question.function.partition(":")
        assert callable(getattr(importlib.import_module(module), name)), question.name


def test_the_longest_name_wins():
    question, rest = question_of(("table", "steps"))
    assert question.name == "table" and rest == ("steps",)
    assert question_of(())[0].name == ""
    assert question_of(("nothing",)) == (None, ())
    assert question_of(("timeline", "tiles"))[0].name == "timeline/tiles"
