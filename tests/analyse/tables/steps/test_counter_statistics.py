from strobe.analyse.tables.steps import counter_statistics
from tests.helpers import make_run, text

SECOND = 1_000_000_000


def test_totals_become_rates_and_the_rest_stays(tmp_path):
    extra = {
        "counters": {
            "rank": [0] * 6,
            "ts_ns": [0, SECOND, 3 * SECOND] * 2,
            "name": ["page_faults_total"] * 3 + ["rss_bytes"] * 3,
            "value": [100.0, 300.0, 400.0, 10.0, 30.0, 20.0],
        }
    }
    run = make_run(tmp_path, "0/main op:a 0..1", extra)
    assert text(counter_statistics.run(run)) == (
        "rank name samples is_rate mean min max p95 last\n"
        "0 page_faults_total 3 True 100.0 50.0 200.0 192.5 400.0\n"
        "0 rss_bytes 3 False 20.0 10.0 30.0 29.0 20.0"
    )


def test_one_sample_of_a_total_gives_no_rate(tmp_path):
    extra = {"counters": {"rank": [0], "ts_ns": [5], "name": ["x_total"], "value": [3.0]}}
    run = make_run(tmp_path, "0/main op:a 0..1", extra)
    assert counter_statistics.run(run).fetchall() == [
        (0, "x_total", 1, True, None, None, None, None, 3.0)
    ]
