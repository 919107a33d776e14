"""Write docs/reference/ and docs/rules/ from the code; `--check` says whether they are current.

tables.md comes from model/schema.py and the analyses, commands.md from the commands' own parsers,
options.md from model/options.py, words.md from the list below and the closed lists of the schema.
rules/ has the docstring of each rule of the advice, and a list of them.
"""

import argparse
import importlib
import json
import os
import re
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

from strobe.advise import manual
from strobe.advise.rules import RULES, Rule
from strobe.analyse.tables import ANALYSES
from strobe.analyse.tables.steps import steps
from strobe.cli import COMMANDS
from strobe.cli.parser import Parser, about_text
from strobe.messages import CHINESE, ENGLISH, LANGUAGE_VARIABLE, message
from strobe.model.manifest import STATES
from strobe.model.option_values import no_effect
from strobe.model.options import WITHOUT_EFFECT, Options, doc
from strobe.model.schema import KINDS, PHASES, SCHEMA_VERSION, STORED_TABLES, Table
from strobe.show.formats import FORMATS

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
MADE = "<!-- Made by scripts/reference.py; do not edit. -->\n"

# One word for one idea. What the schema declares as a closed list follows below these.
WORDS = {
    "run": "One recording: a directory with `run.json` and a folder for each rank. Also the "
    "directory itself, `RUN` in the commands.",
    "rank": "One process that trained, and its number. A launcher or a data worker is not a rank.",
    "step": "One training step: from where the step before it ended to the end of its own last "
    "parameter update. Counted from 1. Not called an iteration.",
    "phase": "A stretch of a step. The phases of a step tile it: nothing is counted twice and "
    "nothing is left out.",
    "part": "All phases of one name in a step, added up: the columns `gap_ns` … `recorder_ns`.",
    "track": "One row of the timeline: a thread, a stream of a device, the steps of a rank.",
    "event": "Something that happened on a track during an interval of time; it has an id.",
    "kind": "What sort of thing an event is; one of a closed list.",
    "span": "An interval of time without an id.",
    "mark": "What the recorder writes when something happens: a moment, a code, a number. Also the "
    "kind of events that fit no other kind.",
    "journal": "The files in which a rank's recorder leaves its marks.",
    "fact": "What the recorder writes that is not a mark: a line of `facts.jsonl`.",
    "window": "A stretch of steps recorded in full. A long one is written in "
    "pieces, and is still one.",
    "light": "The recording that always runs: steps, phases, host counters.",
    "full": "The recording inside a window: operators, kernels, modules, and on request "
    "allocations and call stacks.",
    "operator": "A function of the framework that ran on the host: `aten::mm`. What a device "
    "runs is a kernel.",
    "scope": "The full path of the module that an event worked for: `Net.features.0`.",
    "gap": "The part of a step before its first forward. In the table `gaps`: a stretch inside a "
    "step in which no operator ran.",
    "counter": "A value of the host measured again and again: memory, busy cores, page faults.",
    "queue": "Batches that lie ready for the training loop.",
    "link": "A cause between two events: a forward operator and its gradient.",
    "problem": "Something that could not be recorded or read: a row of the table `problems`.",
    "self time": "The time of an operator less that of the operators directly inside it.",
    "share": "A part of a whole, from 0 to 1; percent appear only where people read.",
    "analysis": "A pure function that answers one question about a run with one table.",
    "finding": "A fault that advice names, with its cost and its fix.",
    "rule": "A pure function that looks for one fault in a run. It answers with a finding, with "
    "clear, or that it cannot tell.",
    "verdict": "The one sentence that says why a training is slow and what to change.",
}


def tables() -> str:
    lines = [
        "# Tables\n",
        MADE,
        "`strobe show RUN TABLE` prints any of these, `strobe sql RUN` queries them (analyses with "
        "underscores: `operator_types`), `run.TABLE` gives them in Python. Times are integer "
        "nanoseconds; moments (`ts_ns`) count from the start of the run. Null means unknown.\n",
        "## Analyses\n",
        "Computed on request, from the stored tables.\n",
    ]
    for analysis in ANALYSES:
        lines += _table(analysis.RESULT, _explanation(analysis))
    lines += [
        "## Stored tables\n",
        f"Parquet files in `rank_N/tables/`. Schema version {SCHEMA_VERSION}.\n",
    ]
    for table in STORED_TABLES:
        lines += _table(table, "")
    return "\n".join(lines).rstrip() + "\n"


