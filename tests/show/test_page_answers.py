from strobe.advise import advise, rules_named
from strobe.show import page_answers
from tests.analyse.drawings import MODEL, MODEL_ARGS
from tests.helpers import make_run


def test_what_a_run_is_and_which_tables_it_has(tmp_path):
    run = make_run(tmp_path, MODEL, MODEL_ARGS)
    told = page_answers.about(run, "a-key")
    assert (told["ok"], told["content"], told["ranks"], told["problems"]) == (True, "a-key", [0], 0)
    rows = {table["name"]: table["rows"] for table in told["tables"]}
    assert rows["events"] == len(MODEL.strip().splitlines())
    assert rows["operators"] is None  # an analysis is not run to be counted


def test_the_summary_has_the_verdict_and_the_advice_its_reasons(tmp_path):
    run = make_run(tmp_path, MODEL, MODEL_ARGS)
    advice = advise(run)
    told = page_answers.summary(run, advice)["summary"]
    assert told["verdict"] == advice.to_json()["verdict"]
    assert "steps" in told
    assert {*page_answers.advised(advice)["clear_because"]} == {*advice.to_json()["clear"]}


def test_the_manual_of_a_rule():
    (rule,) = rules_named(["host-gap"])
    told = page_answers.explained(rule)
    assert told["rule"] == "host-gap"
    assert told["title"]
    assert "## How" in told["text"]
