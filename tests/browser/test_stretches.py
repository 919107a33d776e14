"""The timeline of a run whose ranks were recorded hours apart."""

import pytest
from playwright.sync_api import expect

from strobe.model.manifest import Manifest, write_manifest
from tests.browser.test_timeline import PAINTED, query
from tests.ingest.runs import START_NS, plain_steps, write_raw

HOUR_NS = 3600 * 10**9
STEP_NS = 10**9


@pytest.fixture
def page(looking_at, tmp_path):
    """Rank 0 trains twelve seconds, rank 1 twenty, three hours later; rank 2 eight, in a day."""
    run = tmp_path / "base" / "apart"
    for rank, (steps, hours) in enumerate(((12, 0), (20, 3), (8, 24))):
        marks = [(ts + hours * HOUR_NS, *rest) for ts, *rest in plain_steps(steps, STEP_NS)]
        write_raw(run, marks, rank=rank)
    write_manifest(run, Manifest(started_unix_ns=START_NS, recorded_by="strobe run", host="there"))
    with looking_at(run.parent) as looking:
        page = looking.open("run/apart/timeline")
        page.wait_for_selector(PAINTED, state="attached")
        yield page
        assert looking.barriers() == []


def seen_s(page) -> tuple[float, float]:
    view = page.evaluate("strobeTimeline.state.view.value")
    return view["t0"] / 1e9, view["t1"] / 1e9


def test_the_part_with_most_events_is_seen_first_and_others_are_a_click_away(page):
    expect(page.locator(".tl-stretches")).to_contain_text("3 parts, far apart")
    parts = page.locator(".tl-stretches button")
    expect(parts).to_have_count(3)
    expect(parts.nth(1)).to_have_attribute("aria-pressed", "true")
    begin, end = seen_s(page)
    assert 3 * 3600 - 1 < begin < end < 3 * 3600 + 21
    assert "t0" not in query(page)
    parts.nth(2).click()
    expect(parts.nth(2)).to_have_attribute("aria-pressed", "true")
    begin, end = seen_s(page)
    assert 24 * 3600 - 1 < begin < end < 24 * 3600 + 9
    page.get_by_role("button", name="Whole run").click()
    begin, end = seen_s(page)
    assert begin < 0 and end > 24 * 3600
    expect(parts.nth(2)).to_have_attribute("aria-pressed", "false")


def test_a_click_near_a_part_in_the_overview_leads_there(page):
    box = page.locator(".tl-overview canvas").bounding_box()
    page.mouse.click(box["x"] + box["width"] * 0.01 - 2, box["y"] + 20)  # rank 0, all at the left
    begin, end = seen_s(page)
    assert -1 < begin < end < 13
    page.keyboard.press("Backspace")
    assert seen_s(page)[0] > 3 * 3600 - 1
