"""Parameters, tags and the facts about a run, of either kind of store."""

from typing import Any

from strobe.ingest.formats.trackers.logged_values import LoggedValues

SOURCE = "mlflow"
_FACTS = ("run", "name", "experiment", "status")
_OF_PAGES = ("mlflow.loggedImages", "mlflow.runName")  # tags that say nothing more


def store_facts(
    values: LoggedValues, params: dict[str, str], tags: dict[str, str], about: dict[str, Any]
) -> None:
    values.add_text_hyperparameters(params)
    facts = {name: about.get(name) for name in _FACTS}
    facts |= {name: value for name, value in tags.items() if name not in _OF_PAGES}
    values.add_facts("custom", facts)
