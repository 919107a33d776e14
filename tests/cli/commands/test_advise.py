import json

import pytest

import strobe as package
from strobe.advise import RULES, Advice
from strobe.advise.finding import Finding
from strobe.model.manifest import write_manifest


def test_the_page(strobe):
    code, out, err = strobe("advise", "RUN", "--width", "80")
    assert (code, err) == (0, "") and "\x1b" not in out
    assert max(map(len, out.splitlines())) <= 80
    assert "strobe advise RUN --all" in out


def test_the_contract_of_json(strobe):
    code, out, _ = strobe("advise", "RUN", "--json")
    answer = json.loads(out)
    assert code == 0 and answer["ok"] and answer["run"] == "RUN" and answer["verdict"]
    told = [*(found["rule"] for found in answer["findings"]), *answer["clear"]]
    told += [unknown["rule"] for unknown in answer["cannot_tell"]]
    assert sorted(told) == sorted(rule.NAME for rule in RULES)
    for unknown in answer["cannot_tell"]:
        assert unknown["reason"] and unknown["hint"] and "bug in Strobe" not in unknown["reason"]
    wanted = {"rule", "title", "share", "cost_ns", "expected_speedup", "where", "evidence", "fixes"}
    for found in answer["findings"]:
        assert wanted <= set(found)
        assert all({"table", "rows"} == set(evidence) for evidence in found["evidence"])


def test_only_the_rules_that_are_named_are_asked(strobe):
    answer = json.loads(strobe("advise", "RUN", "gc_pause", "recompilation", "--json")[1])
    assert answer["clear"] == ["gc-pause", "recompilation"] and not answer["cannot_tell"]


@pytest.mark.parametrize(
    "words, error",
    [
        (["RUN", "gc-puse"], "Did you mean gc-pause"),
        (["nowhere"], "this run does not exist"),
        ([], "missing arguments: RUN"),
    ],
)
def test_wrong_input_is_told(strobe, words, error):
    code, out, err = strobe("advise", *words)
    assert code == 2 and not out and error in err
    answer = json.loads(strobe("advise", *words, "--json")[1])
    assert not answer["ok"] and answer["hint"]


def test_the_summary_begins_with_the_verdict(strobe):
    out = strobe("show", "RUN")[1]
    assert out.splitlines()[0] == "Verdict" and "  more: strobe advise RUN" in out.splitlines()
    answer = json.loads(strobe("show", "RUN", "--json")[1])
    assert answer["summary"]["verdict"] and "findings" in answer["summary"]


def test_in_python(drawn, monkeypatch):
    monkeypatch.setattr("strobe.reading.open_run_dir", lambda path: drawn)
    write_manifest(drawn.path, drawn.manifest)
    advice = package.open_run(drawn.path).advise("gc-pause")
    assert repr(advice) == "No fault costs 5% of step time: 1 check passed."
    assert advice.to_json()["clear"] == ["gc-pause"]


def test_the_fix_as_a_diff(strobe, tmp_path, monkeypatch):
    script = tmp_path / "train.py"
    script.write_text("x = DataLoader(d)\n")
    fix = "Set num_workers=2 on the DataLoader at train.py:1"
    found = {
        "host-gap": Finding("", 0.5, 2.0, ("Log less often",), ()),
        "data-starvation": Finding("", 0.4, 1.7, (fix,), (), where="train.py:1"),
    }
    monkeypatch.setattr("strobe.advise.advise", lambda run, rules: Advice(findings=found))
    monkeypatch.setattr("strobe.advise.source_change._file", lambda run, name, line: script)
    code, out, err = strobe("advise", "RUN", "--diff")
    assert code == 0 and "+x = DataLoader(d, num_workers=2)\n" in out, err
    assert out.startswith("--- a/train.py\n+++ b/train.py\n")
    assert "no diff for host-gap: its fix is not a change of one call" in err
    assert "data-starvation: predicted gain: about 1.7" in err
    del found["data-starvation"]
    code, out, err = strobe("advise", "RUN", "--diff")
    assert (code, out) == (4, "") and "no fix can be shown as a diff" in err and "host-gap" in err
    found.clear()
    code, out, err = strobe("advise", "RUN", "--diff")
    assert (code, out) == (4, "") and "there is nothing to fix" in err
    assert strobe("advise", "RUN", "--diff", "--json")[0] == 2
