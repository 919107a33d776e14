"""One fact has one number: in tables, in the summary, in JSON, and as evidence of findings.

Each function of FACTS states facts as (what, where it is shown, number), of a run that is opened
once. The test fails if one fact has different numbers in two places. To add a fact: write a
function that yields it for every place, and add it to FACTS.
"""

import contextlib
import io
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

from strobe.advise import Advice, advise
from strobe.cli import main
from strobe.ingest.building.opening import open_run_dir
from strobe.ingest.importing.importer import import_traces
from strobe.reading import OpenedRun
from strobe.units import percent

# A training that Strobe records itself, and that waits for data.
LIVE = "live"
DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
RUNS = (
    LIVE,
    "torch/kineto/resnet50_num_workers_0.1623143089861.pt.trace.json.gz",
    "torch/hta/two_ranks",
    "torch/hta/nccl_data.json.gz",
    "torch/tracelens/h100_timesformer.json.gz",
    "torch/tracelens/mi300_ddp_resnet18.json.gz",
    "torch/tracelens/vllm_decode_full_graph_execution.json.gz",
    "ascend/torch_npu_2ranks",
    "ascend/torch_npu_4ranks_pp2_dp2",
    "ascend/mindinsight/run_1",
    "mindspore/profiler_2.0",
    "mindspore/minddata_2.10/md_slow",
    "megengine/real/chrome_timeline.4steps.json",
    "megengine/hand.json",
    "xplane/mi300_jax_conv_minimal_08.xplane.pb",
)  # fmt: skip

Fact = tuple[str, str, Any]


class Sample:
    """A run, and all that is said of it."""

    def __init__(self, folder: Path, summary: dict[str, Any]) -> None:
        self.summary = summary
        self.opened = OpenedRun(open_run_dir(folder))

    def rows(self, table: str, query: str = "SELECT *") -> list[dict[str, Any]]:
        """Of a table, under the name `it`: "SELECT rank, sum(calls) AS calls ... GROUP BY rank"."""
        select, _, rest = query.partition(" GROUP BY ")
        grouped = f" GROUP BY {rest}" if rest else ""
        found = self.opened.table(table).query("it", f"{select} FROM it{grouped}")
        return [dict(zip(found.columns, row, strict=True)) for row in found.fetchall()]

    @cached_property
    def advice(self) -> Advice:
        return advise(self.opened.run)

    @property
    def has_one_rank(self) -> bool:
        return len(self.opened.manifest.ranks) == 1


def operators(sample: Sample) -> Iterator[Fact]:
    """Calls, times, FLOPs and share of each operator."""
    sums = ("SELECT rank, name, sum(calls)::BIGINT AS calls, sum(self_ns)::BIGINT AS self_ns, "
            "sum(device_ns)::BIGINT AS device_ns, sum(flops)::BIGINT AS flops, "
            "sum(share) AS share GROUP BY rank, name")  # fmt: skip
    for table in ("operators", "operator-types"):
        for row in sample.rows(table, sums):
            for what in ("calls", "self_ns", "device_ns", "flops", "share"):
                yield f"{what} of {row['name']} on rank {row['rank']}", table, row[what]


def operators_in_sum(sample: Sample) -> Iterator[Fact]:
    for table in ("operators", "operator-types"):
        sums = "SELECT name, sum(calls)::BIGINT AS calls, sum(self_ns)::BIGINT AS self_ns, "
        sums += "sum(device_ns)::BIGINT AS device_ns GROUP BY name"
        found = {row["name"]: row for row in sample.rows(table, sums)}
        for shown in sample.summary["operator_types"]:
            for what in ("calls", "self_ns", "device_ns"):
                yield f"{what} of {shown['name']}", "summary", shown[what]
                yield f"{what} of {shown['name']}", table, found[shown["name"]][what]


def single_calls(sample: Sample) -> Iterator[Fact]:
    """Of the calls of operators, unless several threads or devices did parts of one."""
    calls = sample.rows(
        "operator-calls",
        "SELECT rank, type, count(*) AS calls, sum(host_ns - host_wait_ns)::BIGINT AS self_ns, "
        "coalesce(sum(device_ns - coalesce(device_wait_ns, 0)), 0)::BIGINT AS device_ns, "
        "sum(flops)::BIGINT AS flops, count(call) AS parts GROUP BY rank, type",
    )
    types = sample.rows(
        "operator-types",
        "SELECT rank, type, sum(calls)::BIGINT AS calls, sum(self_ns)::BIGINT AS self_ns, "
        "coalesce(sum(device_ns), 0)::BIGINT AS device_ns, sum(flops)::BIGINT AS flops "
        "GROUP BY rank, type",
    )
    divided = {(row["rank"], row["type"]) for row in calls if row["parts"]}
    for table, rows in (("operator-calls", calls), ("operator-types", types)):
        for row in rows:
            if (row["rank"], row["type"]) in divided:
                continue
            for what in ("calls", "self_ns", "device_ns", "flops"):
                yield f"{what} of {row['type']} on rank {row['rank']}", table, row[what]


