from strobe.web import tags


def test_tags_are_read_back(tmp_path):
    tags.write(tmp_path, ["a", "ü <b>"])
    assert tags.read(tmp_path) == ["a", "ü <b>"]


def test_a_file_of_tags_that_somebody_spoiled_is_no_tags(tmp_path):
    assert tags.read(tmp_path) == []
    for text in ("{", '{"a": 1}', "[1, 2]", '["' + "x" * 1000 + '"]'):
        (tmp_path / "tags.json").write_text(text)
        assert tags.read(tmp_path) == []
