"""Images logged with a key and a step: files whose names say both."""

import re
from pathlib import Path

from strobe.ingest.formats.event_files.tensor_rows import add_image
from strobe.ingest.formats.trackers.logged_values import LoggedValues
from strobe.ingest.importing.sources import files_below

# KEY+step+N+timestamp+MS+ID.png; % instead of + in older versions. Next to it is a smaller copy.
_NAME = re.compile(r"(.+)([+%])step\2(-?\d{1,18})\2timestamp\2(\d{1,15})\2[^+%]+\.\w+")


def take(artifacts: Path, values: LoggedValues) -> None:
    for path in files_below(artifacts / "images"):
        match = _NAME.fullmatch(path.name)
        if match is None:
            continue
        try:
            data = path.read_bytes()
        except OSError:
            values.say("images cannot be read", 1)
            continue
        add_image(
            values.metrics, data, (None, None, None), tag=match[1].replace("#", "/"), index=0,
            step=int(match[3]), ts_ns=int(match[4]) * 10**6 or None, source=values.source,
            attempt=1,
        )  # fmt: skip
