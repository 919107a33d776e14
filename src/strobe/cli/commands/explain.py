"""Print the manual of a rule: what it checks, how it decides, how to fix it."""

import argparse
import sys

from strobe.cli.opening import add_width, paper
from strobe.messages import localized, users_language


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("rule", metavar="RULE", nargs="?", help=localized("cli/explain.rule"))
    parser.add_argument("--json", action="store_true", help=localized("cli/parser.json"))
    add_width(parser)


def run(args: argparse.Namespace) -> int:
    from strobe.advise import manual, rules_named
    from strobe.advise.rules import RULES
    from strobe.show.text import findings
    from strobe.show.text.table import to_json

    language = users_language()
    if args.rule is None:
        listing = [(rule.NAME, manual(rule, language)[0]) for rule in RULES]
        if args.json:
            rules = [{"rule": name, "title": title} for name, title in listing]
            sys.stdout.write(to_json({"ok": True, "rules": rules}) + "\n")
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