def modules(sample: Sample) -> Iterator[Fact]:
    """Time of each module's own operators, and the share of the outermost ones."""
    own = "forward_own_ns + backward_own_ns AS own_ns, device_own_ns"
    for row in sample.rows("modules", f"SELECT rank, scope, {own}"):
        if row["own_ns"]:
            yield f"self_ns of {row['scope']} on rank {row['rank']}", "modules", row["own_ns"]
    sums = "SELECT rank, scope, sum(self_ns)::BIGINT AS self_ns GROUP BY rank, scope"
    for row in sample.rows("operators", sums):
        if row["scope"] is not None and row["self_ns"]:
            yield f"self_ns of {row['scope']} on rank {row['rank']}", "operators", row["self_ns"]


def modules_in_sum(sample: Sample) -> Iterator[Fact]:
    sums = ("SELECT scope, sum(forward_own_ns + backward_own_ns)::BIGINT AS own_ns, "
            "sum(device_own_ns)::BIGINT AS device_own_ns GROUP BY scope")  # fmt: skip
    found = {row["scope"]: row for row in sample.rows("modules", sums)}
    for shown in sample.summary["modules"]:
        for what in ("own_ns", "device_own_ns"):
            yield f"{what} of {shown['scope']}", "summary", shown[what]
            yield f"{what} of {shown['scope']}", "modules", found[shown["scope"]][what]


def kernels(sample: Sample) -> Iterator[Fact]:
    """Of each kernel in the summary, and what all of them took."""
    sums = ("SELECT name, kind, sum(calls)::BIGINT AS calls, sum(total_ns)::BIGINT AS total_ns "
            "GROUP BY name, kind")  # fmt: skip
    found = {(row["name"], row["kind"]): row for row in sample.rows("kernels", sums)}
    for shown in sample.summary["kernels"]:
        for what in ("calls", "total_ns"):
            name = f"{what} of {shown['name']}"
            yield name, "summary", shown[what]
            yield name, "kernels", found[shown["name"], shown["kind"]][what]
        history = sample.opened.table("call-history", name=shown["name"]).filter("device <> 'cpu'")
        ((calls, total_ns),) = history.aggregate("sum(calls)::BIGINT, sum(total_ns)").fetchall()
        kinds = [row for (name, _), row in found.items() if name == shown["name"]]
        yield f"all calls of {shown['name']}", "call-history", calls
        yield f"all calls of {shown['name']}", "kernels", sum(row["calls"] for row in kinds)


def device_time_in_sum(sample: Sample) -> Iterator[Fact]:
    """An operator's device time over its share is the device time of all, as kernels add it up."""
    whole = "SELECT rank, sum(total_ns)::BIGINT AS ns GROUP BY rank"
    for row in sample.rows("kernels", whole):
        yield f"device time of rank {row['rank']}", "kernels", row["ns"]
    for table in ("operator-types", "operators", "modules"):
        for row in sample.rows(table, "SELECT rank, device_ns, share"):
            if row["device_ns"]:
                ns = round(row["device_ns"] / row["share"])
                yield f"device time of rank {row['rank']}", table, ns
                break


def devices(sample: Sample) -> Iterator[Fact]:
    sums = ("SELECT rank, device, sum(dur_ns) FILTER (step IS NOT NULL)::BIGINT AS dur_ns, "
            "sum(idle_ns) FILTER (step IS NOT NULL)::BIGINT AS idle_ns, "
            "sum(compute_ns) FILTER (step IS NOT NULL)::BIGINT AS compute_ns "
            "GROUP BY rank, device")  # fmt: skip
    found = {(row["rank"], row["device"]): row for row in sample.rows("device-time", sums)}
    for shown in sample.summary["devices"]:
        if not shown["steps"]:
            continue
        for what in ("dur_ns", "compute_ns", "idle_ns"):
            name = f"{what} of {shown['device']} on rank {shown['rank']}"
            yield name, "summary", shown[what]
            yield name, "device-time", found[shown["rank"], shown["device"]][what]


