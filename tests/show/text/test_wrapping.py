import pytest
from rich.cells import cell_len

from strobe.show.text.wrapping import wrapped


def test_words_stay_whole():
    assert wrapped("set num_workers=2 on the DataLoader at train.py:69", 20) == [
        "set num_workers=2 on", "the DataLoader at", "train.py:69",
    ]  # fmt: skip


def test_lines_are_indented():
    assert wrapped("one two three", 8, "- ", "  ") == ["- one", "  two", "  three"]


def test_chinese_wraps_by_cells_and_no_line_begins_with_punctuation():
    lines = wrapped("训练有 62% 的时间在等待数据。请设置 num_workers=2，预计更快。", 16)
    assert all(cell_len(line) <= 17 for line in lines)
    assert "".join(lines).replace(" ", "").startswith("训练有62%的时间")
    assert not any(line[0] in "，。" for line in lines)


def test_a_word_longer_than_a_line_is_cut():
    assert wrapped("a " + "x" * 25, 10) == ["a", "x" * 10, "x" * 10, "x" * 5]


@pytest.mark.parametrize("text", ["", "  "])
def test_nothing_has_no_lines(text):
    assert wrapped(text, 10) == []
