"""What a run is and why it is slow: its manifest and tables, the summary, advice, comparison."""

from strobe.web import tables
from strobe.web.question import Answer, Asked


def about(asked: Asked) -> Answer:
    """The manifest, and every table that can be shown."""
    from strobe.show import page_answers

    return tables.as_json(page_answers.about(asked.run.run, asked.content))


def summary(asked: Asked) -> Answer:
    """As `strobe show RUN --json`, with the verdict."""
    from strobe.show import page_answers

    return tables.as_json(page_answers.summary(asked.run.run, asked.run.advice))


def advice(asked: Asked) -> Answer:
    """As `strobe advise RUN --json`, with the reasons of the rules that are clear."""
    from strobe.advise import advise, rules_named
    from strobe.show import page_answers

    chosen = rules_named(asked.words)
    advice = advise(asked.run.run, chosen) if asked.words else asked.run.advice
    return tables.as_json(page_answers.advised(advice))


def compare(asked: Asked) -> Answer:
    """As `strobe compare A B --json`."""
    from strobe.analyse.comparison.runs import compare as compare_runs

    (other,) = asked.others
    told = compare_runs(asked.run.run, other.run.run).to_json()
    return tables.as_json({**told, "a": asked.path.name, "b": other.path.name})
