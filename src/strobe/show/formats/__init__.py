"""Files for other tools. To add a format: write its module, one line here."""

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from strobe.messages import Message
from strobe.show.formats import (
    chrome_timeline,
    csv_folder,
    html_report,
    json_file,
    memory_flow,
    mindspore_summary,
    tensorboard,
)
from strobe.store.run import Run


class Format(Protocol):
    """A module that writes a run as a file (or folder) that other tools read."""

    NAME: str
    DOC: str

    def write(self, run: Run, path: Path) -> list[Message] | None:
        """What the format cannot hold, a sentence each."""


FORMATS: tuple[Format, ...] = (
    chrome_timeline,
    csv_folder,
    html_report,
    json_file,
    memory_flow,
    mindspore_summary,
    tensorboard,
)  # keep sorted

# Formats that are folders, and what may be in a folder that an export replaces.
FOLDERS: dict[str, Callable[[Path], bool]] = {
    each.NAME: each.is_part for each in (csv_folder, mindspore_summary, tensorboard)
}
