"""Check the web pages of ui/: their format, their types, and the unit tests of their logic.

    python scripts/check_ui.py

Installs the packages of ui/ first. Without Node, or without packages and a way to download them,
nothing is checked, and the reason is printed.
"""

import subprocess
import sys

import build_ui

# `npm run check` is Prettier and the compiler of TypeScript; `npm test` is Vitest.
COMMANDS = (("run", "--silent", "check"), ("run", "--silent", "test"))


def main() -> int:
    ui = build_ui.ROOT / "ui"
    node = build_ui.find_node()
    if node is None:
        return _skip(build_ui.NO_NODE)
    try:
        build_ui.install(ui, node)
    except build_ui.Unavailable as reason:
        return _skip(str(reason))
    for words in COMMANDS:
        try:
            node.run(*words, ui=ui)
        except subprocess.CalledProcessError as error:
            return error.returncode
    return 0


def _skip(reason: str) -> int:
    sys.stdout.write(f"The checks of the web pages are skipped: {reason}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
