"""Advice for people: the verdict, each fault with its bar, and what is clear or unknown."""

import io
import re
from collections.abc import Iterable
from typing import Any

from strobe import units
from strobe.advise import Advice
from strobe.advise.finding import Evidence, Figure, Finding
from strobe.advise.verdict import gain
from strobe.analyse.lookup import declaration
from strobe.errors import UsageError
from strobe.messages import in_language, localized, users_language
from strobe.model.schema import Column, ColumnType, Table
from strobe.show.text.cells import printable
from strobe.show.text.layout import pad
from strobe.show.text.paper import Paper
from strobe.show.text.table import write_text
from strobe.show.text.wrapping import wrapped

WIDEST = 120
_INDENT = "   "
_LABEL = 10
# Rows of evidence that are worth a look in the terminal; --json has them all.
_ROWS = 3
_LONGEST_PARAGRAPH = 88
# For programs, which find the event by it.
_HIDDEN = frozenset({"event_id"})


def write(advice: Advice, paper: Paper, *, tell_all: bool = False) -> None:
    paper.width = min(paper.width, WIDEST)
    write_verdict(advice, paper)
    for rule, condition in advice.conditions.items():
        paper.blank()
        _write_condition(rule, condition, paper)
    for number, (rule, finding) in enumerate(advice.findings.items(), 1):
        paper.blank()
        _write_finding(number, rule, finding, advice, paper)
    paper.blank()
    if tell_all:
        _write_reasons(advice, paper)
    else:
        _write_rest(advice, paper)


def write_verdict(advice: Advice, paper: Paper, indent: str = "") -> None:
    style = "bold yellow" if advice.findings else "bold green" if advice.clear else "bold"
    paper.write_wrapped(shown(advice.verdict), style, indent)


def write_brief(advice: Advice, paper: Paper) -> None:
    """The verdict, and a line for every further fault: the end of a summary."""
    paper.width = min(paper.width, WIDEST)
    paper.write([(localized("findings.verdict"), "bold")])
    write_verdict(advice, paper, _INDENT[1:])
    for rule, finding in list(advice.findings.items())[1:]:
        label = localized("findings.warning")
        if not finding.is_warning:
            label = units.percent(finding.share)
        _write_labelled(label, f"{shown(finding.title)} ({rule})", paper)
    paper.write([(localized("findings.more-in-advise", run=advice.run), "dim")])


def write_list(rules: Iterable[tuple[str, str]], paper: Paper) -> None:
    """Every rule with what it looks for."""
    rules = list(rules)
    width = max(len(name) for name, _ in rules) + 2
    for name, title in rules:
        lines = wrapped(title, max(20, paper.width - width)) or [""]
        paper.write([(pad(name, width, right=False), "bold"), (lines[0], "")])
        for line in lines[1:]:
            paper.write([(" " * width + line, "")])


def write_manual(name: str, title: str, text: str, paper: Paper) -> None:
    """The Markdown of a rule's docstring: headings, paragraphs, lists, blocks of code."""
    paper.width = min(paper.width, _LONGEST_PARAGRAPH)
    paper.write([(name, "bold cyan")])
    paper.write_wrapped(title, "bold")
    for block in re.split(r"\n\s*\n", text):
        paper.blank()
        _write_block(block.splitlines(), paper)


def _write_block(lines: list[str], paper: Paper) -> None:
    if lines[0].startswith("#"):
        paper.write([(lines[0].lstrip("# "), "bold")])
        lines = lines[1:]
    if not lines:
        return
    if all(line.startswith("    ") for line in lines):
        for line in lines:
            paper.write([(line, "cyan")])
        return
    for item in re.split(r"\n(?=[-*] |\d+\. )", "\n".join(lines)):
        mark = re.match(r"([-*]|\d+\.) ", item)
        hanging = " " * len(mark[0]) if mark else ""
        plain = " ".join(item.split()).replace("`", "")
        for line in wrapped(plain, paper.width, hanging=hanging):
            paper.write([(line, "")])


def _write_condition(rule: str, condition: Finding, paper: Paper) -> None:
    paper.write([(f"!  {rule}", "bold")])
    _write_labelled("", shown(condition.title), paper)
    if condition.why:
        _write_labelled(localized("findings.why"), shown(condition.why), paper)
    for fix in condition.fixes:
        _write_labelled(localized("findings.fix"), shown(fix), paper)
    _write_proof(rule, condition, paper)


def _write_finding(number: int, rule: str, finding: Finding, advice: Advice, paper: Paper) -> None:
    head, cost = f"{number}  {rule}", _cost(finding, advice)
    if len(head) + 2 + len(cost) <= paper.width:
        paper.write([(head, "bold"), (f"  {cost}", "yellow")])
    else:
        paper.write([(head, "bold")])
        _write_labelled("", cost, paper, "yellow")
    if not finding.is_warning:
        _write_bar(finding.share, paper)
    _write_labelled("", shown(finding.title), paper)
    for label, text in (("why", finding.why), ("where", finding.where)):
        if text:
            _write_labelled(localized(f"findings.{label}"), shown(text), paper)
    for at, fix in enumerate(finding.fixes):
        label = localized("findings.or" if at else "findings.fix")
        _write_labelled(label, shown(fix), paper)
    if not finding.is_warning:
        _write_labelled(localized("findings.gain"), shown(gain(finding)), paper, "green")
    _write_proof(rule, finding, paper)


def _write_proof(rule: str, finding: Finding, paper: Paper) -> None:
    """What the figures are derived from, and where to read on."""
    if finding.derivation:
        _write_labelled(localized("findings.derived"), derivation(finding), paper, "dim")
    for evidence in finding.evidence:
        _write_evidence(evidence, paper)
    _write_labelled(localized("findings.more"), f"strobe explain {rule}", paper, "dim")


