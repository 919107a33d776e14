from strobe.advise import advise
from strobe.advise.training import Training
from tests.advise.drawings import no_core, same, steps
from tests.helpers import make_run


def judged(run):
    return Training(run).steps["step"].tolist()


def test_warm_up_is_left_out_where_enough_remain(tmp_path):
    assert judged(make_run(tmp_path / "a", steps(*same({"forward": 5}, 12)))) == [*range(4, 13)]
    assert judged(make_run(tmp_path / "b", steps(*same({"forward": 5}, 8)))) == [*range(1, 9)]


def test_steps_slowed_by_full_recording_are_left_out_where_enough_remain(tmp_path):
    drawing = steps(*same({"forward": 5}, 12), window=(5, 7))
    assert judged(make_run(tmp_path / "a", drawing)) == [4, 8, 9, 10, 11, 12]
    drawing = steps(*same({"forward": 5}, 12), window=(4, 11))
    assert judged(make_run(tmp_path / "b", drawing)) == [*range(4, 13)]


def test_the_time_of_the_recorder_is_not_the_users(tmp_path):
    training = Training(make_run(tmp_path, steps(*same({"forward": 5, "recorder": 7}, 20))))
    assert training.total_ns == 17 * 5_000 and training.typical_ns == 5_000


def test_a_place_in_the_users_code(tmp_path):
    extra = {"places": {"rank": [0], "what": ["data loader"], "number": [1],
                        "file": ["/job/train.py"], "line": [31]}}  # fmt: skip
    training = Training(make_run(tmp_path, steps({"forward": 5}), extra))
    assert str(training.place("data loader")) == "train.py:31"
    assert training.place("backward") is None


def test_time_without_a_core_is_known_for_each_step(tmp_path):
    drawing = steps(*same({"forward": 10}, 6))
    extra = no_core((0, 100), (10, 100), (20, 104), (40, 104), (60, 114))
    training = Training(make_run(tmp_path, drawing, extra))
    assert training.no_core_ns.tolist() == [0, 4000, 0, 0, 5000, 5000]


def test_others_take_no_more_of_it_than_they_computed(tmp_path):
    drawing = steps(*same({"forward": 10}, 6))
    points = no_core((0, 0), (60, 30))["counters"]
    # Of 2 cores that are busy all the time this process has one and a half, then both.
    looks = [(0, "process_cpu_ns_total", 0), (30_000, "process_cpu_ns_total", 45_000),
             (30_000, "cores_busy_milli", 2000), (60_000, "process_cpu_ns_total", 105_000),
             (60_000, "cores_busy_milli", 2000)]  # fmt: skip
    counters = {
        "rank": [*points["rank"], *[0] * len(looks)],
        "ts_ns": [*points["ts_ns"], *(at for at, _, _ in looks)],
        "name": [*points["name"], *(name for _, name, _ in looks)],
        "value": [*points["value"], *(value for _, _, value in looks)],
    }
    training = Training(make_run(tmp_path, drawing, {"counters": counters}))
    begins = training.steps["ts_ns"]
    others = training.others_between(0, begins, begins + training.steps["dur_ns"])
    assert others.tolist() == [5000] * 3 + [0] * 3
    # Whoever had the cores, a step does not take longer by what it does.
    assert training.no_core_ns.tolist() == [5000] * 6


def test_where_it_is_unknown_whose_time_it_was_there_is_none(tmp_path):
    drawing = steps(*same({"forward": 10}, 6))
    without = Training(make_run(tmp_path / "a", drawing))
    two_threads = no_core((0, 100), (10, 50), (20, 104))
    mixed = Training(make_run(tmp_path / "b", drawing, two_threads))
    assert without.no_core_ns.tolist() == mixed.no_core_ns.tolist() == [0] * 6


def test_the_counters_of_a_rank_are_its_own(tmp_path):
    rows = [(2, 30, 7.0), (0, 20, 2.0), (0, 10, 1.0), (2, 40, 8.0)]
    rank, ts_ns, value = map(list, zip(*rows, strict=True))
    extra = {"counters": {"rank": rank, "ts_ns": ts_ns, "name": ["rss"] * 4, "value": value}}
    training = Training(make_run(tmp_path, steps({"forward": 5}), extra))
    told = {of: [c.tolist() for c in training.counter("rss", of)] for of in (0, 1, 2)}
    assert told == {0: [[10, 20], [1.0, 2.0]], 1: [[], []], 2: [[30, 40], [7.0, 8.0]]}
    assert [c.tolist() for c in training.counter("nobody tells it", 0)] == [[], []]


def test_the_questions_of_the_rules_do_not_grow_with_the_ranks(tmp_path, monkeypatch):
    asked = {}
    for ranks in (2, 12):
        drawings = [steps(*same({"forward": 10 + rank}, 20), rank=rank) for rank in range(ranks)]
        run = make_run(tmp_path / str(ranks), "".join(drawings))
        queries = []
        ask = run.sql
        monkeypatch.setattr(run, "sql", lambda *a, ask=ask, q=queries: (q.append(a[0]), ask(*a))[1])
        advise(run)
        asked[ranks] = len([query for query in queries if "counters" in query])
    assert asked[2] == asked[12]
