"""`strobe export --format html`: the pages out of one file, from disk, with the network off."""

import base64
import json
import re

import numpy as np
import pytest
from playwright.sync_api import expect

from strobe.cli import main
from strobe.show.formats import html_report
from strobe.timeline.packet import unpacked
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
    expect(page.locator("main")).to_contain_text(re.compile("Training spends .* waiting for data"))
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
    expect(page.get_by_role("figure", name="Duration of calls over time")).to_be_visible()


def test_steps_that_were_chosen_do_not_pass_for_the_whole_run(reading):
    reading.refused = ["404"]
    page = reading.open("run/demo/operators?steps=2:5")
    expect(page.locator("main [role=alert]").first).to_contain_text("for the whole run only")


ASKED = """async (where) => {
    const ask = globalThis.strobeReport?.ask ?? ((where) => fetch(where));
    let response = await ask(where);
    while (response.status === 202) response = await ask(where);
    const bytes = new Uint8Array(await response.arrayBuffer());
    return btoa(bytes.reduce((text, byte) => text + String.fromCharCode(byte), ''));
}"""


@pytest.fixture(params=["demo", "gpu"])
def both(request, browser, runs, link, tmp_path):
    """Asks the server, and an exported file, for the same of a run's timeline."""
    name, path = request.param, tmp_path / "run.html"
    assert main(["export", str(runs / name), "--format", "html", "-o", str(path)]) == 0
    with visit(browser, link) as served, visit(browser, path.as_uri()) as file:
        page = served.open(f"run/{name}/timeline")
        page.wait_for_selector("html[data-timeline-painted]", state="attached")
        file.settled()

        def ask(question: str, read=json.loads):
            where = f"api/runs/{name}/timeline{question}"
            given = (page.evaluate(ASKED, where) for page in (served.page, file.page))
            return tuple(read(base64.b64decode(answer)) for answer in given)

        yield ask


def test_a_file_draws_its_timeline_as_the_server_does(both):
    served, held = both("")
    for name in ("begin_ns", "end_ns", "events", "names", "curves", "colours", "tracks",
                 "stretches"):  # fmt: skip
        assert held[name] == served[name], name
    span = held["end_ns"] - held["begin_ns"]
    for shift in (0, 8, 14, held["coarsest_shift"] - 1):
        question = f"/tiles?shift={shift}&first=0&last={min(4000, (span >> shift) + 1)}"
        (about, drawn), (own_about, own) = both(f"{question}&rows={rows_of(held)}", unpacked)
        assert own_about == about
        assert len(own["x"])
        for column, values in drawn.items():
            slack = 1 if column == "busy" else 0  # of a half, one rounds up and one to even
            assert np.abs(own[column].astype(int) - values.astype(int)).max() <= slack, column
    t0, t1 = held["begin_ns"] - 1000, held["end_ns"] + 1000
    curves = f"/curves?curves=0-{len(held['curves']) - 1}&t0={t0}&t1={t1}&buckets=300"
    if held["curves"]:
        (about, drawn), (own_about, own) = both(curves, unpacked)
        assert own_about == about and own.keys() == drawn.keys()
        assert all(np.array_equal(own[name], drawn[name]) for name in drawn)


def test_a_file_tells_of_its_timeline_what_the_server_tells(both):
    _, held = both("")
    begin, third = held["begin_ns"], (held["end_ns"] - held["begin_ns"]) // 3
    within = f"rows={rows_of(held)}&t0={begin + third}&t1={begin + 2 * third}"
    for question in (f"/area?{within}", f"/events?limit=5000&{within}", "/steps?steps=2:3",
                     "/names?first=0", "/search?q=aten%20mm"):  # fmt: skip
        served, own = both(question)
        served.pop("columns", None)
        assert in_any_order(own) == in_any_order(served), question
    for way in ("next", "previous"):
        hit, own = both(f"/search?q=aten%20mm&way={way}&from={begin + third}")
        assert own == hit
        details, own = both(f"/event/{hit['event']['id']}")
        assert in_any_order(own) == in_any_order(details)
        where = f"row={hit['event']['row']}&t0={hit['event']['ts_ns']}&t1={hit['event']['ts_ns']}"
        served, own = both(f"/at?{where}")
        assert own == served


def rows_of(meta) -> str:
    return f"0-{max(track['first_row'] + track['rows'] for track in meta['tracks']) - 1}"


def in_any_order(answer):
    """Of equally long ones, either may come first."""
    return {
        name: sorted(value, key=str) if isinstance(value, list) else value
        for name, value in answer.items()
    }


def test_of_a_long_timeline_the_densest_part_is_in_the_file(browser, runs, tmp_path, monkeypatch):
    monkeypatch.setattr(html_report, "MOST_EVENTS", 2000)
    path = tmp_path / "run.html"
    assert main(["export", str(runs / "demo"), "--format", "html", "-o", str(path)]) == 0
    with visit(browser, path.as_uri(), offline=True) as file:
        page = file.open("run/demo/timeline")
        page.wait_for_selector("html[data-timeline-painted]", state="attached")
        expect(page.locator(".tl-part")).to_contain_text("strobe show demo --web")
        expect(page.get_by_role("button", name="Perfetto")).to_have_count(0)
        page.get_by_role("searchbox").fill("aten::addmm")
        page.get_by_role("searchbox").press("Enter")
        expect(page.locator(".tl-facts h2")).to_have_text("aten::addmm")
