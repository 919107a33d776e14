"""Run the zoo: every script under `strobe run`, then `strobe advise`, and print what came of it.

The faulty and the repaired script of a pair are also run without Strobe, in turns, by a stopwatch:
that is the speed-up which the foretold one is held against.
"""

import argparse
import json
import tempfile
from dataclasses import asdict
from pathlib import Path

from benchmarks.crowd import crowded
from benchmarks.zoo import catalogue, real, report
from benchmarks.zoo.judging import FalseAlarm, Row, false_alarms, judge_pair
from benchmarks.zoo.kept import Kept
from benchmarks.zoo.running import Failed


def main() -> None:
    args = _arguments()
    with tempfile.TemporaryDirectory() as folder, crowded(args.crowded):
        _run(args, Kept(args.keep or Path(folder)))


def _run(args: argparse.Namespace, kept: Kept) -> None:
    chosen = [pair for pair in catalogue.pairs() if args.only in pair.name]
    healthy = [script for script in catalogue.healthy() if args.only in script.name]
    rows, alarms = _judge_pairs(chosen, kept, args)
    more, broken = _judge_healthy(healthy, kept, args)
    alarms += more
    traces = real.rows() if not args.only else []
    scripts = [*(pair.faulty for pair in chosen), *healthy]
    patterns = {s.name: kept.patterns(s) for s in scripts} if args.patterns else {}
    traceml = {s.name: kept.traceml(s, args.traceml) for s in scripts} if args.traceml else {}
    totals = report.totals(rows, alarms, len(chosen) + len(healthy))
    totals["healthy_failed"] = broken
    totals["real_traces_right"] = f"{sum(right for _, right in traces)} of {len(traces)}"
    if args.json:
        print(json.dumps({
            "pairs": [{**asdict(row), "hit": row.is_hit, "error": row.error} for row in rows],
            "false_alarms": [asdict(alarm) for alarm in alarms],
            "real_traces": [{**asdict(row), "right": right} for row, right in traces],
            "patterns": patterns, "traceml": traceml, "totals": totals,
        }, indent=2))  # fmt: skip
        return
    for row, right in traces:
        print(f"{row.name:44} {row.top or 'nothing'}: {'right' if right else 'WRONG'}")
    if patterns:
        report.print_patterns(patterns)
    if traceml:
        report.print_traceml(traceml, {row.name: row for row in rows})
    if args.markdown:
        report.print_markdown(rows)
    print()
    for name, value in totals.items():
        print(f"{name.replace('_', ' '):32} {value}")


def _judge_pairs(
    pairs: list[catalogue.Pair], kept: Kept, args: argparse.Namespace
) -> tuple[list[Row], list[FalseAlarm]]:
    rows, alarms = [], []
    if pairs and not args.json:
        report.print_head()
    for pair in pairs:
        row, found = judge_pair(pair, kept, args.repeat)
        rows.append(row)
        alarms += found
        if not args.json:
            report.print_row(row)
            report.print_alarms(found)
    return rows, alarms


def _judge_healthy(
    scripts: list[catalogue.Script], kept: Kept, args: argparse.Namespace
) -> tuple[list[FalseAlarm], list[str]]:
    alarms, broken = [], []
    for script in scripts:
        try:
            found = false_alarms(script, kept)
        except Failed as error:
            broken.append(f"{script.name}: {error}")
            continue
        alarms += found
        if not args.json:
            print(f"{script.name:44} {'clear' if not found else ''}", flush=True)
            report.print_alarms(found)
    return alarms, broken


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.zoo", description=__doc__)
    parser.add_argument("--only", metavar="NAME", default="", help="scripts with this in the name")
    parser.add_argument(
        "--repeat", type=int, default=3, metavar="N",
        help="turns of the stopwatch for each pair; 0 for none (default 3)",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="as JSON")
    parser.add_argument("--markdown", action="store_true", help="also the table for the docs")
    parser.add_argument(
        "--patterns", action="store_true", help="also what torch.profiler's pattern matcher says"
    )
    parser.add_argument(
        "--traceml", metavar="COMMAND", help="also what TraceML says (its command traceml)"
    )
    parser.add_argument("--crowded", action="store_true", help="run alongside two busy loops")
    parser.add_argument(
        "--keep", type=Path, metavar="FOLDER",
        help="keep recordings and times there; those found there are not made anew",
    )  # fmt: skip
    return parser.parse_args()


if __name__ == "__main__":
    main()
