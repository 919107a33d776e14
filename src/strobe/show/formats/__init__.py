"""Files for other tools. To add a format: write its module, one line here."""

from pathlib import Path
from typing import Protocol

from strobe.show.formats import chrome_timeline, csv_folder, html_report, json_file, memory_flow
from strobe.store.run import Run


class Format(Protocol):
    """A module that writes a run as a file (or folder) that other tools read."""

    NAME: str
    DOC: str

    def write(self, run: Run, path: Path) -> None: ...


FORMATS: tuple[Format, ...] = (
    chrome_timeline,
    csv_folder,
    html_report,
    json_file,
    memory_flow,
)  # keep sorted
