from strobe.analyse.tables.steps import core_users
from tests.helpers import make_run, text

STEPS = """
    0/steps step:step~1 0..1000 step=1
    0/steps step:step~2 1000..3000 step=2
"""


def counters(*rows):
    names, ts_ns, values = zip(*rows, strict=True)
    return {"counters": {"rank": [0] * len(rows), "ts_ns": list(ts_ns), "name": list(names),
                         "value": list(values)}}  # fmt: skip


def test_who_had_the_cores_between_the_looks_inside_of_training(tmp_path):
    told = counters(
        ("cores_usable_milli", 0, 2000),
        ("training_threads_cpu_ns_total", 500, 100),
        ("training_threads_cpu_ns_total", 2500, 2100),
        ("training_threads_cpu_ns_total", 4500, 9100),  # past the last step
        ("training_threads_no_core_ns_total", 500, 0),
        ("training_threads_no_core_ns_total", 2500, 800),
        ("child_processes_cpu_ns_total", 500, 0),
        ("child_processes_cpu_ns_total", 2500, 1000),
        ("cores_busy_milli", 1500, 1900),
        ("cores_busy_milli", 2500, 1700),
    )
    # 2,000 ns: training 1 core, processes half a one; of 1.8 that were busy, 0.3 are left.
    assert text(core_users.run(make_run(tmp_path, STEPS, told))) == "\n".join((
        "rank who cpu_ns cores share no_core_ns",
        "0 training 2000 1.0 0.5 800",
        "0 child processes 1000 0.5 0.25 -",
        "0 other programs 600 0.30000000000000004 0.15000000000000002 -",
    ))  # fmt: skip


def test_a_run_that_did_not_tell_has_no_rows(tmp_path):
    assert core_users.run(make_run(tmp_path, STEPS)).fetchall() == []
    one = counters(("training_threads_cpu_ns_total", 500, 100))
    assert core_users.run(make_run(tmp_path / "one", STEPS, one)).fetchall() == []
