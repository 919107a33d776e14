"""The verdict, the findings, and the way from each to its evidence."""

import re

from playwright.sync_api import expect

import strobe
from strobe.advise import RULES
from strobe.messages import texts_of
from tests.browser.looking import visit


def test_the_verdict_and_the_fix_come_first(looking):
    seen = looking.open("run/demo/overview")
    expect(seen.locator(".verdict")).to_contain_text("for data")
    finding = seen.locator(".finding").first
    expect(finding).to_contain_text("data-starvation")
    expect(finding).to_contain_text("train.py:")
    expect(finding).to_contain_text("num_workers")
    expect(finding.locator(".gain")).to_contain_text("faster")


def test_evidence_leads_to_its_step_on_the_timeline(looking, runs):
    seen = looking.open("run/demo/overview")
    place = seen.locator(".finding").first.locator("a.place[href*=timeline]").first
    target = place.get_attribute("href")
    step = int(re.search(r"step=(\d+)", target)[1])
    assert "sel=" in target
    with strobe.open_run(runs / "demo") as run:
        query = f"SELECT ts_ns, dur_ns FROM steps WHERE step = {step}"
        ((begin, length),) = run.sql(query).fetchall()
    place.click()
    expect(seen.get_by_role("heading", level=1, name="Timeline")).to_be_attached()
    expect(seen).to_have_url(re.compile("t0="))
    t0, t1 = (int(re.search(rf"t{end}=(\d+)", seen.url)[1]) for end in (0, 1))
    # All of its step, and little else.
    assert t0 <= begin and t1 >= begin + length
    assert t1 - t0 < 1.5 * length


def test_rows_of_evidence_can_be_read(looking):
    seen = looking.open("run/demo/overview")
    seen.get_by_text("Rows of data-pipeline").click()
    table = seen.get_by_role("region", name="Rows of data-pipeline")
    expect(table).to_contain_text("transform")
    assert looking.barriers() == []


def test_the_manual_of_a_rule_opens(looking):
    seen = looking.open("run/demo/overview")
    seen.locator(".finding").first.get_by_role("button", name="data-starvation").click()
    manual = seen.get_by_role("dialog", name="data-starvation")
    expect(manual.get_by_role("heading", name="How it is judged")).to_be_visible()
    assert looking.barriers() == []


def test_rules_that_are_clear_or_cannot_tell_say_why(looking):
    seen = looking.open("run/demo/overview")
    seen.get_by_text("Checks skipped").click()
    expect(seen.locator(".other-rules")).to_contain_text("Only one rank was recorded")
    seen.get_by_text("Checks passed").click()
    expect(seen.locator(".other-rules")).to_contain_text("double-precision")


def test_an_operator_type_leads_to_its_operators(looking):
    seen = looking.open("run/demo/overview")
    first = seen.locator("section[aria-label='Operator types'] .top-bars a").first
    name = first.locator(".bar-name").inner_text()
    first.click()
    expect(seen.get_by_role("heading", level=1, name="Operators")).to_be_visible()
    looking.settled()
    expect(seen.locator("main")).to_contain_text(name)


def test_what_is_missing_says_which_command_records_it(looking):
    seen = looking.open("run/gpu/overview")
    missing = seen.locator("section[aria-label='Not in this run']")
    expect(missing).to_contain_text("Input pipeline and Machine")
    expect(missing).to_contain_text("strobe run train.py")
    expect(seen.locator("section[aria-label='Devices']")).to_contain_text("cuda:0")


def test_ranks_of_the_preview_have_their_names(looking):
    seen = looking.open("run/two-ranks/overview")
    preview = seen.locator("section[aria-label='Timeline preview']")
    expect(preview.locator(".preview-ranks span")).to_have_text(["rank 0", "rank 1"])


def test_parts_of_the_preview_come_in_the_order_of_time(looking):
    """A step whose passes come twice: forward, backward, forward, backward."""
    looking.refused = ["Canvas2D: Multiple readback"]
    seen = looking.open("run/demo/overview")
    columns = ["rank", "part", "ts_ns", "dur_ns"]
    parts = ["forward", "backward", "forward", "backward"]
    rows = [[0, part, at * 1000, 1000] for at, part in enumerate(parts)]
    answer = {"ok": True, "table": "step-phases", "total": 4, "rows": rows,
              "columns": [{"name": n, "type": "i64", "doc": ""} for n in columns]}  # fmt: skip
    seen.route("**/table/step-phases*", lambda route: route.fulfill(json=answer))
    looking.open("run/demo/overview")
    colours = seen.locator(".preview canvas").evaluate("""canvas => [1, 3, 5, 7].map(eighth =>
        canvas.getContext('2d').getImageData(canvas.width * eighth / 8, 12, 1, 1).data.join())""")
    assert colours[0] == colours[2] != colours[1] == colours[3]


def test_a_number_is_expanded_into_its_derivation(looking):
    seen = looking.open("run/demo/overview")
    finding = seen.locator(".finding").first
    share = finding.locator(".finding-share").inner_text()
    finding.get_by_text(f"How {share} was computed").click()
    lines = finding.locator(".derivation li")
    expect(lines.first).to_have_text("60 steps recorded")
    expect(finding.locator(".derivation")).to_contain_text(f"{share} of step time waiting")
    assert looking.barriers() == []


def test_in_chinese_all_that_rules_say_is_told_in_chinese(browser, link):
    with visit(browser, link, locale="zh-CN") as looking:
        seen = looking.open("run/demo/overview")
        expect(seen.locator(".verdict")).to_contain_text("的时间在等待数据")
        expect(seen.locator(".finding-title").first).to_contain_text("的时间在等待数据")
        expect(seen.locator(".fixes li").first).to_contain_text("num_workers")
        for closed in seen.locator(".other-rules summary").all():
            closed.click()
        assert seen.locator(".findings [lang=en], .other-rules [lang=en]").count() == 0


def test_every_rule_has_a_short_name():
    assert {rule.NAME for rule in RULES} == set(texts_of("pages/rules"))
