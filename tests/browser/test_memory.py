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


def test_memory_that_an_allocator_counted_has_no_blocks_to_show(looking: Visit):
    def uncounted(route):
        answer = route.fetch()
        body = answer.json()
        names = [column["name"] for column in body["columns"]]
        for row in body["rows"]:
            for name in ("allocations", "allocated_bytes", "left_bytes"):
                row[names.index(name)] = None
        route.fulfill(response=answer, json=body)

    looking.page.route(re.compile("/table/memory(\\?|$)"), uncounted)
    page = looking.open("run/demo/memory?device=cpu")
    expect(page.locator("main")).to_contain_text("as counted by the allocator")
    expect(page.locator("main")).to_contain_text("it is unknown what allocated this memory")
    expect(page.locator("section[aria-label='Memory at the peak']")).to_have_count(0)


def test_memory_that_only_counters_know_is_not_denied(looking: Visit):
    """Old traces of PyTorch have the memory of a device as a counter, without allocations."""

    def nothing(route):
        answer = route.fetch()
        route.fulfill(response=answer, json={**answer.json(), "rows": [], "total": 0})

    def counted(route):
        names = ("rank", "name", "samples", "max")
        columns = [{"name": name, "type": "str", "doc": ""} for name in names]
        rows = [[0, "cuda:0 memory_bytes", 9, 3 * 2**30]]
        answer = {"ok": True, "table": "counters", "columns": columns, "rows": rows, "total": 1}
        route.fulfill(json=answer)

    looking.page.route("**/table/memory-curve*", nothing)
    looking.page.route("**/table/counter-statistics*", counted)
    page = looking.open("run/gpu/memory")
    note = page.locator(".note")
    expect(note).to_contain_text("only counters: cuda:0 memory_bytes (3.00 GiB)")
    expect(note.get_by_role("link", name="Show on timeline")).to_be_visible()
