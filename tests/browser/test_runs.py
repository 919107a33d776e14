"""The list of runs."""

import pytest
from playwright.sync_api import expect

from strobe.web import instances, starting
from tests.browser.looking import visit
from tests.web.served import HOSTILE, write_run


def row(seen, name):
    return seen.get_by_role("row").filter(has=seen.get_by_role("link", name=name, exact=True))


def test_each_run_has_its_state_its_step_and_its_top_finding(looking):
    seen = looking.open("runs")
    demo = row(seen, "demo")
    expect(demo).to_contain_text("finished")
    expect(demo).to_contain_text("for data", timeout=90_000)  # judged in the background
    expect(demo).to_contain_text("×")
    expect(row(seen, "gpu")).to_contain_text("imported")
    broken = row(seen, "broken")
    expect(broken).to_contain_text("unreadable")
    expect(broken).to_contain_text("cannot be read")
    expect(row(seen, HOSTILE)).to_be_visible()


def test_search_and_order_are_in_the_address(looking):
    seen = looking.open("runs")
    seen.get_by_label("Search names, tags, findings").fill("unreadable cannot")
    expect(seen.locator("tbody tr")).to_have_count(0)
    seen.get_by_label("Search names, tags, findings").fill("rank")
    expect(seen.locator("tbody tr")).to_have_count(1)
    seen.get_by_label("Search names, tags, findings").fill("")
    seen.get_by_role("button", name="Run", exact=True).click()
    names = seen.locator("tbody .run-name").all_inner_texts()
    assert names == sorted(names, key=str.lower)
    assert "runs.sort=name" in looking.view
    again = looking.open(looking.view)
    assert again.locator("tbody .run-name").all_inner_texts() == names


def test_two_that_are_chosen_are_compared(looking):
    seen = looking.open("runs")
    compare = seen.get_by_role("button", name="Compare", exact=True)
    expect(compare).to_be_disabled()
    seen.get_by_label("Select demo to compare").check()
    seen.get_by_label("Select fixed to compare").check()
    compare.click()
    expect(seen.get_by_role("heading", level=1, name="Compare")).to_be_visible()
    assert looking.view == "compare?a=demo&b=fixed"
    looking.settled()


@pytest.fixture
def own(browser, tmp_path, monkeypatch):
    """A visit to a server over two runs of its own, which may be changed."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    for name in ("first", "second"):
        write_run(tmp_path / "base" / name, steps=5)
    port = starting.free_port("127.0.0.1")
    instance = starting.start(tmp_path / "base", "127.0.0.1", port)
    with visit(browser, instance.link) as looking:
        yield looking, tmp_path / "base"
    instances.end(instance)


def test_rename_tag_and_delete_only_when_asked(own):
    looking, base = own
    seen = looking.open("runs")
    seen.get_by_role("button", name="Edit first").click()
    seen.get_by_label("New name").fill("renamed")
    seen.get_by_role("button", name="Rename").click()
    expect(row(seen, "renamed")).to_be_visible()
    assert sorted(path.name for path in base.iterdir()) == ["renamed", "second"]

    seen.get_by_role("button", name="Edit second").click()
    seen.get_by_label("Tags: separated by commas").fill("baseline, slow")
    seen.get_by_role("button", name="Save").click()
    expect(row(seen, "second")).to_contain_text("baseline")

    seen.get_by_role("button", name="Edit renamed").click()
    assert looking.barriers() == []
    delete = seen.get_by_role("button", name="Delete")
    expect(delete).to_be_disabled()
    confirm = seen.get_by_label("This deletes everything that Strobe recorded")
    confirm.fill("rename")
    expect(delete).to_be_disabled()
    confirm.fill("renamed")
    delete.click()
    expect(row(seen, "renamed")).to_have_count(0)
    assert [path.name for path in base.iterdir()] == ["second"]


def test_what_cannot_be_done_is_told_in_the_dialog(own):
    looking, base = own
    looking.refused = ["400", "409", "422"]
    seen = looking.open("runs")
    seen.get_by_role("button", name="Edit first").click()
    seen.get_by_label("New name").fill("../outside")
    seen.get_by_role("button", name="Rename").click()
    expect(seen.get_by_role("dialog").get_by_role("alert")).to_contain_text("name")
    assert (base / "first").exists()


def test_a_new_run_appears_by_itself_and_an_empty_folder_says_how_to_begin(own):
    looking, base = own
    seen = looking.open("runs")
    write_run(base / "third", steps=3)
    expect(row(seen, "third")).to_be_visible(timeout=60_000)
    for run in list(base.iterdir()):  # at once: the server may be writing into one of them
        run.rename(base.parent / run.name)
    expect(seen.locator("main")).to_contain_text("strobe run train.py", timeout=60_000)
    expect(seen.locator("main")).to_contain_text("No runs in")
