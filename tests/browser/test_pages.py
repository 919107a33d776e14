"""Every page, on runs of every kind: no error, no request to the outside, nobody shut out."""

import pytest
from playwright.sync_api import expect

from tests.browser.looking import visit
from tests.web.served import HOSTILE

OF_RUN = ("overview", "steps", "operators", "pipeline", "timeline", "memory")
RUNS = ("demo", "gpu", "two-ranks", HOSTILE)


def address(run: str, page: str) -> str:
    from urllib.parse import quote

    return f"run/{quote(run, safe='')}/{page}"


@pytest.mark.parametrize("page", OF_RUN)
@pytest.mark.parametrize("run", RUNS)
def test_each_page_of_each_run_is_whole_and_open_to_all(looking, run, page):
    seen = looking.open(address(run, page))
    expect(seen.locator("main h1")).to_have_count(1)
    expect(seen.locator("main [role=alert]")).to_have_count(0)
    assert looking.barriers() == []


@pytest.mark.parametrize("view", ["runs", "compare", "compare?a=demo&b=fixed"])
def test_pages_about_several_runs(looking, view):
    seen = looking.open(view)
    expect(seen.locator("main [role=alert]")).to_have_count(0)
    assert looking.barriers() == []


@pytest.mark.parametrize("page", OF_RUN)
def test_a_broken_run_says_what_is_wrong_and_what_to_do(looking, page):
    looking.refused = ["422 (Unprocessable"]  # the browser notes that the server said no
    seen = looking.open(address("broken", page))
    expect(seen.locator("main [role=alert]").first).to_contain_text("run.json")
    assert looking.barriers() == []


@pytest.mark.parametrize("view", ["runs", *(address("demo", page) for page in OF_RUN),
                                  "compare?a=demo&b=fixed"])  # fmt: skip
def test_dark_and_chinese(browser, link, view):
    with visit(browser, link, color_scheme="dark", locale="zh-CN") as looking:
        seen = looking.open(view)
        expect(seen.locator("html")).to_have_attribute("data-theme", "dark")
        expect(seen.locator("html")).to_have_attribute("lang", "zh-CN")
        assert looking.barriers() == []


def test_a_run_that_does_not_exist_leads_back(looking):
    looking.refused = ["404 (Not Found)"]
    seen = looking.open("run/nobody/steps")
    expect(seen.get_by_role("heading", name="Run “nobody” not found")).to_be_visible()
    # No menu of pages that would all fail.
    expect(seen.locator("nav").get_by_role("link", name="Timeline")).to_have_count(0)
    seen.get_by_role("link", name="Back to all runs").click()
    expect(seen.get_by_role("heading", level=1, name="Runs")).to_be_visible()


def test_a_page_that_does_not_exist_leads_back(looking):
    seen = looking.open("no-such-page")
    seen.get_by_role("link", name="Back to all runs").click()
    expect(seen.get_by_role("heading", level=1, name="Runs")).to_be_visible()
