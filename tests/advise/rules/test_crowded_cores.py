import pytest

from strobe.advise import advise
from strobe.advise.data.queue_pipeline import Busiest
from strobe.advise.finding import CannotTell, Clear, Finding
from strobe.advise.rules import crowded_cores
from strobe.advise.training import Training
from tests.advise.drawings import same, steps
from tests.helpers import make_run

# Twenty steps of 100 ms: two seconds.
STEPS = steps(*same({"forward": 100_000}, 20))
LAST_NS = 2_000_000_000

ON_DEVICE = "Training runs, or may run, on a device instead of the CPU cores."


def judged(tmp_path, *, drawing=STEPS, tables=None, busy=2.0, **cores):
    """Each role, or role_lacked, had so many cores all the time; of two."""
    rows = [("cores_usable_milli", 0, 2000), ("cores_busy_milli", LAST_NS, busy * 1000)]
    for name, value in cores.items():
        role, _, lacked = name.partition("_lacked")
        role = "child_processes" if role == "children" else f"{role}_threads"
        counter = f"{role}_no_core_ns_total" if name.endswith("_lacked") else f"{role}_cpu_ns_total"
        rows += [(counter, 0, 0), (counter, LAST_NS, value * LAST_NS)]
    own = sum(v for n, v in cores.items() if not n.endswith("_lacked") and n != "children")
    rows += [("process_cpu_ns_total", at, own * at) for at in (0, LAST_NS)]
    names, ts_ns, values = zip(*rows, strict=True)
    extra = {"counters": {
        "rank": [0] * len(rows), "ts_ns": list(ts_ns), "name": list(names),
        "value": [int(value) for value in values],
    }}  # fmt: skip
    return crowded_cores.check(Training(make_run(tmp_path, drawing, extra | (tables or {}))))


def test_cores_that_training_was_missing_and_background_threads_used_are_lost(tmp_path):
    # With the 0.5 cores that it lacked, training has 1.5 instead of 1: two thirds of the time.
    verdict = judged(tmp_path, training=1.0, training_lacked=0.5, python=1.0)
    assert isinstance(verdict, Finding) and not verdict.is_certain
    assert verdict.share == pytest.approx(1 / 3)
    assert verdict.expected_speedup == pytest.approx(1.5)
    assert verdict.title == (
        "Background threads use 1.0 cores that training needs, which costs about 33% of step time."
    )
    assert verdict.why == (
        "Training used 1.0 cores on average, and its threads were ready to run on 0.5 more."
    )
    assert [row["who"] for row in verdict.evidence[0].rows][:2] == ["Python threads", "training"]


def test_no_more_is_lost_than_the_background_used(tmp_path):
    verdict = judged(tmp_path, training=1.0, training_lacked=3.0, children=0.25, busy=1.25)
    assert verdict.expected_speedup == pytest.approx(1.25)
    assert verdict.title.startswith("Processes that the script started use 0.2 cores")


def test_other_programs_answer_for_their_part(tmp_path):
    # Half a core of the script, half a core of others: half of what training lacked is the
    # script's, and of what would become free, others take their part: a third.
    verdict = judged(tmp_path, training=1.0, training_lacked=0.6, python=0.5, busy=2.0)
    assert verdict.expected_speedup == pytest.approx(1.2)


def test_a_small_pipeline_is_not_blamed_for_what_other_programs_take(tmp_path):
    verdict = judged(tmp_path, training=0.2, training_lacked=0.9, data=0.1, busy=2.0)
    assert isinstance(verdict, Clear)


def test_training_that_had_cores_enough_is_clear(tmp_path):
    verdict = judged(tmp_path, training=1.0, training_lacked=0.02, python=1.0)
    assert isinstance(verdict, Clear)
    assert verdict.why == (
        "The script uses 1.0 cores in the background, which costs 2.0% of step time."
    )


def test_threads_of_strobe_are_not_blamed(tmp_path):
    assert isinstance(judged(tmp_path, training=1.0, training_lacked=0.5, strobe=1.0), Clear)


def test_while_it_waits_for_data_training_needs_no_core(tmp_path):
    parts = {"gap": 50_000, "forward": 50_000}
    waits = "".join(
        f"0/main data:loader~1 {n * 10**8}..{n * 10**8 + 50_000_000} step={n + 1}\n"
        for n in range(20)
    )
    verdict = judged(
        tmp_path, drawing=steps(*same(parts, 20)) + waits, training=0.5, training_lacked=0.5,
        children=0.5, busy=1.0,
    )  # fmt: skip
    assert verdict.share == pytest.approx(0.25)
    assert verdict.title.startswith("Data workers use 0.5 cores")


