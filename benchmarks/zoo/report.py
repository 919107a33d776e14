"""The tables of the zoo, as text."""

from benchmarks.zoo.judging import GRAVE_SHARE, FalseAlarm, Row

_HEAD = ("script", "top finding", "hit", "share", "foretold", "measured", "error")
_WIDTHS = (44, 26, 4, 6, 9, 9, 7)


def print_row(row: Row) -> None:
    if row.problem:
        print(f"{row.name:44} FAILED: {row.problem}", flush=True)
        return
    error = "" if row.error is None else f"{row.error:+.0%}{'' if row.is_predicted else ' !'}"
    cells = (row.name, _named(row), "yes" if row.is_hit else "NO", _percent(row.share),
             _times(row.predicted), _times(row.measured), error)  # fmt: skip
    print(_line(cells), flush=True)
    if not row.is_hit:
        print(f"    {row.expected}: {row.why_not or 'found, not the first'}")
    if row.others:
        print(f"    also: {', '.join(row.others)}")


def print_head() -> None:
    print(_line(_HEAD))


def print_alarms(alarms: list[FalseAlarm]) -> None:
    for alarm in alarms:
        grave = " !" if alarm.share > GRAVE_SHARE else ""
        print(
            f"    false alarm: {alarm.script}: {alarm.rule} {alarm.share:.0%}{grave}  {alarm.title}"
        )


def totals(rows: list[Row], alarms: list[FalseAlarm], scripts: int) -> dict[str, object]:
    """Of all that could be run; what could not is a failure of its own."""
    staged = [row for row in rows if row.stage]
    compared = [row for row in rows if row.measured is not None]
    return {
        "pairs": len(rows),
        "failed": sum(row.problem is not None for row in rows),
        "hits": sum(row.is_hit for row in rows),
        "stages_right": f"{sum(row.is_stage_right for row in staged)} of {len(staged)}",
        "scripts_without_fault": scripts,
        "false_alarms": len(alarms),
        "false_alarms_over_10_percent": sum(alarm.share > GRAVE_SHARE for alarm in alarms),
        "predicted_within_25_percent": sum(row.is_predicted for row in compared),
        "compared": len(compared),
    }


def print_markdown(rows: list[Row]) -> None:
    """The table of pairs, as Markdown."""
    print("\n| script | first finding | share | foretold | measured | error |")
    print("|---|---|---|---|---|---|")
    for row in rows:
        error = "" if row.error is None else f"{row.error:+.0%}"
        found = _named(row) if row.is_hit else f"**{_named(row)}**"
        cells = (row.name, found, _percent(row.share), _times(row.predicted),
                 _times(row.measured), error)  # fmt: skip
        print(f"| {' | '.join(cells)} |")


def print_patterns(patterns: dict[str, list[str]]) -> None:
    print("\nWhat torch.profiler's pattern matcher says of the same scripts")
    for name, lines in patterns.items():
        print(f"{name:44} {'; '.join(lines) or 'nothing'}")
    print("XProf reads traces of JAX only: not applicable to these scripts.")


def print_traceml(said: dict[str, dict[str, str]], rows: dict[str, Row]) -> None:
    """A table for the docs: both tools on the same scripts."""
    print("\n| script | Strobe | TraceML | its reason |")
    print("|---|---|---|---|")
    for name, verdict in said.items():
        row = rows.get(name)
        own = f"{_named(row)}, {row.where or 'no line'}" if row else "healthy"
        print(f"| {name} | {own} | {verdict['verdict']} | {verdict['why']} |")


def _named(row: Row) -> str:
    if row.top is None:
        return "nothing"
    return f"{row.top} ({row.top_stage})" if row.top_stage else row.top


def _line(cells: tuple[str, ...]) -> str:
    return "  ".join(f"{cell:{width}}" for cell, width in zip(cells, _WIDTHS, strict=True)).rstrip()


def _percent(share: float | None) -> str:
    return "" if share is None else f"{share:.0%}"


def _times(speedup: float | None) -> str:
    return "" if speedup is None else f"{speedup:.2f}x"
