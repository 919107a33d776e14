"""Say why a run is slow, what fixing it would gain, and what to change.

strobe advise RUN                        the verdict, each fault with its cost, evidence and fix
strobe advise RUN data-starvation        ask these rules only
strobe advise RUN --diff | patch -p1     the fix as a change of your source, where it is one call
strobe advise RUN --all                  also why each rule is clear, or what it would need

strobe explain RULE tells what a rule looks for and how it judges.
"""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from strobe.cli.opening import open_run, paper, whole_number
from strobe.errors import MissingData

if TYPE_CHECKING:
    from strobe.advise import Advice
    from strobe.store.run import Run


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run_dir", metavar="RUN", help="folder of a recorded run, or a trace")
    parser.add_argument("rules", metavar="RULE", nargs="*", help="only these rules")
    parser.add_argument("--all", action="store_true", help="tell of every rule, also clear ones")
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--json", action="store_true", help="as JSON, times in nanoseconds")
    how.add_argument(
        "--diff", action="store_true", help="the first fix as a diff of your source; writes no file"
    )
    parser.add_argument(
        "--width", type=whole_number, metavar="N", help="columns to fill; the terminal's own"
    )


def run(args: argparse.Namespace) -> int:
    from strobe.advise import advise, rules_named
    from strobe.show.text import findings
    from strobe.show.text.table import to_json

    rules = rules_named(args.rules)
    with open_run(args.run_dir) as opened:
        advice = advise(opened.run, rules)
        advice.run = args.run_dir
        if args.diff:
            return _print_diff(advice, opened.run)
    if args.json:
        print(to_json(advice.to_json()))
    else:
        findings.write(advice, paper(args), tell_all=args.all or bool(args.rules))
    return 0


def _print_diff(advice: "Advice", run: "Run") -> int:
    """The diff of the most expensive finding that is a change of one call; why not of others."""
    from strobe.advise.source_change import change_of, diff
    from strobe.advise.verdict import gain

    if all(finding.is_warning for finding in advice.findings.values()):
        raise MissingData("there is nothing to fix", where=advice.run,
                          hint=f"why: strobe advise {advice.run} --all")  # fmt: skip
    reasons = []
    for rule, finding in advice.findings.items():
        if finding.is_warning:
            continue
        try:
            text = diff(change_of(finding, run), Path.cwd())
        except MissingData as error:
            reasons.append(f"{rule}: {error.what}")
            continue
        for reason in reasons:
            print(f"strobe: no diff for {reason}", file=sys.stderr)
        print(f"strobe: {rule}, predicted gain: {gain(finding)}", file=sys.stderr)
        print(text, end="")
        return 0
    raise MissingData("no fix can be shown as a diff", where=advice.run,
                      hint="; ".join(reasons))  # fmt: skip
