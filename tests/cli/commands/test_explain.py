import json

import pytest

from strobe.advise import RULES
from strobe.cli import main


@pytest.mark.parametrize("rule", [rule.NAME for rule in RULES])
def test_every_manual_is_printed(rule, capsys):
    assert main(["explain", rule, "--width", "80"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == rule and {"What it is", "How it is judged", "How to fix"} <= set(lines)
    assert max(map(len, lines)) <= 88


def test_the_list_has_a_line_for_each(capsys):
    assert main(["explain", "--width", "160"]) == 0
    assert len(capsys.readouterr().out.splitlines()) >= len(RULES)
    assert main(["explain", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["rules"]) == len(RULES)


def test_as_json(capsys):
    assert main(["explain", "gc-pause", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["ok"] and answer["rule"] == "gc-pause"
    assert answer["title"].startswith("Python's garbage collector")
    assert answer["text"].startswith("## What it is")


def test_an_unknown_rule_gets_the_nearest(capsys):
    assert main(["explain", "hot-operater"]) == 2
    assert "Did you mean hot-operator" in capsys.readouterr().err
