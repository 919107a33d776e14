"""The way of somebody who is new: why is it slow, what is slowest, and where on the timeline?"""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.looking import visit
from tests.browser.test_timeline import PAINTED, query

PHONE = {"width": 390, "height": 800}


def test_from_the_runs_to_the_slowest_operator_on_the_timeline_in_four_clicks(looking):
    seen = looking.open("runs")
    seen.get_by_role("link", name="demo", exact=True).click()
    looking.settled()
    expect(seen.locator(".verdict")).to_contain_text("for data")
    seen.get_by_role("navigation").get_by_role("link", name="Operators").click()
    looking.settled()
    slowest = seen.locator(".table-scroller tbody tr.is-clickable").first
    name = slowest.locator("td").first.inner_text()
    slowest.click(position={"x": 300, "y": 10})
    seen.get_by_role("link", name="Show on timeline").click()
    seen.wait_for_selector(PAINTED, state="attached")
    expect(seen.locator(".tl-facts h2")).to_have_text(re.compile(re.escape(name.rstrip("…"))))
    assert "sel" in query(seen)


@pytest.mark.parametrize("page", ["runs", *(
    f"run/demo/{page}" for page in ("overview", "steps", "operators", "pipeline", "timeline")
)])  # fmt: skip
def test_no_page_is_wider_than_a_phone(browser, link, page):
    with visit(browser, link, viewport=PHONE) as looking:
        seen = looking.open(page)
        wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        assert seen.evaluate(wide) <= 0
