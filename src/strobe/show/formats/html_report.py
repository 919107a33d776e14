"""The pages of a run in one file: what `strobe start` shows, without a server and without requests.

The file has the pages' script and style, made from `ui/`, and the answers that a server would give
them, as gzipped JSON. It opens from disk, on machines that have no Strobe and no network.
"""

import base64
import gzip
import hashlib
import html
from collections.abc import Iterator
from importlib import resources
from typing import TYPE_CHECKING, Any

from strobe.advise import advise
from strobe.advise.rules import RULES
from strobe.analyse.lookup import declaration, table_of
from strobe.analyse.tables.steps import call_history
from strobe.errors import UsageError
from strobe.show import page_answers
from strobe.show.atomic import whole_file
from strobe.show.text.cells import unit
from strobe.show.text.table import rows, to_json
from strobe.store.run import Run
from strobe.timeline.held import held as held_timeline
from strobe.timeline.index import Index, make_index, open_current

if TYPE_CHECKING:
    from pathlib import Path

NAME = "html"
DOC = "one file with the pages, for any browser; no server needed"

# What still goes through mail and chat, and what a browser unpacks in a second.
MOST_BYTES = 20_000_000
# The first rows of a table are those that matter most; a page shows some dozens at once.
MOST_ROWS = 5_000
# One row for each step, or for each part of it: curves and single steps need them all.
MOST_STEP_ROWS = 20_000
# Of the timeline, as many as a browser sums up anew for every zoom in a few hundredths of a second.
MOST_EVENTS = 400_000
# Operators and kernels whose calls over time are in the file.
MOST_OPERATORS = 24
MOST_KERNELS = 12

TABLES = (
    "counter-statistics", "data-pipeline", "data-shortages", "data-steps", "kernels", "memory",
    "memory-blocks", "memory-curve", "memory-holders", "memory-steps", "modules", "operator-types",
    "operators", "problems", "queue-history", "step-edges", "step-history", "step-phases",
    "step-statistics", "steps",
)  # fmt: skip
_OF_STEPS = {"data-steps", "memory-curve", "memory-steps", "queue-history", "step-history",
             "step-phases", "steps"}  # fmt: skip


def write(run: Run, path: "Path") -> None:
    script, style = _built("report/report.js"), _built("report/report.css")
    licences = _built("THIRD_PARTY_WEB.txt")
    answers = _answers(run)
    index = open_current(run.path) or make_index(run)
    part = 1.0
    while True:
        held = to_json({**answers, "tables": _tables(run, part)}).encode("utf-8", "replace")
        data = {"strobe-report": held, **_timeline(index, int(part * MOST_EVENTS))}
        page = _page(run.path.resolve().name, script, style, licences, data)
        if len(page.encode()) <= MOST_BYTES:
            break
        part /= 2
    with whole_file(path) as out:
        out.write(page)


def _timeline(index: Index, most_events: int) -> dict[str, bytes]:
    return {"strobe-timeline": held_timeline(index, most_events)} if most_events else {}


def _answers(run: Run) -> dict[str, Any]:
    """What the server answers to questions that are no tables, by the names they have there."""
    advice = advise(run)
    return {
        "run": run.path.resolve().name,
        "answers": {
            "": page_answers.about(run, content=""),
            "summary": page_answers.summary(run, advice),
            "advice": page_answers.advised(advice),
        },
        "rules": {rule.NAME: page_answers.explained(rule) for rule in RULES},
    }


def _tables(run: Run, part: float) -> dict[str, Any]:
    """The tables of the pages; a part below 1 holds fewer rows of each."""
    held: dict[str, Any] = {}
    for name in TABLES:
        most = int(part * (MOST_STEP_ROWS if name in _OF_STEPS else MOST_ROWS))
        held[name] = _table(run, declaration(name).name, table_of(run, name), most)
    held["call-history"] = _calls(run, int(part * MOST_ROWS))
    return held


def _table(run: Run, name: str, relation: Any, most: int) -> dict[str, Any]:
    table = declaration(name)
    # One more than is kept tells that there are more; only then they are counted.
    read = [row for batch in rows(run.connection, relation.limit(most + 1), table) for row in batch]
    total = len(read)
    if total > most:
        ((total,),) = relation.aggregate("count(*)").fetchall()
    columns = [
        {"name": c.name, "type": c.type, "doc": c.doc, "unit": unit(c)} for c in table.columns
    ]
    return {"columns": columns, "rows": read[:most], "total": total}


def _calls(run: Run, most: int) -> dict[str, Any]:
    """The calls of the costliest operators and kernels over time, one after the other."""
    held: dict[str, Any] = {}
    for name in _costliest(run):
        table = _table(run, call_history.NAME, call_history.run(run, name=name), most)
        if held:
            held["rows"] += table["rows"]
            held["total"] += table["total"]
        else:
            held = table
    return held or _table(run, call_history.NAME, call_history.run(run), most)


def _costliest(run: Run) -> Iterator[str]:
    for table, time, most in (
        ("operator-types", "coalesce(device_ns, self_ns)", MOST_OPERATORS),
        ("kernels", "total_ns", MOST_KERNELS),
    ):
        names = table_of(run, table).aggregate(f"name, sum({time}) AS ns", "name")
        for name, _ in names.order("ns DESC, name").limit(most).fetchall():
            yield name


def _built(name: str) -> str:
    file = resources.files("strobe").joinpath("web", "static", *name.split("/"))
    if not file.is_file():
        raise UsageError.of("errors/files.no-pages", where=str(file))
    return file.read_text("utf-8")


def _page(name: str, script: str, style: str, licences: str, data: dict[str, bytes]) -> str:
    # A script ends at the first of these letters, wherever they stand; in strings \/ is /.
    script = script.replace("</script", "<\\/script")
    style = style.replace("</style", "<\\/style")
    elements = "\n".join(
        f'<script id="{element}" type="text/plain">{_packed(body)}</script>'
        for element, body in data.items()
    )
    # Only this script runs, and nothing is ever fetched: the names in a run are somebody's.
    policy = (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<title>{html.escape(name)} · Strobe</title>
<style>{style}</style>
</head>
<body>
<div id="app"></div>
<noscript>These pages need JavaScript. Without it: strobe show RUN</noscript>
<script id="licences" type="text/plain">{html.escape(licences, quote=False)}</script>
{elements}
<script>{script}</script>
</body>
</html>
"""


def _packed(body: bytes) -> str:
    return base64.b64encode(gzip.compress(body, 6, mtime=0)).decode()


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
