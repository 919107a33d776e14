import json

import pytest

import strobe as package
from strobe.advise import RULES
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
        assert unknown["reason"] and unknown["hint"] and "fault of Strobe" not in unknown["reason"]
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
        (["RUN", "gc-puse"], "did you mean gc-pause"),
        (["nowhere"], "there is no such run"),
        ([], "required: RUN"),
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
    monkeypatch.setattr("strobe.reading.open_run_dir", lambda path, store_later: drawn)
    write_manifest(drawn.path, drawn.manifest)
    advice = package.open_run(drawn.path).advise("gc-pause")
    assert repr(advice) == "No fault costs 5% of step time: 1 check passed."
    assert advice.to_json()["clear"] == ["gc-pause"]
