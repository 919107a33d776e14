"""Say what got slower or faster between runs, what explains it, and how far each run got.

strobe compare RUN_A RUN_B                        B against A, part by part
strobe compare RUN_A RUN_B RUN_C ...              all side by side, each against A
strobe compare RUN_A RUN_B --fail-if-slower 5%    for CI: exit code 1 if B is surely slower by more

Noise is judged by the steps' own spread. Exit codes: 0 fine, 1 surely slower than allowed, 2 wrong
usage; others say what could not be read.
"""

import argparse
import re
import string
import sys
from typing import TYPE_CHECKING

from strobe.cli.opening import open_run, paper, whole_number
from strobe.errors import UsageError

if TYPE_CHECKING:
    from strobe.advise.outcome import Outcome
    from strobe.analyse.comparison.runs import Comparison

SLOWER = 1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run_a", metavar="RUN_A", help="folder of a run, or a trace: before")
    parser.add_argument("run_b", metavar="RUN_B", help="the same: after")
    parser.add_argument("more", metavar="RUN_C", nargs="*", help="further ones, side by side")
    parser.add_argument(
        "--fail-if-slower",
        type=ratio,
        metavar="RATIO",
        help="end with exit code 1 if any is slower than A by more than this (5%%), beyond doubt",
    )
    parser.add_argument(
        "--min-share",
        type=ratio,
        metavar="RATIO",
        help="tell of operators that change a step by at least this; 1%% unless told",
    )
    parser.add_argument("--json", action="store_true", help="as JSON, times in nanoseconds")
    parser.add_argument(
        "--width", type=whole_number, metavar="N", help="columns to fill; the terminal's own"
    )


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
            why = comparison.verdict if comparison.has_steps else "not both runs have steps"
            print(f"not judged: {why}", file=sys.stderr)
    return SLOWER if any(each.is_slower(args.fail_if_slower) for each in comparisons) else 0


def _comparisons(args: argparse.Namespace) -> "tuple[list[Comparison], Outcome | None]":
    """Of each further run against the first; of one, what came of the advice for the first."""
    from strobe.advise.outcome import outcome
    from strobe.analyse.comparison.runs import MIN_SHARE, compare

    min_share = MIN_SHARE if args.min_share is None else args.min_share
    others = [args.run_b, *args.more]
    if len(others) >= len(string.ascii_uppercase):
        raise UsageError(f"{len(others) + 1} runs are too many to stand side by side",
                         hint=f"give at most {len(string.ascii_uppercase)}")  # fmt: skip
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
        raise argparse.ArgumentTypeError(f"{text!r} is not a ratio; write 5% or 0.05")
    return float(match[1]) / (100 if match[2] else 1)
