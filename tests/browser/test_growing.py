"""Pages of a training that still runs: what is new appears by itself, and nothing else moves."""

import subprocess
import sys

import pytest
from playwright.sync_api import expect

from tests.browser.looking import PATIENCE_MS
from tests.browser.test_timeline import PAINTED, query

# As many steps as each line of its input says. Every sixth lies in a window.
TRAIN = """
import sys, torch
torch.set_num_threads(1)
net = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 64))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for line in sys.stdin:
    for _ in range(int(line)):
        optimizer.zero_grad()
        net(torch.randn(16, 64)).square().mean().backward()
        optimizer.step()
    print(line, flush=True)
"""


class Training:
    """A process that trains as far as it is told."""

    def __init__(self, process: subprocess.Popen) -> None:
        self._process = process

    def train(self, steps: int) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(f"{steps}\n")
        self._process.stdin.flush()
        while self._process.stdout.readline().strip() != str(steps):
            assert self._process.poll() is None

    def end(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(PATIENCE_MS / 1000)


@pytest.fixture
def training(tmp_path):
    (tmp_path / "train.py").write_text(TRAIN)
    base = tmp_path / "base"
    base.mkdir()
    record = ["run", "-q", "-o", str(base / "now"), "--every", "6:1"]
    command = [sys.executable, "-m", "strobe", *record, "train.py"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, cwd=tmp_path, **pipes) as process:
        yield Training(process)
        process.stdin.close()


@pytest.fixture
def growing(training, looking_at, tmp_path):
    training.train(20)
    with looking_at(tmp_path / "base") as looking:
        yield looking


def end_ns(page) -> int:
    return page.evaluate("strobeTimeline.state.meta.end_ns")


def grows(page, before: int) -> None:
    page.wait_for_function(
        "before => strobeTimeline.state.meta.end_ns > before", arg=before, timeout=PATIENCE_MS
    )


def test_the_open_timeline_takes_up_what_is_recorded(growing, training):
    page = growing.open("run/now/timeline")
    page.wait_for_selector(PAINTED, state="attached")
    expect(page.locator(".tl-live")).to_be_visible()
    whole = end_ns(page)
    training.train(8)
    grows(page, whole)  # seen as a whole, it stays whole
    view = page.evaluate("strobeTimeline.state.view.value")
    assert view["t1"] > end_ns(page) and "t1" not in query(page)

    # An event is looked at, far from the end: the view, the zoom and the event stay.
    page.get_by_role("searchbox").fill("aten::mm")
    page.get_by_role("searchbox").press("Enter")
    expect(page.locator(".tl-facts h2")).to_have_text("aten::mm")
    page.keyboard.press("Escape")
    page.locator(".tl-canvas").first.focus()
    page.keyboard.press("f")
    page.wait_for_url(lambda url: "t0=" in url)
    start = page.locator(".tl-facts dl").inner_text()
    before, place = end_ns(page), query(page)
    training.train(14)
    grows(page, before)
    expect(page.locator(".tl-new")).to_be_visible()
    assert (query(page)["t0"], query(page)["t1"]) == (place["t0"], place["t1"])
    expect(page.locator(".tl-facts h2")).to_have_text("aten::mm")
    # The clock is fitted anew as the run goes on, so that moments shift by less than is shown.
    assert page.locator(".tl-facts dl").inner_text().split("ID")[0] == start.split("ID")[0]

    # At the end, and with nothing chosen, one stays at the end.
    page.locator(".tl-canvas").first.focus()
    page.keyboard.press("Escape")
    page.locator(".tl-new").click()
    expect(page.locator(".tl-new")).to_have_count(0)
    span = page.locator(".tl-span").inner_text()
    before = end_ns(page)
    training.train(8)
    grows(page, before)
    view = page.evaluate("strobeTimeline.state.view.value")
    assert view["t0"] < end_ns(page) < view["t1"]
    expect(page.locator(".tl-span")).to_have_text(span)

    training.end()
    expect(page.locator(".tl-live")).to_have_count(0)
    assert page.locator("[role=alert]").count() == 0


def test_open_tables_take_up_new_rows_and_stay_sorted_and_scrolled(growing, training):
    page = growing.open("run/now/steps?table.order=step&table.desc=0")
    table = page.locator("section[aria-label='All steps']")
    count, scroller = table.locator(".table-count"), table.locator(".table-scroller")
    expect(count).to_have_text("20 rows")
    scroller.evaluate("box => box.scrollTo({ top: 100 })")
    training.train(10)
    # The last step of a live run may still change, and is told all the same.
    expect(count).to_have_text("30 rows", timeout=PATIENCE_MS)
    assert scroller.evaluate("box => box.scrollTop") == 100
    assert "table.order=step" in page.url

    page.goto(page.url.replace("/steps", "/operators").partition("?")[0])
    growing.settled()
    calls = page.locator("tr", has_text="mm").first
    before = calls.inner_text()
    training.train(12)
    expect(calls).not_to_have_text(before, timeout=PATIENCE_MS)
