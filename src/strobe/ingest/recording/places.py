"""The lines of user code that the recorder saw, as the table `places`."""

import json
from pathlib import PurePath
from typing import Any

import numpy as np

from strobe.ingest.recording.journal_reader import Journal
from strobe.ingest.trace.codes import Codes, strings
from strobe.model.journal import Mark


def columns(journal: Journal, rank: int) -> dict[str, Any]:
    """As columns of the stored table. Number 1 of a kind is the one that training uses."""
    rows = _numbered(_facts(journal), _first_backward_ns(journal))
    texts = Codes[str]()

    def text(name: str) -> Any:
        values = [row.get(name) for row in rows]
        codes = [texts[value] if isinstance(value, str) else -1 for value in values]
        return strings(np.array(codes, dtype=np.int32), texts)

    return {
        "rank": np.full(len(rows), rank, dtype=np.int64),
        "what": text("what"),
        "number": np.array([row["number"] for row in rows], dtype=np.int64),
        "file": text("file"),
        "line": np.array([row["line"] for row in rows], dtype=np.int64),
        "function": text("function"),
        "details": text("details"),
    }


def short(file: str, process: dict[str, Any]) -> str:
    """A file as its user names it: relative to the folder of the script, or to the working
    directory.
    """
    path = PurePath(file)
    for folder in home_folders(process):
        if path.is_relative_to(folder):
            return path.relative_to(folder).as_posix()
    return path.name


def home_folders(process: dict[str, Any]) -> list[PurePath]:
    """`process`: the fact that identifies the recorded process."""
    directory = str(process.get("directory") or "")
    words = process.get("argv")
    script = str(words[0]) if isinstance(words, list) and words else ""
    folders = [(PurePath(directory) / script).parent] if script.endswith(".py") else []
    folders += [PurePath(directory)] if directory else []
    return [folder for folder in folders if len(folder.parts) > 1]


def _facts(journal: Journal) -> list[dict[str, Any]]:
    found = []
    for fact in journal.facts:
        is_line = isinstance(fact.get("line"), int) and isinstance(fact.get("file"), str)
        if fact["type"] == "place" and is_line and isinstance(fact.get("what"), str):
            details = fact.get("details")
            text = json.dumps(details, ensure_ascii=False) if details else None
            found.append({**fact, "details": text})
    return found


def _first_backward_ns(journal: Journal) -> int:
    at = journal.ts_ns[journal.code == Mark.BACKWARD_BEGAN]
    return int(at[0]) if len(at) else 0


def _numbered(rows: list[dict[str, Any]], trained_ns: int) -> list[dict[str, Any]]:
    """In the order of appearance; but the last one before the first backward pass is what it trains
    on: a look at one batch, or a trial of the model, often comes before.
    """
    result = []
    for what in dict.fromkeys(row["what"] for row in rows):
        of_kind = [row for row in rows if row["what"] == what]
        before = [row for row in of_kind if row.get("monotonic_ns", 0) <= trained_ns]
        if before and not any("number" in row for row in of_kind):
            of_kind.remove(before[-1])
            of_kind.insert(0, before[-1])
        result += [{"number": number, **row} for number, row in enumerate(of_kind, 1)]
    return result
