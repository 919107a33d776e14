"""Every question about a run. To add one: write its function, add one line here."""

from strobe.web.question import Question

QUESTIONS: tuple[Question, ...] = (
    Question("", "strobe.web.about:about"),
    Question("advice", "strobe.web.about:advice"),
    Question("charts", "strobe.web.charts:scalars", keep="briefly"),
    Question("charts/curves", "strobe.web.charts:curves", keep="briefly"),
    Question("compare", "strobe.web.about:compare"),
    Question("live", "strobe.web.live:answer", pool="quick", keep="no"),
    Question("summary", "strobe.web.about:summary"),
    Question("table", "strobe.web.tables:answer"),
    Question("timeline", "strobe.web.timeline:meta", pool="quick", keep="no"),
    Question("timeline/area", "strobe.web.timeline:area", keep="briefly"),
    Question("timeline/arguments", "strobe.web.timeline:arguments", keep="briefly"),
    Question("timeline/at", "strobe.web.timeline:event_at", pool="quick", keep="no"),
    Question("timeline/curves", "strobe.web.timeline:curve_columns", pool="quick", keep="no"),
    Question("timeline/event", "strobe.web.timeline:event", pool="quick", keep="no"),
    Question("timeline/events", "strobe.web.timeline:longest", keep="briefly"),
    Question("timeline/export", "strobe.web.timeline:export", keep="no"),
    Question("timeline/index", "strobe.web.timeline:make", keep="briefly"),
    Question("timeline/names", "strobe.web.timeline:names", pool="quick", keep="no"),
    Question("timeline/search", "strobe.web.timeline:find", pool="quick", keep="no"),
    Question("timeline/steps", "strobe.web.timeline:stretch_of_steps", pool="quick", keep="no"),
    Question("timeline/tiles", "strobe.web.timeline:tiles", pool="quick", keep="no"),
)  # keep sorted

_BY_NAME = {question.name: question for question in QUESTIONS}


def named(name: str) -> Question:
    return _BY_NAME[name]


def question_of(words: tuple[str, ...]) -> tuple[Question | None, tuple[str, ...]]:
    """The question that an address names, by its longest beginning, and the rest of it."""
    for length in range(len(words), 0, -1):
        question = _BY_NAME.get("/".join(words[:length]))
        if question is not None:
            return question, words[length:]
    return (None, ()) if words else (_BY_NAME[""], ())
