"""Two runs side by side."""

import re

from playwright.sync_api import expect


def test_the_difference_is_judged_and_explained(looking):
    seen = looking.open("compare?a=demo&b=fixed")
    expect(seen.locator(".comparison-verdict")).to_contain_text(re.compile("faster|slower|noise"))
    causes = seen.locator("section[aria-label='What explains the difference']")
    expect(causes.locator("tbody tr", has_text="Data wait").first).to_be_visible()
    settings = seen.locator("section[aria-label='Different settings']")
    expect(settings).to_contain_text("num_workers")


def test_swapped_runs_change_sides(looking):
    seen = looking.open("compare?a=demo&b=fixed")
    seen.get_by_role("button", name="Swap").click()
    assert looking.view == "compare?a=fixed&b=demo"
    looking.settled()
    sides = seen.locator(".side-name")
    expect(sides.first).to_have_text("A fixed")


def test_runs_are_chosen_on_the_page(looking):
    seen = looking.open("compare")
    expect(seen.locator("main")).to_contain_text("Choose two runs")
    seen.get_by_label("A (before)").select_option("demo")
    seen.get_by_label("B (after)").select_option("demo")
    expect(seen.locator("main")).to_contain_text("the same run")
    seen.get_by_label("B (after)").select_option("fixed")
    expect(seen.locator(".comparison-verdict")).to_be_visible()
    looking.settled()


def test_runs_that_cannot_be_compared_say_why(looking):
    looking.refused = ["422", "404"]
    seen = looking.open("compare?a=demo&b=no-such-run")
    expect(seen.locator("main [role=alert]")).to_contain_text("This run does not exist")
