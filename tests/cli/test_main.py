import json
import re
import subprocess
import sys

import pytest

from strobe import cli
from strobe.cli import COMMANDS, main
from strobe.messages import message


def test_help_lists_every_command(strobe):
    code, out, _ = strobe("--help")
    assert code == 0
    for name, _, _ in COMMANDS:
        text = message(f"cli/commands.{name}")
        assert re.search(rf"^  {name} +{re.escape(text)}$", out, re.MULTILINE), name
    assert strobe()[1] == out


@pytest.mark.slow
def test_help_imports_nothing_heavy():
    script = (
        "import sys; from strobe.cli import main; main(['--help']);"
        "heavy = {'duckdb', 'numpy', 'rich', 'torch', 'msgspec'} & set(sys.modules);"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", script], check=True, stdout=subprocess.DEVNULL)


@pytest.mark.parametrize(
    "words, hint",
    [
        (["shwo"], "Did you mean: strobe show"),
        (["train.py"], "To record a script: strobe run train.py"),
        (["zzz"], "Commands: run, attach, dynamic"),
    ],
)
def test_an_unknown_command_names_what_to_do(strobe, words, hint):
    code, out, err = strobe(*words)
    assert (code, out) == (2, "") and hint in err and err.startswith("error: unknown command")


def test_errors_as_json_when_json_was_asked_for(strobe):
    code, out, err = strobe("show", "nowhere", "--json")
    assert (code, err) == (2, "")
    answer = json.loads(out)
    assert answer["ok"] is False and "does not exist" in answer["error"] and answer["hint"]
    code, out, _ = strobe("show", "--json")
    assert code == 2 and json.loads(out)["ok"] is False


@pytest.mark.parametrize("raised, code", [(KeyboardInterrupt, 130), (BrokenPipeError, 0)])
def test_an_interrupt_is_quiet(monkeypatch, raised, code):
    def stop(words):
        raise raised

    monkeypatch.setattr(cli, "_dispatch", stop)
    monkeypatch.setattr(cli.os, "dup2", lambda *handles: None)
    monkeypatch.setattr(cli.os, "open", lambda *words: 0)
    monkeypatch.setattr(cli.sys, "stdout", sys.__stdout__)
    assert main(["show"]) == code


@pytest.mark.slow
def test_a_reader_that_leaves_early_is_no_error():
    command = f"{sys.executable} -m strobe --help | true"
    done = subprocess.run(command, shell=True, capture_output=True, text=True)
    assert done.stderr == ""


def test_a_bug_is_not_hidden(monkeypatch):
    def fail(words):
        raise ZeroDivisionError

    monkeypatch.setattr(cli, "_dispatch", fail)
    with pytest.raises(ZeroDivisionError):
        main(["show"])


def test_version(strobe):
    assert strobe("--version")[1].startswith("strobe ")
