import threading

import pytest

from strobe.collect.on_demand.folder_events import ANY_CHANGE, RENAMED_INTO, News


@pytest.fixture
def news():
    made = News()
    yield made
    made.close()


def test_a_change_ends_the_waiting(news, tmp_path):
    if not news.are_told:
        pytest.skip("no inotify here")
    news.watch(tmp_path, ANY_CHANGE)
    assert not news.wait(0.01)
    (tmp_path / "file").write_text("x")
    assert news.wait(10)


def test_only_what_is_watched_for_does(news, tmp_path):
    if not news.are_told:
        pytest.skip("no inotify here")
    news.watch(tmp_path, RENAMED_INTO)
    (tmp_path / ".beside").write_text("x")
    assert not news.wait(0.01)
    (tmp_path / ".beside").rename(tmp_path / "file")
    assert news.wait(10)
    news.forget(tmp_path)
    news.wait(0.01)  # the kernel says that it forgot
    (tmp_path / "file").rename(tmp_path / "other")
    assert not news.wait(0.01)


def test_another_thread_can_wake_it(news):
    threading.Timer(0.05, news.wake).start()
    assert news.wait(30)


def test_a_folder_that_is_not_there_is_not_watched(news, tmp_path):
    news.watch(tmp_path / "absent", ANY_CHANGE)
    assert not news.wait(0.01)
