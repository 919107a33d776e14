"""The memory page: the curve and its peak, who held it, the blocks, the growth."""

import re

from playwright.sync_api import expect

import strobe
from tests.browser.looking import Visit


def test_the_peak_and_who_held_it(looking: Visit, runs):
    with strobe.open_run(runs / "demo") as run:
        ((peak,),) = run.sql("SELECT peak_bytes FROM memory").fetchall()
        (held,) = run.sql("SELECT scope, name FROM memory_holders LIMIT 1").fetchall()
    page = looking.open("run/demo/memory?device=cpu")
    expect(page.locator("main")).to_contain_text(f"{peak / 2**20:.2f} MiB")
    holders = page.get_by_role("group", name="By module and operator").locator("tbody tr")
    expect(holders.first).to_contain_text(held[0] or "")
    expect(holders.first).to_contain_text(held[1])
    page.get_by_role("button", name="By operator").click()
    expect(page.get_by_role("figure", name="Memory at the peak")).to_contain_text(held[1])


def test_a_block_under_the_pointer_is_told_and_a_click_keeps_it(looking: Visit, runs):
    with strobe.open_run(runs / "demo") as run:
        (block,) = run.sql("""
            SELECT address, ts_ns, name, (ts_ns + end_ns) / 2, offset_bytes + bytes / 2,
                   (SELECT min(ts_ns) FROM memory_blocks), (SELECT max(end_ns) FROM memory_blocks),
                   (SELECT max(offset_bytes + bytes) FROM memory_blocks)
            FROM memory_blocks ORDER BY area_share DESC LIMIT 1
        """).fetchall()
    address, ts_ns, name, middle_ns, middle_bytes, first_ns, last_ns, top_bytes = block
    page = looking.open("run/demo/memory?device=cpu")
    canvas = page.get_by_role("img", name="Blocks: time × address")
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    left, bottom = 74, 24  # what the axes take, as in rectangles.tsx
    x = left + (middle_ns - first_ns) / (last_ns - first_ns) * (box["width"] - left)
    y = (1 - middle_bytes / top_bytes) * (box["height"] - bottom)
    canvas.hover(position={"x": x, "y": y})
    expect(page.locator(".rectangles-tip")).to_contain_text(name)
    canvas.click(position={"x": x, "y": y})
    expect(page).to_have_url(re.compile(f"block={address}%40{ts_ns}"))
    expect(page.locator("main")).to_contain_text(f"0x{address:x}")


def test_growth_from_step_to_step(looking: Visit):
    page = looking.open("run/demo/memory?device=process")
    expect(page.locator("main")).to_contain_text("Growth per step")
    steps = page.get_by_role("group", name="Growth per step").locator("tbody tr")
    assert steps.count() > 5


def test_without_allocations_it_says_how_to_record_them(looking: Visit):
    page = looking.open("run/two-ranks/memory")
    expect(page.locator("main")).to_contain_text("strobe run --profile-memory train.py")
