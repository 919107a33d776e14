"""The timeline: what is seen, found, chosen and followed, with the mouse and with keys."""

import json
import re

import pytest
from playwright.sync_api import expect

from tests.browser.test_pages import address

PAINTED = "html[data-timeline-painted]"
# The head of the page, the heads of the tracks.
LEFT = 240


@pytest.fixture
def timeline(looking):
    def open_view(run: str, query: str = ""):
        page = looking.open(address(run, "timeline") + query)
        page.wait_for_selector(PAINTED, state="attached")
        return page

    return open_view


def query(page) -> dict[str, str]:
    from urllib.parse import parse_qsl

    return dict(parse_qsl(page.url.partition("?")[2]))


def searched(page, text: str):
    box = page.get_by_role("searchbox")
    box.fill(text)
    box.press("Enter")
    expect(page.locator(".tl-facts h2")).to_be_visible()


def seen(page) -> str:
    return page.locator(".tl-span").inner_text()


def test_every_track_has_its_head_and_its_busy_share(timeline):
    page = timeline("gpu")
    heads = page.locator(".tl-heads")
    expect(heads.get_by_text("rank 0")).to_be_visible()
    expect(heads.get_by_text("cuda:0 · stream 7")).to_be_visible()
    # Three kernels of 140 us in each step of 1000 us, which reach from 150 to 2690 of 3000.
    stream = page.locator(".tl-track", has_text="stream 7")
    expect(stream.locator(".tl-busy")).to_have_text("42%")


def test_a_search_leads_from_hit_to_hit_and_an_arrow_to_the_kernel(timeline):
    page = timeline("gpu")
    searched(page, "aten::mm")
    expect(page.locator(".tl-search output")).to_have_text("1 of 3")
    expect(page.locator(".tl-facts h2")).to_have_text("aten::mm")
    expect(page.locator(".tl-event")).to_contain_text("[[8, 3, 32, 32]]")
    page.get_by_role("button", name="Next match").click()
    expect(page.locator(".tl-search output")).to_have_text("2 of 3")
    page.locator(".tl-canvas").first.focus()
    page.keyboard.press("]")
    expect(page.locator(".tl-facts h2")).to_have_text("sgemm_kernel")
    page.keyboard.press("[")
    expect(page.locator(".tl-facts h2")).to_have_text("cudaLaunchKernel")
    page.keyboard.press("ArrowUp")
    expect(page.locator(".tl-facts h2")).to_have_text("aten::mm")


def test_keys_zoom_move_and_go_back(timeline):
    page = timeline("demo")
    whole = seen(page)
    page.keyboard.press("w")
    expect(page.locator(".tl-span")).not_to_have_text(whole)
    page.keyboard.press("0")
    expect(page.locator(".tl-span")).to_have_text(whole)
    page.keyboard.press("Backspace")
    expect(page.locator(".tl-span")).not_to_have_text(whole)
    page.wait_for_url(re.compile("t0="))
    before = query(page)["t0"]
    page.keyboard.down("d")
    page.wait_for_timeout(200)
    page.keyboard.up("d")
    page.wait_for_url(lambda url: f"t0={before}&" not in url and "t0=" in url)


def test_an_event_is_walked_from_row_to_row_and_along_its_row(timeline):
    page = timeline("demo")
    searched(page, "kind:module")
    expect(page.locator(".tl-facts h2")).to_have_text("Net")
    page.locator(".tl-canvas").first.focus()
    page.keyboard.press("ArrowDown")
    expect(page.locator(".tl-facts h2")).not_to_have_text("Net")
    page.keyboard.press("ArrowUp")
    expect(page.locator(".tl-facts h2")).to_have_text("Net")
    first = page.locator(".tl-facts dl").inner_text()
    page.keyboard.press(".")
    expect(page.locator(".tl-facts dl")).not_to_have_text(first)
    expect(page.locator("[aria-live=polite]")).not_to_be_empty()


