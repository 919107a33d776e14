"""The link to the pages of one run: on a server that shows it already, or on a new one."""

import os
import platform
import sys
import webbrowser
from pathlib import Path
from urllib.parse import quote

from strobe.web import instances, starting
from strobe.web.base_dir import MOST_DEEP
from strobe.web.instances import Instance

LOOPBACK = "127.0.0.1"


def link_to(run: Path) -> tuple[str, Instance]:
    """With the token, so that it opens anywhere on this machine."""
    folder = run.resolve()
    instance = _server_of(folder)
    if instance is None:
        port = starting.free_port(LOOPBACK)
        instance = starting.start(folder.parent, LOOPBACK, port)
    name = folder.relative_to(instance.base_dir).as_posix()
    return f"{instance.link}#/run/{quote(name, safe='')}/overview", instance


def open_in_browser(link: str) -> bool:
    """Where there is a screen; in a terminal a browser of text would take it over."""
    has_screen = sys.platform == "darwin" or any(
        os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY")
    )
    return has_screen and webbrowser.open(link)


def _server_of(run: Path) -> Instance | None:
    """One that runs here and shows a folder around the run."""
    for instance in instances.all_noted():
        base = Path(instance.base_dir)
        if instance.machine != platform.node() or not run.is_relative_to(base):
            continue
        parts = run.relative_to(base).parts
        is_shown = 1 <= len(parts) <= MOST_DEEP and not any(p.startswith(".") for p in parts)
        if is_shown and instance.state == "running":
            return instance
    return None
