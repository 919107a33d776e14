import numpy as np
import pytest

from strobe.errors import UnreadableTrace
from strobe.store import array_file

ARRAYS = {"a": np.arange(10), "empty": np.zeros(0, dtype=np.uint8), "b": np.array([1.5, 2.5])}


def test_arrays_come_back_as_they_were(tmp_path):
    path = tmp_path / "file"
    array_file.write(path, {"content": "x"}, ARRAYS)
    about, arrays = array_file.read(path)
    assert about == {"content": "x"} == array_file.read_about(path)
    for name, array in ARRAYS.items():
        assert arrays[name].dtype == array.dtype and arrays[name].tolist() == array.tolist()
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


def test_a_file_that_is_not_ours_is_told_apart(tmp_path):
    path = tmp_path / "file"
    assert array_file.read_about(path) is None
    magic = b"strobe arrays 1\n"
    for content in (b"", b"something else entirely", magic + b"\xff" * 20, magic):
        path.write_bytes(content)
        assert array_file.read_about(path) is None
        with pytest.raises(UnreadableTrace):
            array_file.read(path)


def test_nothing_is_left_of_a_file_that_could_not_be_written(tmp_path):
    class Broken(dict):
        def items(self):
            raise OSError("no room")

    with pytest.raises(OSError, match="no room"):
        array_file.write(tmp_path / "file", {}, Broken(ARRAYS))
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_cut_is_damaged(tmp_path):
    path = tmp_path / "file"
    array_file.write(path, {"content": "x"}, ARRAYS)
    path.write_bytes(path.read_bytes()[:-3])
    assert array_file.read_about(path) is None


def test_facts_may_be_filled_in_while_arrays_are_written(tmp_path):
    about = {}
    with array_file.writing(tmp_path / "file", about) as add:
        for number in range(3):
            add(str(number), np.full(number, number))
            about["arrays"] = number + 1
    about, arrays = array_file.read(tmp_path / "file")
    assert about == {"arrays": 3}
    assert {name: array.tolist() for name, array in arrays.items()} == {
        "0": [], "1": [1], "2": [2, 2]
    }  # fmt: skip
