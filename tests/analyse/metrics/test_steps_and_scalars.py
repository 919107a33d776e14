"""What a training logged, joined to what its steps cost."""

from strobe.analyse.tables.steps import steps
from tests.helpers import make_run

STEPS = """
    0/steps  step:step~1  0..100   step=1
    0/steps  step:step~2  100..350 step=2
    0/steps  step:step~3  350..400 step=3
"""


def test_a_loss_joins_the_length_of_its_step(tmp_path):
    logged = {
        "rank": [0, 0, 0, 0], "tag": ["loss", "loss", "lr", "loss"], "step": [1, 2, 2, None],
        "ts_ns": [90, 340, 345, 500], "value": [3.0, float("nan"), 0.1, 7.0],
        "source": ["strobe.log"] * 4, "attempt": [1] * 4,
    }  # fmt: skip
    run = make_run(tmp_path, STEPS, {"scalars": logged})
    steps.run(run).create_view("steps")
    found = run.sql(
        "select step, dur_ns, value from steps join scalars using (rank, step) "
        "where tag = 'loss' order by dur_ns desc"
    ).fetchall()
    assert [row[:2] for row in found] == [(2, 250), (1, 100)]
    assert found[0][2] != found[0][2] and found[1][2] == 3.0