def test_an_area_is_summed_up_and_lies_in_the_address(timeline, looking):
    page = timeline("gpu")
    box = page.locator(".tl-scroll .tl-canvas").last.bounding_box()
    page.mouse.move(box["x"] + 20, box["y"] + 30)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] - 10, box["y"] + box["height"] - 10, steps=4)
    page.mouse.up()
    table = page.locator(".tl-drawer table")
    expect(table).to_contain_text("sgemm_kernel")
    expect(table.locator("tr", has_text="sgemm_kernel").locator("td").nth(2)).to_have_text("6")
    page.wait_for_url(re.compile("area="))
    assert looking.barriers() == []
    view = looking.view
    page = looking.open(view)
    expect(page.locator(".tl-drawer table")).to_contain_text("sgemm_kernel")
    page.keyboard.press("Escape")
    expect(page.locator(".tl-drawer table")).to_have_count(0)


def test_the_address_brings_back_what_was_seen(timeline, looking):
    page = timeline("demo")
    searched(page, "aten::")
    page.keyboard.press("Escape")
    page.locator(".tl-canvas").first.focus()
    page.keyboard.press("f")
    page.get_by_label("Filter tracks").fill("main")
    page.locator(".tl-track").first.hover()
    page.locator(".tl-pin").first.click()
    page.wait_for_url(re.compile("pin="))
    chosen, span, view = query(page), seen(page), looking.view
    page = looking.open(view)
    page.wait_for_selector(PAINTED, state="attached")
    expect(page.locator(".tl-span")).to_have_text(span)
    expect(page.locator(".tl-pinned .tl-track")).to_have_count(1)
    expect(page.get_by_label("Filter tracks")).to_have_value("main")
    expect(page.locator(".tl-facts h2")).to_be_visible()
    page.wait_for_timeout(500)  # longer than the page waits before it writes the address
    assert query(page) == chosen


def test_steps_chosen_on_another_page_are_shown(timeline):
    page = timeline("demo", "?steps=4:5")
    page.wait_for_url(re.compile("t0="))
    assert "ms" in seen(page)


def test_the_table_tells_what_the_picture_shows(timeline, looking):
    page = timeline("gpu", "?show=events")
    rows = page.locator("[data-testid=events-in-view] tbody tr")
    expect(rows.first).to_be_visible()
    assert rows.filter(has_text="sgemm_kernel").count() == 6
    rows.filter(has_text="relu_kernel").first.get_by_role("button").click()
    expect(page.locator(".tl-facts h2")).to_have_text("relu_kernel")
    assert looking.barriers() == []


def test_what_the_pointer_is_on_is_told(timeline):
    page = timeline("gpu")
    head = page.locator(".tl-track", has_text="stream 7").bounding_box()
    box = page.locator(".tl-scroll .tl-canvas").last.bounding_box()
    # The first kernel: from 150 to 290 us of a view from -30 to 3030.
    page.mouse.move(box["x"] + box["width"] * (200 + 30) / 3060, head["y"] + 8)
    expect(page.locator(".tl-tooltip")).to_contain_text("sgemm_kernel")
    page.mouse.down()
    page.mouse.up()
    expect(page.locator(".tl-facts h2")).to_have_text("sgemm_kernel")


def test_counters_are_drawn_when_they_are_opened(timeline):
    page = timeline("demo")
    page.get_by_role("button", name=re.compile(r"^counters")).click()
    values = page.locator(".tl-curve .tl-value")
    expect(values.first).not_to_be_empty()
    page.wait_for_url(re.compile("toggled="))


def test_the_timeline_can_be_downloaded(timeline, tmp_path):
    import gzip

    page = timeline("gpu")
    with page.expect_download() as download:
        page.get_by_role("link", name="Download").click()
    path = tmp_path / "timeline.json.gz"
    download.value.save_as(path)
    assert json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
