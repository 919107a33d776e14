"""`strobe export --format html`: the pages out of one file, from disk, with the network off."""

import re

import pytest
from playwright.sync_api import expect

from strobe.cli import main
from tests.browser.looking import visit

PAGES = ("overview", "steps", "operators", "operators?tab=modules", "pipeline",
         "pipeline?tab=pipeline", "memory", "timeline")  # fmt: skip


@pytest.fixture(scope="module")
def report(runs, tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "demo.html"
    assert main(["export", str(runs / "demo"), "--format", "html", "-o", str(path)]) == 0
    assert path.stat().st_size < 20_000_000
    return path


@pytest.fixture
def reading(browser, report):
    with visit(browser, report.as_uri(), offline=True) as found:
        yield found


@pytest.mark.parametrize("page", PAGES)
def test_each_page_opens_from_disk(reading, page):
    seen = reading.open(f"run/demo/{page}")
    expect(seen.locator("main h1")).to_have_count(1)
    expect(seen.locator("main [role=alert]")).to_have_count(0)
    assert reading.barriers() == []


def test_it_begins_with_the_verdict(reading):
    page = reading.settled()
    expect(page).to_have_url(re.compile("#/run/demo/overview"))
    expect(page.locator("main")).to_contain_text("Training waits")
    expect(page.get_by_role("link", name="Runs")).to_have_count(0)


def test_tables_are_searched_sorted_and_saved_in_the_file(reading):
    page = reading.open("run/demo/operators?tab=operators&ops.columns=name+calls+forward_name")
    page.get_by_role("searchbox").fill("ADD mm")
    expect(page).to_have_url(re.compile(r"ops\.q="))
    page.get_by_role("button", name="Calls").click()
    page = reading.settled()
    table = page.get_by_role("group", name="Operators", exact=True)
    names = table.locator("tbody td:nth-child(1)").all_inner_texts()
    forwards = table.locator("tbody td:nth-child(3)").all_inner_texts()
    assert names
    assert all("addmm" in f"{a} {b}".lower() for a, b in zip(names, forwards, strict=True))
    calls = [int(text) for text in table.locator("tbody td:nth-child(2)").all_inner_texts()]
    assert calls == sorted(calls, reverse=True)
    with page.expect_download() as saved:
        page.get_by_role("link", name="CSV").click()
    assert len(saved.value.path().read_text().splitlines()) == len(names) + 1


def test_an_operators_calls_are_in_it(reading):
    page = reading.open("run/demo/operators?tab=operators")
    page.get_by_role("group", name="Operators", exact=True).locator("tbody tr").first.click()
    reading.settled()
    expect(page.get_by_role("figure", name="Length of its calls over time")).to_be_visible()


def test_steps_that_were_chosen_do_not_pass_for_the_whole_run(reading):
    reading.refused = ["404"]
    page = reading.open("run/demo/operators?steps=2:5")
    expect(page.locator("main [role=alert]").first).to_contain_text("of the whole run only")
