"""The operators page: from a type to its operators, one's calls, its place on the timeline."""

import re

from playwright.sync_api import expect

import strobe
from strobe import units
from tests.browser.looking import Visit

PAGE = "run/demo/operators"


def column(page, label: str, number: int) -> list[str]:
    """The texts of a column of the table with this name; columns count from 1."""
    cells = page.get_by_role("group", name=label, exact=True).locator(
        f"tbody td:nth-child({number})"
    )
    return cells.all_inner_texts()


def rows(page) -> int:
    """How many rows the table says it has; of many only those in sight are there."""
    return int(page.get_by_role("status").first.inner_text().split()[0].replace(",", ""))


def test_from_a_type_to_its_operators_to_a_call_on_the_timeline(looking: Visit):
    page = looking.open(PAGE)
    first = page.get_by_role("figure", name=re.compile("Share of each type")).get_by_role("button")
    name = first.first.get_attribute("title")
    first.first.click()
    page = looking.settled()
    expect(page.get_by_role("tab", name="Operators")).to_have_attribute("aria-selected", "true")
    assert {*column(page, "Operators", 1)} == {name}
    expect(page.get_by_role("heading", name=f"Calls of {name}")).to_be_visible()
    page.get_by_role("link", name="Show on timeline").click()
    expect(page).to_have_url(re.compile(r"run/demo/timeline\?.*sel=\d+"))
    looking.settled()
    expect(page.locator("main")).to_contain_text(name)


def test_a_search_need_not_be_exact_and_its_address_brings_it_back(looking: Visit):
    page = looking.open(f"{PAGE}?tab=operators&ops.columns=name+forward_name")
    everything = rows(page)
    page.get_by_role("searchbox").fill("ADD mm")
    expect(page).to_have_url(re.compile(r"ops\.q="))
    page = looking.settled()
    names, forwards = (column(page, "Operators", number) for number in (1, 2))
    assert 0 < rows(page) < everything
    assert "aten::addmm" in names
    assert all("addmm" in f"{a} {b}".lower() for a, b in zip(names, forwards, strict=True))
    again = looking.open(looking.view)
    assert column(again, "Operators", 1) == names
    expect(again.get_by_role("searchbox")).to_have_value("ADD mm")


def test_columns_sort_and_filters_take_units(looking: Visit):
    page = looking.open(f"{PAGE}?tab=operators&ops.columns=name+calls+self_ns")
    page.get_by_role("button", name="Calls").click()
    page = looking.settled()
    calls = [int(text.replace(",", "")) for text in column(page, "Operators", 2)]
    assert calls == sorted(calls, reverse=True)
    everything = rows(page)
    page.get_by_role("button", name="+ Filter").click()
    page.get_by_label("Column", exact=True).select_option("Self")
    page.get_by_label("Value").fill("0.2 ms")
    page.get_by_role("button", name="Add", exact=True).click()
    page = looking.settled()
    expect(page).to_have_url(re.compile("ops.where=self_ns%3Age%3A200000"))
    expect(page.get_by_role("button", name=re.compile("Remove filter"))).to_be_visible()
    assert 0 < rows(page) < everything


def test_a_table_is_saved_as_it_is_seen(looking: Visit):
    page = looking.open(f"{PAGE}?tab=operators&ops.q=addmm")
    with page.expect_download() as saved:
        page.get_by_role("link", name="CSV").click()
    lines = saved.value.path().read_text().splitlines()
    assert lines[0].startswith("rank,name,type,scope,direction,calls,")
    assert len(lines) > 1
    assert all("addmm" in line for line in lines[1:])


def test_the_tree_of_the_model_is_entered_with_a_click(looking: Visit):
    page = looking.open(f"{PAGE}?tab=modules")
    page.get_by_role("button", name=re.compile(r"^Net\.features \(Sequential\)")).click()
    expect(page).to_have_url(re.compile("module=Net.features"))
    tree = page.get_by_role("group", name="Modules")
    expect(tree.get_by_role("button", name=re.compile("^Net.classify"))).to_have_count(0)
    expect(
        tree.get_by_role("button", name=re.compile(r"^Net\.features\.0 \(Conv2d\)"))
    ).to_be_visible()
    page.get_by_role("button", name="Operators of Net.features").click()
    page = looking.settled()
    assert all(scope.startswith("Net.features") for scope in column(page, "Operators", 2))


def test_steps_without_operators_name_those_that_have_them(looking: Visit):
    page = looking.open(f"{PAGE}?steps=23:48")
    note = page.locator(".note")
    expect(note).to_contain_text("was recorded in steps 23–48")
    expect(note).to_contain_text("Full recording covers steps 6–10")
    note.get_by_role("button", name="Steps 6–10").click()
    types = page.get_by_role("group", name="All types").locator("tbody tr")
    expect(types.first).to_contain_text("aten::")
    # The way back leads to the choice before.
    page.go_back()
    expect(note).to_contain_text("Full recording covers steps 6–10")


def test_a_name_without_room_keeps_its_end(looking: Visit):
    page = looking.open(f"{PAGE}?tab=operators&ops.columns=name+calls&ops.q=convolution_back")
    cell = page.get_by_role("group", name="Operators", exact=True).locator("td.mono").first
    assert cell.inner_text() == cell.get_attribute("title") == "aten::convolution_backward"
    head = cell.locator(".cut-head")
    head.evaluate("head => { head.closest('.cut').style.width = '150px' }")
    assert head.evaluate("head => head.scrollWidth > head.clientWidth")
    beyond = cell.evaluate("""td => {
        const cut = td.querySelector('.cut');
        const end = document.createRange();
        end.selectNodeContents(cut.lastChild);
        return end.getBoundingClientRect().right - cut.getBoundingClientRect().right;
    }""")
    assert beyond < 1


def test_kernels_of_a_device_and_why_there_are_none(looking: Visit):
    page = looking.open("run/gpu/operators?tab=kernels")
    assert column(page, "Device kernels", 1)
    page = looking.open(f"{PAGE}?tab=kernels")
    expect(page.locator("main")).to_contain_text("Nothing ran on a GPU or NPU in this run")
    expect(page.locator("main")).to_contain_text("strobe import")


def test_device_time_comes_first_where_there_is_a_device(looking: Visit, runs):
    with strobe.open_run(runs / "gpu") as run:
        query = "SELECT name, device_ns FROM operator_types ORDER BY device_ns DESC LIMIT 1"
        ((name, device_ns),) = run.sql(query).fetchall()
    page = looking.open("run/gpu/operators")
    table = page.get_by_role("group", name="All types")
    expect(table.locator("thead")).to_contain_text(re.compile("Device time.*Host self"))
    expect(table.locator("tbody tr").first).to_contain_text(name)
    expect(table.locator("tbody tr").first).to_contain_text(units.duration(device_ns))
    ring = page.get_by_role("figure", name="Share of each type")
    expect(ring.get_by_role("listitem").first).to_contain_text(units.duration(device_ns))
    # Without scrolling sideways.
    page = looking.open("run/gpu/operators?tab=operators")
    heading = page.get_by_role("button", name="Device time")
    box = heading.bounding_box()
    assert box["x"] + box["width"] < 1440
    # And where there is none, the host's time needs no other name.
    page = looking.open(PAGE)
    expect(page.get_by_role("group", name="All types").locator("thead")).not_to_contain_text("Host")
