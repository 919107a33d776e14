import os
import threading

import pytest

from strobe.collect.on_demand import files
from strobe.collect.on_demand.files import Unreadable, parse, read_object, read_text, replace
from tests.collect.jobs import until


def test_what_is_written_is_read(tmp_path):
    replace(tmp_path / "a.json", {"name": "é"})
    assert read_object(tmp_path / "a.json") == {"name": "é"}
    assert [path.name for path in tmp_path.iterdir()] == ["a.json"]


def test_of_many_who_write_once_one_succeeds(tmp_path):
    barrier = threading.Barrier(8)
    successes = []

    def write(number):
        barrier.wait()
        if files.write_once(tmp_path / "once.json", {"by": number}):
            successes.append(number)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(successes) == 1
    assert read_object(tmp_path / "once.json") == {"by": successes[0]}
    assert [path.name for path in tmp_path.iterdir()] == ["once.json"]


def test_writing_once_works_without_hard_links(tmp_path, monkeypatch):
    def no_links(*args):
        raise PermissionError(1, "no links here")

    monkeypatch.setattr(os, "link", no_links)
    assert files.write_once(tmp_path / "a.json", {"n": 1})
    assert not files.write_once(tmp_path / "a.json", {"n": 2})
    assert read_object(tmp_path / "a.json") == {"n": 1}


def test_what_is_no_plain_file_is_refused_without_waiting(tmp_path):
    target = tmp_path / "target"
    target.write_text("{}")
    (tmp_path / "link").symlink_to(target)
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "huge").write_bytes(b" " * 100_000)
    (tmp_path / "latin").write_bytes(b'{"a": "\xe9"}')
    said = {}
    for name in ("link", "folder", "pipe", "huge", "latin", "absent"):
        with pytest.raises(Unreadable) as error:
            read_text(tmp_path / name)
        said[name] = str(error.value)
    assert said["link"].startswith("is a symbolic link")
    assert said["folder"] == "is a folder"
    assert said["pipe"] == "is not a regular file"
    assert said["huge"] == "is larger than 64 kB"
    assert said["latin"] == "is not UTF-8 text (byte 7)"
    assert said["absent"] == "does not exist"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is empty"),
        ('{"a": 1', "is not valid JSON, or not completely written"),
        ("[1]", "is not a JSON object"),
        ("null", "is not a JSON object"),
        ('{"a": NaN}', "NaN is not a JSON number"),
        ('{"a": 1, "a": 2}', "the key 'a' occurs twice"),
        ("[" * 100_000, "is not valid JSON"),
        ('{"a": ' + "9" * 5000 + "}", "is not valid JSON"),
    ],
)
def test_what_is_no_object_is_told(text, said):
    with pytest.raises(Unreadable, match=said[:20].replace("(", ".")) as error:
        parse(text)
    assert said in str(error.value)


def test_waiting_has_an_end():
    with pytest.raises(AssertionError):
        until(lambda: False, 0.01)