def _explanation(analysis: Any) -> str:
    """What a module's docstring adds to the question, which is its first paragraph."""
    return str(analysis.__doc__ or "").partition("\n\n")[2].strip()


def _table(table: Table, more: str) -> list[str]:
    lines = [f"### {table.name}\n", f"{table.doc}\n"]
    if more:
        lines.append(f"{more}\n")
    lines += ["| column | type | meaning |", "|---|---|---|"]
    for column in table.columns:
        null = " or null" if column.nullable else ""
        lines.append(f"| `{column.name}` | {column.type}{null} | {_cell(column.doc)} |")
    return [*lines, ""]


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def commands() -> str:
    lines = [
        "# Commands\n",
        MADE,
        "`strobe COMMAND --help` prints the same. Exit codes: 0 success, 1 to 5 an error of "
        "Strobe (2 wrong usage, 3 unreadable, 4 not recorded, 5 a package is missing), 130 "
        "interrupted; `strobe run` exits as the script does.\n",
    ]
    for name, module, _ in COMMANDS:
        command = importlib.import_module(module)
        about = message(f"cli/{name}.about").strip()
        parser = Parser(prog=f"strobe {name}", add_help=False)
        command.add_arguments(parser)
        sentence = message(f"cli/commands.{name}")
        lines += [f"## strobe {name}\n", f"{sentence[0].upper()}{sentence[1:]}.\n"]
        lines += ["```text", parser.format_usage(), about_text(about, 100), "```\n"]
        lines += ["| argument | meaning |", "|---|---|"]
        shown = [a for a in parser._actions if a.help != argparse.SUPPRESS]
        lines += [f"| {_argument(a)} | {_cell(a.help or '')} |" for a in shown]
        lines.append("")
    lines += ["## Formats of strobe export\n", "| format | what it is |", "|---|---|"]
    lines += [f"| `{known.NAME}` | {known.DOC} |" for known in FORMATS]
    return "\n".join(lines).rstrip() + "\n"


def options() -> str:
    lines = [
        "# Options\n",
        MADE,
        "One set of options for every way: Python (`strobe.Profiler(name=value)`), the environment "
        "(`STROBE_OPTIONS`), a job's YAML file (below `strobe:`, most also at its top), and the "
        "flags of `strobe run` (`--profile-memory`, `--no-record-shapes`, `--steps 10:20`). Older "
        "names and values are those of MindSpore, mindformers and MegEngine, and mean the same. An "
        "option that does not exist, or contradicts another, is an error.\n",
        "| option | default | meaning | ways | older names | older values |",
        "|---|---|---|---|---|---|",
    ]
    for option in fields(Options):
        meta = option.metadata
        cells = [
            f"`{option.name}`", _value(option.default), _cell(doc(option.name)),
            ", ".join(meta["ways"]), ", ".join(f"`{name}`" for name in meta["aliases"]),
            ", ".join(f"{_value(old)}: {_value(new)}" for old, new in meta["old_values"].items()),
        ]  # fmt: skip
        lines.append(f"| {' | '.join(cells)} |")
    lines += [
        "",
        "## Without effect\n",
        "Accepted from older systems, with one warning on stderr and in `problems`.\n",
        *_list({f"`{name}`": _sentence(no_effect(name).values["why"]) for name in WITHOUT_EFFECT}),
    ]
    return "\n".join(lines).rstrip() + "\n"


def _value(value: Any) -> str:
    """As JSON has it."""
    return f"`{json.dumps(value)}`"


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def _argument(action: argparse.Action) -> str:
    if not action.option_strings:
        return f"`{action.metavar}`"
    name = "{" + ",".join(action.choices) + "}" if action.choices else action.dest.upper()
    value = f" {action.metavar or name}" if action.nargs != 0 else ""
    return ", ".join(f"`{name}{value}`" for name in action.option_strings)


