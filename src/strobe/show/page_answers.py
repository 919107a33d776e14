"""What the pages are told of a run besides its tables: by the server, and in an exported file."""

from typing import Any

from strobe.advise import Advice, manual
from strobe.advise.rules import Rule
from strobe.analyse.lookup import declaration, table_names
from strobe.analyse.summary import summarise
from strobe.messages import CHINESE
from strobe.model.schema import STORED_TABLES
from strobe.show.text import chinese
from strobe.store.run import Run


def about(run: Run, content: str) -> dict[str, Any]:
    """The manifest, and every table that can be shown, with its rows where they are counted."""
    stored = {table.name for table in STORED_TABLES}
    listed: list[dict[str, Any]] = []
    for name in table_names():
        rows = None
        if name in stored:  # Parquet knows its length
            ((rows,),) = run.sql(f"SELECT count(*) FROM {name}").fetchall()
        listed.append({"name": name, "doc": declaration(name).doc, "rows": rows})
    ((problems,),) = run.sql("SELECT coalesce(sum(count), 0) FROM problems").fetchall()
    return {
        "ok": True,
        "content": content,
        "manifest": run.manifest.to_json(),
        "state": run.manifest.state,
        "ranks": [rank.rank for rank in run.manifest.ranks],
        "tables": listed,
        "problems": int(problems),
    }


def summary(run: Run, advice: Advice) -> dict[str, Any]:
    """As `strobe show RUN --json`, with the verdict."""
    told = advice.to_json()
    told = {name: told[name] for name in ("verdict", "findings")}
    return {"ok": True, "summary": {**summarise(run), **told}}


def advised(advice: Advice) -> dict[str, Any]:
    """As `strobe advise RUN --json`, with the reasons of the rules that are clear, and all of it
    in Chinese."""
    because = {name: told.why for name, told in advice.clear.items()}
    return {**advice.to_json(), "clear_because": because, "chinese": chinese.book(advice)}


def explained(rule: Rule) -> dict[str, Any]:
    """The manual of a rule, and the same in Chinese."""
    title, text = manual(rule)
    chinese_title, chinese_text = manual(rule, CHINESE)
    return {
        "ok": True, "rule": rule.NAME, "title": title, "text": text,
        "chinese": {"title": chinese_title, "text": chinese_text},
    }  # fmt: skip
