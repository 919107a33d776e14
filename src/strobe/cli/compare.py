"""Say what got slower or faster between two runs, and what explains it.

strobe compare RUN_A RUN_B                        B against A, part by part
strobe compare RUN_A RUN_B --fail-if-slower 5%    for CI: exit code 1 if B is surely slower by more

Noise is judged by the steps' own spread. Exit codes: 0 fine, 1 surely slower than allowed, 2 wrong
usage; others say what could not be read.
"""

import argparse
import re
import sys

from strobe.cli.opening import open_run, paper, whole_number

SLOWER = 1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run_a", metavar="RUN_A", help="folder of a run, or a trace: before")
    parser.add_argument("run_b", metavar="RUN_B", help="the same: after")
    parser.add_argument(
        "--fail-if-slower",
        type=ratio,
        metavar="RATIO",
        help="end with exit code 1 if B is slower by more than this (5%%), beyond doubt",
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
    from strobe.analyse.compare import MIN_SHARE, compare
    from strobe.show.compare import write
    from strobe.show.table import to_json

    min_share = MIN_SHARE if args.min_share is None else args.min_share
    with open_run(args.run_a) as a, open_run(args.run_b) as b:
        comparison = compare(a.run, b.run, min_share)
    if args.json:
        print(to_json(comparison.to_json()))
    else:
        write(comparison, paper(args))
    if args.fail_if_slower is None:
        return 0
    if not comparison.step_ratio.is_known:
        print(f"not judged: {comparison.verdict}", file=sys.stderr)
        return 0
    return SLOWER if comparison.is_slower(args.fail_if_slower) else 0


def ratio(text: str) -> float:
    """0.05 of "5%", "5 %" or "0.05"."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*(%?)\s*", text)
    if match is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not a ratio; write 5% or 0.05")
    return float(match[1]) / (100 if match[2] else 1)