def test_the_line_at_which_threads_were_seen_most(tmp_path):
    looks = [("thread fill", "train.py:7"), ("thread fill", "train.py:9"),
             ("thread fill", "train.py:9"), *[("training", "train.py:3")] * 5]  # fmt: skip
    threads, places = zip(*looks, strict=True)
    samples = {
        "rank": [0] * len(looks), "ts_ns": [*range(len(looks))], "thread": list(threads),
        "place": list(places), "stack": ["[]"] * len(looks),
    }  # fmt: skip
    verdict = judged(
        tmp_path, training=1.0, training_lacked=0.5, python=1.0, tables={"samples": samples}
    )
    assert verdict.where == "train.py:9"
    assert verdict.why.endswith("The background work was sampled mostly at train.py:9.")
    assert verdict.fixes[0].startswith("Vectorize the background work at train.py:9, ")


@pytest.mark.parametrize(
    ("operation", "fix"),
    [("Generator", "Return whole batches"), ("Map", "Vectorize the background work")],
)
def test_a_source_that_gives_single_rows_gives_whole_batches(tmp_path, monkeypatch, operation, fix):
    monkeypatch.setattr(crowded_cores, "_loader", lambda *_: object())
    monkeypatch.setattr(crowded_cores, "busiest", lambda *_: Busiest(operation, "train.py:5"))
    verdict = judged(tmp_path, training=1.0, training_lacked=0.5, data=1.0)
    assert isinstance(verdict, Finding) and verdict.fixes[0].startswith(fix)
    assert "train.py:5" in verdict.fixes[0]
    assert f"The busiest operation of the pipeline is {operation} at train.py:5." in verdict.why


def test_the_function_that_a_process_runs(tmp_path):
    places = {"rank": [0], "what": ["process"], "number": [1], "file": ["/job/train.py"],
              "line": [12], "function": ["produce"]}  # fmt: skip
    verdict = judged(
        tmp_path, training=1.0, training_lacked=0.5, children=1.0, tables={"places": places}
    )
    assert verdict.where == "train.py:12"
    assert verdict.why.endswith("The processes come from train.py:12.")


def test_waiting_for_the_same_data_explains_it(tmp_path):
    run = make_run(tmp_path, STEPS)
    found = {
        "data-starvation": Finding("waits", 0.5, 2.0, (), ()),
        "crowded-cores": Finding("crowded", 0.3, 1.4, (), ()),
    }

    class Rule:
        def __init__(self, name):
            self.NAME = name

        def check(self, training):
            return found[self.NAME]

    assert [*advise(run, tuple(map(Rule, found))).findings] == ["data-starvation"]
    # Little of it is waited for, but with it the cores come back.
    found["data-starvation"] = Finding("waits", 0.08, 1.3, (), ())
    assert [*advise(run, tuple(map(Rule, found))).findings] == ["data-starvation"]
    found["data-starvation"] = Finding("waits", 0.08, 1.1, (), ())
    assert [*advise(run, tuple(map(Rule, found))).findings] == ["crowded-cores", "data-starvation"]


def test_what_was_not_recorded_cannot_be_told(tmp_path):
    assert isinstance(judged(tmp_path / "a"), CannotTell)
    device = STEPS + "0/s7@cuda:0 kernel:gemm 5..90 step=1\n"
    verdict = judged(tmp_path / "b", drawing=device, training=1.0, training_lacked=1.0, python=1.0)
    assert isinstance(verdict, CannotTell) and verdict.reason == ON_DEVICE


def test_where_training_ran_is_not_known_of_a_light_recording_beside_a_gpu(tmp_path):
    run = make_run(tmp_path, STEPS)
    run.manifest.ranks[0].devices = ["cpu", "cuda:0 A100"]
    verdict = crowded_cores.check(Training(run))
    assert isinstance(verdict, CannotTell) and verdict.reason == ON_DEVICE
    with_operators = make_run(tmp_path / "ops", STEPS + "0/main op:aten::mm 5..90 step=1\n")
    with_operators.manifest.ranks[0].devices = ["cpu", "cuda:0 A100"]
    verdict = crowded_cores.check(Training(with_operators))
    assert isinstance(verdict, CannotTell)
    assert verdict.reason == "The use of CPU cores was not recorded."
