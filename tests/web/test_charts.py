"""Charts and the catalogue over HTTP, of runs that were imported."""

import json
from urllib.parse import quote

import numpy as np
import pytest

from strobe.cli import main
from strobe.timeline.packet import unpacked
from tests.ingest.event_files import write_scalars

pytestmark = pytest.mark.slow

STEPS = 3000
LOSS = [1 / (step + 1) for step in range(STEPS)]
LOSS[1234] = float("nan")
ADDRESS = "/api/runs/first/charts"


@pytest.fixture(scope="module")
def charts(tmp_path_factory, own_folders):
    from strobe.web import instances, starting
    from tests.web.served import Client

    base = tmp_path_factory.mktemp("charts")
    for name, values in (("first", {"loss": LOSS, "a, b": [1.0]}), ("second", {"loss": [5.0]})):
        write_scalars(base / "logs" / name / "events.out.tfevents.1.host.1.0", values)
        assert main(["import", str(base / "logs" / name), "-o", str(base / name), "-q"]) == 0
    instance = starting.start(base, "127.0.0.1", starting.free_port("127.0.0.1"))
    yield Client(instance)
    instances.end(instance)


def curves(charts, **params):
    text = "&".join(f"{name}={quote(str(value))}" for name, value in params.items())
    return charts.get(f"{ADDRESS}/curves?{text}")


def test_a_page_learns_which_scalars_there_are(charts):
    found = {one["tag"]: one for one in charts.get(ADDRESS).json["scalars"]}
    assert set(found) == {"loss", "a, b"}
    loss = found["loss"]
    assert (loss["rank"], loss["logged"], loss["first_step"], loss["last_step"]) == (
        0, STEPS, 0, STEPS - 1
    )  # fmt: skip
    assert loss["attempts"] == [1] and loss["last_ts_ns"] > loss["first_ts_ns"]


def test_a_chart_is_columns_of_bytes(charts):
    answer = curves(charts, tags=json.dumps(["loss"]), pixels=100, weight=0.9)
    assert answer.headers["content-type"] == "application/octet-stream"
    about, columns = unpacked(answer.body)
    (curve,) = about["curves"]
    assert (curve["tag"], curve["is_exact"], curve["points"]) == ("loss", False, STEPS)
    assert columns["0/count"].sum() == STEPS
    assert columns["0/nan_count"].sum() == 1
    assert columns["0/max"].max() == 1.0 and columns["0/max_step"][0] == 0
    assert columns["0/smoothed_last"].dtype == np.float64


def test_a_narrow_stretch_gives_points(charts):
    answer = curves(charts, tags=json.dumps(["loss", "a, b"]), begin=1230, end=1240, pixels=50)
    about, columns = unpacked(answer.body)
    assert [curve["tag"] for curve in about["curves"]] == ["loss", "a, b"]
    assert columns["0/step"].tolist() == list(range(1229, 1242))
    assert np.isnan(columns["0/value"]).tolist().index(True) == 1234 - 1229


def test_a_chart_is_a_table_too(charts):
    answer = curves(charts, x="relative", tags=json.dumps(["loss"]), pixels=10, format="csv")
    lines = answer.body.decode().splitlines()
    assert lines[0].startswith("rank,tag,source,attempt,pixel,count,nan_count,")
    assert len(lines) == 11 and "attachment" in answer.headers["content-disposition"]


@pytest.mark.parametrize(
    "params, words",
    [
        ({"tags": "loss"}, "tags are not a list of names"),
        ({"tags": '["los"]'}, "no scalar is named 'los'"),
        ({"x": "epoch"}, "'epoch' is not an axis"),
        ({"begin": "a"}, "begin is not a whole number"),
        ({"begin": 2**62}, "begin is not a whole number"),
        ({"pixels": 10**9}, "pixels"),
        ({"weight": "nan"}, "a weight or a half-life"),
        ({"weight": "much"}, "weight is not a number"),
        ({"format": "png"}, "no format 'png'"),
        ({"rank": 4}, "rank 4 logged no scalars"),
    ],
)
def test_what_cannot_be_drawn_is_refused(charts, params, words):
    answer = curves(charts, **params)
    assert answer.status == 400 and words in answer.json["error"]


def test_the_ends_of_the_numbers_are_no_trouble(charts):
    answer = curves(charts, begin=-(2**62) + 1, end=2**62 - 1, tags='["loss"]')
    about, columns = unpacked(answer.body)
    assert about["curves"][0]["points_in_range"] == columns["0/count"].sum() == STEPS


def test_the_catalogue_has_all_runs(charts):
    answer = charts.get("/api/catalogue").json
    assert answer["tags"] == {"loss": 2, "a, b": 1} and answer["run_scalars"]["rows"] == []
    names = [column["name"] for column in answer["runs"]["columns"]]
    runs = {row[0]: dict(zip(names, row, strict=True)) for row in answer["runs"]["rows"]}
    assert set(runs) == {"first", "second"} and runs["first"]["state"] == "imported"
    answer = charts.get(f"/api/catalogue?tag=loss&tag={quote('a, b')}").json
    names = [column["name"] for column in answer["run_scalars"]["columns"]]
    rows = [dict(zip(names, row, strict=True)) for row in answer["run_scalars"]["rows"]]
    found = {(row["run"], row["tag"]): row for row in rows}
    assert set(found) == {("first", "loss"), ("first", "a, b"), ("second", "loss")}
    assert found["first", "loss"]["nan_count"] == 1
    assert found["first", "loss"]["min_step"] == STEPS - 1