def derivation(finding: Finding) -> str:
    """60 steps recorded, 53 steps counted, 18.1 ms waiting for data per step, …"""
    return ", ".join(f"{_figure(figure)} {shown(figure.what)}" for figure in finding.derivation)


def _figure(figure: Figure) -> str:
    if figure.unit == "ns":
        return units.duration(figure.value)
    if figure.unit == "ratio":
        return units.percent(figure.value)
    return f"{figure.value:,.0f} {figure.unit}"


def _cost(finding: Finding, advice: Advice) -> str:
    if finding.saves_at_start_ns:
        saved = units.duration(finding.saves_at_start_ns)
        return localized("findings.cost-at-start", duration=saved)
    if finding.is_warning:
        return localized("findings.cost-unmeasured")
    share = units.percent(finding.share)
    if not advice.step_count:
        return localized("findings.cost-share", share=share)
    each = units.duration(advice.cost_ns(finding) / advice.step_count)
    id = "findings.cost" if finding.is_certain else "findings.cost-about"
    return localized(id, share=share, each=each)


def _write_bar(share: float, paper: Paper) -> None:
    """A step to scale, and the part of it that the fault costs."""
    width = paper.width - len(_INDENT) - 2
    cost = min(width, max(1, round(share * width)))
    full, empty = ("█", "░") if paper.is_terminal else ("#", ".")
    paper.write([(f"{_INDENT}[", "dim"), (full * cost, "yellow"),
                 (empty * (width - cost), "dim"), ("]", "dim")])  # fmt: skip


def _write_labelled(label: str, text: str, paper: Paper, style: str = "") -> None:
    indent = len(_INDENT) + (_LABEL if label else 0)
    lines = wrapped(text, paper.width - indent) or [""]
    for number, line in enumerate(lines):
        head = label if number == 0 else ""
        if label:
            paper.write([(_INDENT + pad(head, _LABEL, right=False), "dim"), (line, style)])
        else:
            paper.write([(_INDENT + line, style)])


def _write_evidence(evidence: Evidence, paper: Paper) -> None:
    if not evidence.rows:
        return
    table = _declared(evidence)
    rows = [tuple(row.get(name) for name in table.column_names) for row in evidence.rows[:_ROWS]]
    out = io.StringIO()
    inner = Paper(out, paper.width - len(_INDENT) - 2, is_terminal=False)
    write_text(table, rows, inner, hide=_HIDDEN)
    lines = [line for line in out.getvalue().splitlines() if not line.startswith("no room for:")]
    count = len(evidence.rows)
    table_name = evidence.table
    if count > _ROWS:
        table_name = localized("findings.rows", table=table_name, shown=_ROWS, count=count)
    _write_labelled(localized("findings.evidence"), table_name, paper)
    for line in lines:
        if not line.startswith("see --") and line.strip():
            paper.write([(f"{_INDENT}  {line}", "dim")])


def _declared(evidence: Evidence) -> Table:
    """The columns that the evidence has, as their table declares them, or by their values."""
    try:
        known = {column.name: column for column in declaration(evidence.table).columns}
    except UsageError:
        known = {}
    names = {name: None for row in evidence.rows for name in row}
    columns = [
        known.get(name) or Column(name, _type_of([row.get(name) for row in evidence.rows]), "")
        for name in names
    ]
    return Table(evidence.table, "", tuple(columns))


def _type_of(values: list[Any]) -> ColumnType:
    known = [value for value in values if value is not None]
    if known and all(isinstance(value, bool) for value in known):
        return "bool"
    if known and all(isinstance(value, int) for value in known):
        return "i64"
    return "f64" if known and all(isinstance(v, int | float) for v in known) else "str"


def _write_rest(advice: Advice, paper: Paper) -> None:
    if advice.clear:
        _write_names(localized("findings.clear"), list(advice.clear), "green", paper)
    if advice.cannot_tell:
        _write_names(localized("findings.unknown"), list(advice.cannot_tell), "dim", paper)
    if advice.clear or advice.cannot_tell:
        id = "findings.why-clear-or-unknown" if advice.cannot_tell else "findings.why-clear"
        paper.write([(localized(id, run=advice.run), "dim")])


def _write_names(label: str, names: list[str], style: str, paper: Paper) -> None:
    lines = wrapped(", ".join(names), paper.width - _LABEL)
    for number, line in enumerate(lines):
        head = label if number == 0 else ""
        paper.write([(pad(head, _LABEL, right=False), style), (line, "")])


def _write_reasons(advice: Advice, paper: Paper) -> None:
    if advice.clear:
        paper.write([(localized("findings.all-clear"), "bold green")])
        for rule, clear in advice.clear.items():
            _write_reason(rule, shown(clear.why), paper)
        paper.blank()
    if advice.cannot_tell:
        paper.write([(localized("findings.all-unknown"), "bold")])
        for rule, unknown in advice.cannot_tell.items():
            reason = localized("findings.reason", reason=unknown.reason, hint=unknown.hint)
            _write_reason(rule, printable(reason), paper)


def _write_reason(rule: str, text: str, paper: Paper) -> None:
    paper.write([(f"{_INDENT}{rule}", "bold")])
    for line in wrapped(text, paper.width - 2 * len(_INDENT)):
        paper.write([(_INDENT * 2 + line, "")])


def shown(text: str) -> str:
    """A message in the user's language, safe to print."""
    return printable(in_language(text, users_language()))
