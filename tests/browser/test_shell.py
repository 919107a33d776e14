"""What surrounds the pages: menu, help, keys, language, colours, addresses."""

import re

from playwright.sync_api import expect


def test_the_help_lists_the_keys_of_this_page(looking):
    seen = looking.open("run/demo/steps")
    seen.keyboard.press("?")
    help_text = seen.get_by_role("dialog", name="Keyboard shortcuts")
    expect(help_text).to_contain_text("Next step")
    assert looking.barriers() == []
    seen.keyboard.press("Escape")
    expect(help_text).to_be_hidden()
    # Keys of a page that was left are not told of any more.
    looking.open("runs").keyboard.press("?")
    expect(seen.get_by_role("dialog", name="Keyboard shortcuts")).not_to_contain_text("Next step")


def test_a_dialog_keeps_the_keys_from_the_timeline_behind_it(looking):
    seen = looking.open("run/gpu/timeline")
    seen.wait_for_selector("html[data-timeline-painted]", state="attached")
    span = seen.locator(".tl-span")
    before = span.inner_text()
    seen.keyboard.press("?")
    help_text = seen.get_by_role("dialog", name="Keyboard shortcuts")
    expect(help_text).to_be_visible()
    for key in "wwaa":
        seen.keyboard.press(key)
    assert span.inner_text() == before
    seen.keyboard.press("Escape")
    expect(help_text).to_be_hidden()
    seen.keyboard.press("w")
    expect(span).not_to_have_text(before)
    # The key that opens the help closes it too.
    seen.keyboard.press("?")
    seen.keyboard.press("?")
    expect(help_text).to_be_hidden()


def test_digits_open_pages_and_keep_the_chosen_steps(looking):
    seen = looking.open("run/demo/overview?steps=10:20")
    seen.keyboard.press("2")
    expect(seen.get_by_role("heading", level=1, name="Steps")).to_be_visible()
    assert looking.view == "run/demo/steps?steps=10%3A20"
    seen.keyboard.press("Shift+R")
    expect(seen.get_by_role("heading", level=1, name="Runs")).to_be_visible()


def test_keys_do_nothing_while_typing(looking):
    seen = looking.open("runs")
    seen.keyboard.press("/")
    search = seen.get_by_label("Search names, tags, findings")
    expect(search).to_be_focused()
    seen.keyboard.type("demo?")
    expect(search).to_have_value("demo?")
    expect(seen.get_by_role("dialog")).to_have_count(0)


def test_language_and_colours_are_switched_and_remembered(looking):
    seen = looking.open("runs")
    seen.get_by_role("button", name="Language").click()
    expect(seen.locator("h1")).to_have_text("运行")
    seen.keyboard.press("Shift+T")
    looking.open("compare")
    expect(seen.locator("html")).to_have_attribute("lang", "zh-CN")
    expect(seen.locator("html")).to_have_attribute("data-theme", "dark")
    expect(seen.locator("h1")).to_have_text("对比")


def test_the_menu_marks_where_one_is_and_can_be_skipped(looking):
    seen = looking.open("run/demo/steps")
    expect(seen.locator("nav [aria-current=page]")).to_have_text("Steps")
    expect(seen).to_have_title(re.compile("Steps · demo · Strobe"))
    seen.keyboard.press("Tab")
    seen.keyboard.press("Enter")
    expect(seen.locator("main")).to_be_focused()
    assert looking.view.startswith("run/demo/steps")


def test_a_server_that_ended_is_told_of(looking):
    seen = looking.open("runs")
    seen.route("**/api/**", lambda route: route.abort())
    looking.refused = ["ERR_FAILED"]
    seen.goto(looking.address + "#/run/demo/steps")
    alert = seen.locator("main [role=alert]").first
    expect(alert).to_contain_text("The server does not answer.")
    expect(alert).to_contain_text("strobe start")