def steps(sample: Sample) -> Iterator[Fact]:
    """Length of a step and its parts, and how many are counted."""
    (mean,) = sample.rows(
        "steps",
        "SELECT count(*) FILTER (is_counted) AS steps, "
        "round(avg(dur_ns - recorder_ns) FILTER (is_counted))::BIGINT AS mean_ns",
    )
    if not sample.summary["steps"]["count"]:
        return
    whole = sample.summary["steps"]["parts"][0]
    for what in ("steps", "mean_ns"):
        yield f"{what} of a step", "steps", mean[what]
        yield f"{what} of a step", "summary", whole[what]
    if sample.has_one_rank:
        for place, parts in (
            ("summary", sample.summary["steps"]["parts"]),
            ("step-statistics", sample.rows("step-statistics")),
        ):
            for part in parts:
                for what in ("steps", "mean_ns", "median_ns", "share"):
                    yield f"{what} of {part['part']}", place, part[what]


def data_wait(sample: Sample) -> Iterator[Fact]:
    """The part of step time that training waits for data."""
    finding = sample.advice.findings.get("data-starvation")
    if finding is None or not finding.derivation or not sample.has_one_rank:
        return
    for figure in finding.derivation:
        if figure.what == "of step time waiting for data":
            yield "share of the wait for data", "advice", figure.value
    for row in sample.rows("step-statistics"):
        if row["part"] == "data":
            yield "share of the wait for data", "step-statistics", row["share"]
            yield "the wait for data as text", "step-statistics", percent(row["share"])
    yield "the wait for data as text", "title", _percentages(finding.title)[0]
    for row in sample.rows("data-pipeline"):
        if row["reason"] and row["reason"].startswith("training builds its batches itself"):
            yield "the wait for data as text", "data-pipeline", _percentages(row["reason"])[0]


def _percentages(text: str) -> list[str]:
    return re.findall(r"[\d.]+%", text)


def evidence(sample: Sample) -> Iterator[Fact]:
    """Rows that findings show as evidence are those of the table that they name."""
    keys = {"steps": ("rank", "step"), "data-pipeline": ("rank", "loader", "stage")}
    for rule, finding in sample.advice.findings.items():
        for shown in finding.evidence:
            known = keys.get(shown.table, ())
            for row in shown.rows if known else ():
                key = {name: row[name] for name in known if name in row}
                same = [found for found in sample.rows(shown.table)
                        if all(found[name] == value for name, value in key.items())]  # fmt: skip
                for what in set(row) & set(same[0] if len(same) == 1 else ()):
                    name = f"{what} of {key}"
                    yield name, f"evidence of {rule}", row[what]
                    yield name, shown.table, same[0][what]


FACTS = (
    operators,
    operators_in_sum,
    single_calls,
    modules,
    modules_in_sum,
    kernels,
    device_time_in_sum,
    devices,
    steps,
    data_wait,
    evidence,
)


@pytest.fixture(scope="module", params=RUNS)
def sample(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("one-number") / "run"
    if request.param == LIVE:
        pytest.importorskip("torch")
        command = [sys.executable, "-m", "strobe", "demo", "-o", folder]
        subprocess.run(command, check=True, capture_output=True, timeout=300)
    else:
        path = DATA / request.param
        if not path.exists():
            pytest.skip("shared data absent")
        import_traces([path], folder)
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        assert main(["show", str(folder), "--json"]) == 0
    made = Sample(folder, json.loads(out.getvalue())["summary"])
    yield made
    made.opened.close()


@pytest.mark.slow
@pytest.mark.parametrize("facts", FACTS, ids=lambda facts: facts.__name__)
def test_one_fact_has_one_number(sample, facts):
    told: dict[str, dict[str, Any]] = {}
    for what, place, number in facts(sample):
        told.setdefault(what, {})[place] = number
    differing = {what: places for what, places in told.items() if not are_one([*places.values()])}
    assert not differing


def are_one(numbers: list[Any]) -> bool:
    first = numbers[0]
    if isinstance(first, float):
        return all(number == pytest.approx(first, rel=1e-6, abs=1e-9) for number in numbers)
    return all(number == first for number in numbers)


def test_two_numbers_for_one_fact_are_found():
    assert are_one([3, 3]) and are_one([0.1 + 0.2, 0.3]) and are_one([None, None])
    assert not are_one([3, 4]) and not are_one([0.63, 0.55]) and not are_one([None, 3])
