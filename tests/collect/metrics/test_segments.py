from strobe.collect.metrics.segments import Segments, Series
from tests.collect.metrics.logs import Logged


def test_a_file_is_ready_before_it_is_needed(tmp_path, monkeypatch):
    """After the first, which is all that most ranks need."""
    monkeypatch.setattr("strobe.collect.metrics.segments._FIRST_BYTES", 8192)
    segments = Segments(lambda: None)
    segments.open(tmp_path)
    segments.prepare()
    series = Series(1, ("a",), "strobe.log")
    segments.append(series, 1, 5, [2.0])
    assert [path.name for path in tmp_path.iterdir()] == ["metrics-0001.bin"]
    assert not segments.is_behind
    assert Logged(tmp_path).points("a") == [(1, 2.0)]
    for step in range(2, 200):
        segments.append(series, step, step + 5, [2.0])
    assert segments.is_behind
    segments.prepare()
    assert not segments.is_behind
    assert len(list(tmp_path.iterdir())) == 3
    segments.close()
    assert len(list(tmp_path.iterdir())) == 2
    assert [step for step, _ in Logged(tmp_path).points("a")] == [*range(1, 200)]


def test_a_row_that_is_not_finished_is_not_read(tmp_path):
    segments = Segments(lambda: None)
    segments.open(tmp_path)
    segments.prepare()
    series = Series(1, ("a",), "strobe.log")
    segments.append(series, 1, 5, [2.0])
    segments.append(series, 2, 6, [3.0])
    segments._current.words[segments._current.place - series.words] = 0
    assert Logged(tmp_path).points("a") == [(1, 2.0)]
    assert Logged(tmp_path).problems == []


def test_each_file_can_be_read_without_the_others(tmp_path, monkeypatch):
    monkeypatch.setattr("strobe.collect.metrics.segments._FIRST_BYTES", 8192)
    monkeypatch.setattr("strobe.collect.metrics.segments._MOST_BYTES", 8192)
    segments = Segments(lambda: None)
    segments.open(tmp_path)
    series = Series(1, ("a",), "strobe.log")
    for step in range(300):
        segments.prepare()
        segments.append(series, step, step + 1, [step])
    first, *_ = sorted(tmp_path.glob("metrics-*.bin"))
    first.unlink()
    points = Logged(tmp_path).points("a")
    assert points == [(n, float(n)) for n in range(points[0][0], 300)]
    assert 0 < points[0][0] < 200
