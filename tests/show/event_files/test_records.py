import numpy as np
import pytest

from strobe.ingest.formats.event_files.records import pieces
from strobe.show.event_files import columns
from strobe.show.event_files.records import EventFile


def read(path):
    problems = []
    found = [
        piece.block.text(start, end)
        for piece in pieces(path, lambda what, count: problems.append(what))
        for start, end in zip(piece.starts.tolist(), piece.ends.tolist(), strict=True)
    ]
    return found, problems


def test_records_are_read_back_in_order_with_sound_checksums(tmp_path):
    large = bytes(range(256)) * 40_000  # more than the buffer
    tags = columns.Texts(["a", "bb"])
    with EventFile(tmp_path / "f") as file:
        file.add(b"first")
        file.add(b"")
        file.add_columns(columns.texts(1, tags, np.array([0, 1, 1])), 3)
        file.add(large)
        file.add(b"last")
    expected = [b"first", b"", b"\n\x01a", b"\n\x02bb", b"\n\x02bb", large, b"last"]
    assert read(tmp_path / "f") == (expected, [])


def test_a_fault_while_writing_leaves_no_open_file(tmp_path):
    with pytest.raises(ZeroDivisionError), EventFile(tmp_path / "f") as file:
        file.add(b"first")
        _ = 1 / 0
    assert (tmp_path / "f").read_bytes() == b""
