"""Explain why a run is slow, how to fix it, and what that gains."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from strobe.cli.opening import add_width, open_run, paper
from strobe.errors import MissingData
from strobe.messages import localized

if TYPE_CHECKING:
    from strobe.advise import Advice
    from strobe.store.run import Run


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run_dir", metavar="RUN", help=localized("cli/parser.run"))
    parser.add_argument(
        "rules", metavar="RULE", nargs="*", default=[], help=localized("cli/advise.rules")
    )
    parser.add_argument("--all", action="store_true", help=localized("cli/advise.all"))
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--json", action="store_true", help=localized("cli/parser.json-ns"))
    how.add_argument("--diff", action="store_true", help=localized("cli/advise.diff"))
    add_width(parser)


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
    from strobe.cli.report import say

    if all(finding.is_warning for finding in advice.findings.values()):
        raise MissingData.of("cli/advise.nothing-to-fix", where=advice.run, run=advice.run)
    reasons = []
    for rule, finding in advice.findings.items():
        if finding.is_warning:
            continue
        try:
            text = diff(change_of(finding, run), Path.cwd())
        except MissingData as error:
            reasons.append((rule, error.what))
            continue
        for other, reason in reasons:
            say(localized("cli/advise.no-diff-for", rule=other, reason=reason))
        say(localized("cli/advise.predicted-gain", rule=rule, gain=gain(finding)))
        print(text, end="")
        return 0
    hint = "; ".join(localized("cli/advise.no-diff-for", rule=rule, reason=reason)
                     for rule, reason in reasons)  # fmt: skip
    raise MissingData.of("cli/advise.no-diff", where=advice.run, hint=hint)