def words() -> str:
    lines = ["# Words\n", MADE, "One word for one idea, in the code, the tables and the docs.\n"]
    lines += _list({name: WORDS[name] for name in WORDS})
    lines += [
        "## Kinds of event\n",
        *_list({k: f"{v[0].upper()}{v[1:]}." for k, v in KINDS.items()}),
    ]
    docs = {column.name: column.doc for column in steps.RESULT.columns}
    lines += ["## Phases of a step\n", *_list({p: docs[f"{p}_ns"] for p in PHASES})]
    lines += ["## How a run or a rank ends\n"]
    lines += _list({state: f"{v[0].upper()}{v[1:]}." for state, v in STATES.items()})
    lines += [
        "## Units in names\n",
        *_list({
            "_ns": "Nanoseconds.", "_bytes": "Bytes.", "_total": "A counter that only grows.",
            "_milli, _permille": "Thousandths.", "_per_s": "For each second.",
            "share, _ratio": "A part of a whole, 0 to 1.",
        }),
    ]  # fmt: skip
    return "\n".join(lines).rstrip() + "\n"


def _list(meanings: dict[str, str]) -> list[str]:
    return ["| word | meaning |", "|---|---|",
            *(f"| {word} | {_cell(text)} |" for word, text in meanings.items()), ""]  # fmt: skip


def rules() -> str:
    lines = [
        "# Rules\n",
        MADE,
        "What `strobe advise` looks for, a page for each fault. `strobe explain RULE` prints the "
        "same; [advice](../guide/advice.md) explains how to read the output.\n",
        "| rule | the fault |",
        "|---|---|",
    ]
    for rule in RULES:
        lines.append(f"| [{rule.NAME}]({rule.NAME}.md) | {_cell(manual(rule)[0])} |")
    return "\n".join(lines) + "\n"


def rules_in_chinese() -> str:
    lines = [
        "# 规则\n",
        MADE,
        "`strobe advise` 检查的问题，每条规则一页。"
        "`STROBE_LANG=zh strobe explain RULE` 显示相同内容；"
        "怎样阅读结论，见[找出训练慢的原因](../advice.md)。\n",
        "| 规则 | 问题 |",
        "|---|---|",
    ]
    for rule in RULES:
        lines.append(f"| [{rule.NAME}]({rule.NAME}.md) | {_cell(manual(rule, CHINESE)[0])} |")
    return "\n".join(lines) + "\n"


def _rule(rule: Rule, language: str = ENGLISH) -> str:
    title, text = manual(rule, language)
    stop = "。" if language == CHINESE else "."
    spaced = re.sub(r"^(## .*)\n(?!\n)", r"\1\n\n", text, flags=re.MULTILINE)
    return f"# {rule.NAME}\n\n{MADE}\n{title}{stop}\n\n{spaced}\n"


def pages() -> dict[str, str]:
    """Every page, by its path below docs/."""
    return {
        "reference/tables.md": tables(),
        "reference/commands.md": commands(),
        "reference/options.md": options(),
        "reference/words.md": words(),
        "rules/index.md": rules(),
        **{f"rules/{rule.NAME}.md": _rule(rule) for rule in RULES},
        "zh/rules/index.md": rules_in_chinese(),
        **{f"zh/rules/{rule.NAME}.md": _rule(rule, CHINESE) for rule in RULES},
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; fail if not current")
    args = parser.parse_args()
    os.environ[LANGUAGE_VARIABLE] = ENGLISH
    stale = []
    wanted = pages()
    for path in (*DOCS.glob("rules/*.md"), *DOCS.glob("zh/rules/*.md")):  # of rules that are gone
        name = path.relative_to(DOCS).as_posix()
        if name not in wanted:
            stale.append(name)
            if not args.check:
                path.unlink()
    for name, text in wanted.items():
        path = DOCS / name
        if path.exists() and path.read_text(encoding="utf-8") == text:
            continue
        stale.append(name)
        if not args.check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    if args.check and stale:
        sys.stderr.write(
            f"docs/ is not current: {', '.join(stale)}; run: python scripts/reference.py\n"
        )
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
