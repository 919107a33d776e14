from strobe.collect.metrics.segments import Segments, Series
from tests.collect.metrics.logs import Logged


def test_a_file_is_ready_before_it_is_needed(tmp_path):
    segments = Segments(lambda: None)
    segments.open(tmp_path)
    segments.prepare()
    series = Series(1, ("a",), "strobe.log")
    segments.append(series, 1, 5, [2.0])
    assert len(list(tmp_path.iterdir())) == 2
    assert not segments.is_behind
    assert Logged(tmp_path).points("a") == [(1, 2.0)]
    segments.close()
    assert len(list(tmp_path.iterdir())) == 1
    assert Logged(tmp_path).points("a") == [(1, 2.0)]


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
