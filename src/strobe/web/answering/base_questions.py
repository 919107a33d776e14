"""Questions about the base directory: its runs, changes to them, and the manuals of rules."""

from collections.abc import Callable
from typing import Any

import msgspec

from strobe.store.run_folder import while_there
from strobe.web.answering.run_content import content_of, state_of
from strobe.web.base_dir import BaseDir
from strobe.web.changes import change
from strobe.web.question import Answer


def _listing(base: BaseDir, job: dict[str, Any]) -> Answer:
    listing = {"ok": True, "base_dir": str(base.path), "runs": base.listing()}
    return Answer(msgspec.json.encode(listing))


def _catalogue(base: BaseDir, job: dict[str, Any]) -> Answer:
    from strobe.web import catalogue, tables

    return tables.as_json(catalogue.answer(base, job))


def _content(base: BaseDir, job: dict[str, Any]) -> Answer:
    folder = base.find(job["id"])
    with while_there(folder):
        _, state = state_of(folder)
        return Answer(msgspec.json.encode({"content": content_of(folder), "state": state}))


def _change(base: BaseDir, job: dict[str, Any]) -> Answer:
    return Answer(msgspec.json.encode(change(base, job["what"], job["id"], job["body"])))


def _rules(base: BaseDir, job: dict[str, Any]) -> Answer:
    from strobe.advise import manual, rules_named
    from strobe.advise.rules import RULES
    from strobe.show.page_answers import explained

    if not job["rule"]:
        listed = [{"rule": rule.NAME, "title": manual(rule)[0]} for rule in RULES]
        return Answer(msgspec.json.encode({"ok": True, "rules": listed}))
    (rule,) = rules_named([job["rule"]])
    return Answer(msgspec.json.encode(explained(rule)))


BASE_QUESTIONS: dict[str, Callable[[BaseDir, dict[str, Any]], Answer]] = {
    "*catalogue": _catalogue,
    "*listing": _listing,
    "*content": _content,
    "*change": _change,
    "*rules": _rules,
}
