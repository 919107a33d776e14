"""Say why a run is slow, what fixing it would gain, and what to change.

strobe advise RUN                        the verdict, each fault with its cost, evidence and fix
strobe advise RUN data-starvation        ask these rules only
strobe advise RUN --all                  also why each rule is clear, or what it would need

strobe explain RULE tells what a rule looks for and how it judges.
"""

import argparse

from strobe.cli.opening import open_run, paper, whole_number


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run_dir", metavar="RUN", help="folder of a recorded run, or a trace")
    parser.add_argument("rules", metavar="RULE", nargs="*", help="only these rules")
    parser.add_argument("--all", action="store_true", help="tell of every rule, also clear ones")
    parser.add_argument("--json", action="store_true", help="as JSON, times in nanoseconds")
    parser.add_argument(
        "--width", type=whole_number, metavar="N", help="columns to fill; the terminal's own"
    )


def run(args: argparse.Namespace) -> int:
    from strobe.advise import advise, rules_named
    from strobe.show import findings
    from strobe.show.table import to_json

    rules = rules_named(args.rules)
    with open_run(args.run_dir) as opened:
        advice = advise(opened.run, rules)
    advice.run = args.run_dir
    if args.json:
        print(to_json(advice.to_json()))
    else:
        findings.write(advice, paper(args), tell_all=args.all or bool(args.rules))
    return 0
