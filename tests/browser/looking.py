"""A browser that looks at the pages, and notes what no page may do."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import resources
from typing import Any

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, Request, expect

CHROMIUM_VARIABLE = "STROBE_CHROMIUM"
_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
# A page that is still reading after so long is a page that hangs, however busy the machine.
PATIENCE_MS = 90_000
# The violations that shut people out; lesser ones are matters of taste.
_GRAVE = ("serious", "critical")


def chromium() -> str:
    """Where the browser is; skips the test where there is none."""
    found = os.environ.get(CHROMIUM_VARIABLE) or next(filter(None, map(shutil.which, _NAMES)), None)
    if not found:
        pytest.skip(f"no Chromium: apt-get install chromium, or set {CHROMIUM_VARIABLE}")
    return found


class Visit:
    """One tab, let in by the server's link. Every page it opens is watched."""

    def __init__(self, page: Page, link: str) -> None:
        self.page = page
        self.address = link.split("?")[0]
        self.refused: list[str] = []
        self._complaints: list[str] = []
        page.set_default_timeout(PATIENCE_MS)
        page.on("console", self._note_console)
        page.on("pageerror", lambda error: self._complaints.append(f"exception: {error}"))
        page.on("request", self._note_request)
        page.on("dialog", lambda dialog: self._complaints.append(f"dialog: {dialog.message}"))
        page.goto(link)

    def open(self, view: str) -> Page:
        """The view after the #, once all of it has been read."""
        # From another document, so that it comes from the address alone.
        self.page.goto("about:blank")
        self.page.goto(f"{self.address}#/{view}")
        return self.settled()

    def settled(self) -> Page:
        expect(self.page.locator("main h1, main [role=alert]").first).to_be_attached(
            timeout=PATIENCE_MS
        )
        expect(self.page.locator("main progress")).to_have_count(0, timeout=PATIENCE_MS)
        expect(self.page.locator("main [aria-busy=true]")).to_have_count(0, timeout=PATIENCE_MS)
        return self.page

    @property
    def view(self) -> str:
        return self.page.url.partition("#/")[2]

    def barriers(self) -> list[str]:
        """What axe finds that shuts people out, with the place."""
        answer = self.page.evaluate("() => window.axe.run(document, {resultTypes: ['violations']})")
        return [
            f"{found['id']}: {found['help']}: {[node['html'][:160] for node in found['nodes']][:3]}"
            for found in answer["violations"]
            if found["impact"] in _GRAVE
        ]

    def complaints(self) -> list[str]:
        """What went wrong unseen. Answers that say no are expected where a test says so."""
        return [text for text in self._complaints if not any(word in text for word in self.refused)]

    def _note_console(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self._complaints.append(f"{message.type}: {message.text} ({message.location['url']})")

    def _note_request(self, request: Request) -> None:
        is_own = request.url.startswith((self.address, "blob:", "data:", "about:"))
        if not is_own:
            self._complaints.append(f"outside: {request.url}")


@contextmanager
def visit(browser: Browser, link: str, **options: Any) -> Iterator[Visit]:
    """A visit with a memory of its own; fails if a page complained or asked the world outside."""
    context = browser.new_context(
        **{"viewport": {"width": 1440, "height": 900}, "locale": "en-GB", **options}
    )
    # Put in by the browser itself, so that the pages' policy, which forbids it, stays in force.
    axe = resources.files("axe_playwright_python") / "axe.min.js"
    context.add_init_script(axe.read_text(encoding="utf-8"))
    try:
        looking = Visit(context.new_page(), link)
        yield looking
        complaints = looking.complaints()
        assert not complaints, complaints
    finally:
        context.close()
