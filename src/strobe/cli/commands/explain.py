"""Print the manual of a rule: what the fault is, how it is judged, how to fix it.

strobe explain                           every rule, a line each
strobe explain data-starvation           one of them
"""

import argparse
import sys

from strobe.cli.opening import paper, whole_number


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("rule", metavar="RULE", nargs="?", help="name of a rule; without: a list")
    parser.add_argument("--json", action="store_true", help="as JSON")
    parser.add_argument(
        "--width", type=whole_number, metavar="N", help="columns to fill; the terminal's own"
    )


def run(args: argparse.Namespace) -> int:
    from strobe.advise import manual, rules_named
    from strobe.advise.rules import RULES
    from strobe.messages import users_language
    from strobe.show.text import findings
    from strobe.show.text.table import to_json

    language = users_language()
    if args.rule is None:
        listing = [(rule.NAME, manual(rule, language)[0]) for rule in RULES]
        if args.json:
            told = [{"rule": name, "title": title} for name, title in listing]
            sys.stdout.write(to_json({"ok": True, "rules": told}) + "\n")
        else:
            findings.write_list(listing, paper(args))
        return 0
    (rule,) = rules_named([args.rule])
    title, text = manual(rule, language)
    if args.json:
        page = {"ok": True, "rule": rule.NAME, "title": title, "text": text}
        sys.stdout.write(to_json(page) + "\n")
    else:
        findings.write_manual(rule.NAME, title, text, paper(args))
    return 0
