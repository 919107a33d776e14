import io
import math

from strobe.show.text.metric_summary import write_metrics
from strobe.show.text.paper import Paper


def row(tag: str, **values):
    return {
        "rank": 0, "tag": tag, "source": "automatic", "count": 1200, "first_step": 1,
        "last_step": 1200, "first": 2.302, "last": 0.1, "min": 0.0931, "min_step": 1180,
        "max": 2.4, "max_step": 3, "nan_count": 0, "infinite_count": 0, **values,
    }  # fmt: skip


def text(rows, ranks=1, tags=None, width=80) -> str:
    file = io.StringIO()
    write_metrics({"ranks": ranks, "tags": tags or len(rows), "rows": rows}, Paper(file, width))
    return file.getvalue()


def test_what_each_metric_came_to():
    assert text([row("loss"), row("learning_rate", first=0.1, last=0.1)]) == (
        "Metrics\n"
        "                 values  first  last   lowest (step)  highest (step)\n"
        "  loss            1,200  2.302   0.1  0.0931 (1,180)         2.4 (3)\n"
        "  learning_rate   1,200    0.1   0.1  0.0931 (1,180)         2.4 (3)\n\n"
    )


def test_values_that_are_not_finite_are_named():
    shown = text([row("loss", last=math.nan, nan_count=2, infinite_count=1)])
    assert "NaN" in shown
    assert "loss: 3 of 1,200 values are NaN or infinite." in shown


def test_long_names_are_cut_and_more_tags_counted():
    shown = text([row("a" * 100), *(row(f"m{n}") for n in range(8))], tags=30, ranks=4, width=80)
    assert all(len(line) <= 80 for line in shown.splitlines())
    assert "Metrics, rank 0" in shown
    assert "22 more: strobe show RUN metrics" in shown
