"""Compare runs: what got slower or faster, and why; and how far each got."""

import argparse
import re
import string
import sys
from typing import TYPE_CHECKING

from strobe.cli.opening import add_width, open_run, paper
from strobe.cli.parser import with_default
from strobe.errors import UsageError
from strobe.messages import localized, message

if TYPE_CHECKING:
    from strobe.advise.outcome import Outcome
    from strobe.analyse.comparison.runs import Comparison

SLOWER = 1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run_a", metavar="RUN_A", help=localized("cli/compare.run-a"))
    parser.add_argument("run_b", metavar="RUN_B", help=localized("cli/compare.run-b"))
    parser.add_argument(
        "more", metavar="RUN_C", nargs="*", default=[], help=localized("cli/compare.more")
    )
    parser.add_argument(
        "--fail-if-slower",
        type=ratio,
        metavar="RATIO",
        help=localized("cli/compare.fail-if-slower"),
    )
    parser.add_argument(
        "--min-share",
        type=ratio,
        metavar="RATIO",
        help=with_default(localized("cli/compare.min-share"), "1%"),
    )
    parser.add_argument("--json", action="store_true", help=localized("cli/parser.json-ns"))
    add_width(parser)


def run(args: argparse.Namespace) -> int:
    from strobe.show.text.table import to_json

    comparisons, outcome = _comparisons(args)
    if args.json:
        answers = [comparison.to_json() for comparison in comparisons]
        if len(answers) == 1:
            answers[0]["prediction"] = outcome.to_json() if outcome else None
        print(to_json(answers[0] if len(answers) == 1 else {"ok": True, "comparisons": answers}))
    elif len(comparisons) == 1:
        from strobe.show.text.comparison import write

        write(comparisons[0], paper(args), outcome.sentence if outcome else "")
    else:
        from strobe.show.text.side_by_side import write_all

        write_all(comparisons, paper(args))
    if args.fail_if_slower is None:
        return 0
    for comparison in comparisons:
        if not comparison.step_ratio.is_known:
            no_steps = message("cli/compare.no-steps")
            reason = comparison.verdict if comparison.has_steps else no_steps
            text = localized("cli/compare.not-judged", reason=reason)
            print(f"strobe: {text}", file=sys.stderr)
    return SLOWER if any(each.is_slower(args.fail_if_slower) for each in comparisons) else 0


def _comparisons(args: argparse.Namespace) -> "tuple[list[Comparison], Outcome | None]":
    """Of each further run against the first; of one, what came of the advice for the first."""
    from strobe.advise.outcome import outcome
    from strobe.analyse.comparison.runs import MIN_SHARE, compare

    min_share = MIN_SHARE if args.min_share is None else args.min_share
    others = [args.run_b, *args.more]
    if len(others) >= len(string.ascii_uppercase):
        most = len(string.ascii_uppercase)
        raise UsageError.of("cli/compare.too-many", count=len(others) + 1, most=most)
    found = []
    with open_run(args.run_a) as a:
        for letter, path in zip(string.ascii_uppercase[1:], others, strict=False):
            with open_run(path) as b:
                found.append(compare(a.run, b.run, min_share, letter))
                if len(others) == 1:
                    return found, outcome(a.run, b.run, found[0])
    return found, None


def ratio(text: str) -> float:
    """0.05 of "5%", "5 %" or "0.05"."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*(%?)\s*", text)
    if match is None:
        raise argparse.ArgumentTypeError(localized("cli/compare.not-a-ratio", text=repr(text)))
    return float(match[1]) / (100 if match[2] else 1)
