"""Tensors as files of numpy, where MindSpore puts them."""

from typing import Any
from urllib.parse import quote

from strobe.callbacks.summary.destination import Destination
from strobe.collect.metrics.log import Job
from strobe.collect.notices import notice


def exported(made: tuple[Job, int], to: Destination, folder: str) -> tuple[Job, int]:
    """The job, which also writes `FOLDER/tensor/TAG_STEP.npy` below the summary's folder."""
    job, size = made

    def write() -> tuple[dict[str, Any], tuple[bytes, str] | None]:
        record, file = job()
        home = to.files
        if file is not None and home is not None:
            name = f"{quote(record['tag'], safe='')}_{record['step']}.npy"
            path = home / folder / "tensor" / name
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(file[0])
            except OSError as error:
                reason = error.strerror or error
                to.warn(notice("summary-not-exported", path=path, reason=reason))
        return record, file

    return write, size
