"""`strobe operators` beside megengine.tools.profile_analyze, on every command line recorded."""

import json
import math
from pathlib import Path

import pytest

from strobe.cli import main
from tests.cli import profile_analyze as theirs

COMMANDS = {command.number: command for command in theirs.commands()}
ANSWERED = [c for c in COMMANDS.values() if c.code == 0 and c.number not in ("01", "67")]
REAL = str(theirs.DATA / "real" / "get_profile.train.json")
HAND = str(theirs.DATA / "hand.json")


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    theirs.need_data()
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def ours(cache, monkeypatch, capsys):
    """Call `strobe operators`: (exit code, stdout, stderr)."""
    monkeypatch.setattr("strobe.ingest.importing.imported_run.user_cache", lambda: cache)

    def call(*words):
        given = [] if {"-t", "-h"} & {*words} else ["-t", "3"]  # 3 rows unless told, as theirs
        code = main(["operators", *words, *given])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


@pytest.fixture
def answer(ours):
    """The same as JSON: totals, and rows as dictionaries."""

    def call(*words):
        code, out, _ = ours(*words, "--json")
        found = json.loads(out)
        assert code == 0, found
        names = [column["name"] for column in found.get("columns", [])]
        return found["totals"], [
            dict(zip(names, row, strict=True)) for row in found.get("rows", [])
        ]

    return call


def test_all_recorded_runs_are_there():
    theirs.need_data()
    assert len(COMMANDS) == len(list((theirs.DATA / "out").glob("*.stdout"))) > 50


@pytest.mark.parametrize("command", ANSWERED, ids=lambda command: command.number)
def test_the_same_numbers(command, answer):
    totals, rows = answer(*command.words)
    for name, text in theirs.totals(command.output).items():
        if not name.startswith("copy"):
            assert totals[f"{name.split()[1]}_ns"] == round(float(text) * 1e9), name
    tables = theirs.tables(command.output)
    for clock, expected in tables.items():
        mine = [row for row in rows if row["clock"] == clock]
        assert len(mine) == len(expected)
        by_key = {key_of(row): row for row in mine}
        for place, row in enumerate(expected):
            # Of operators that took equally long theirs prefers one by the noise of its doubles.
            if row.key in by_key or not same_time(mine[-1]["time_ns"], row.time_s):
                compare(by_key[row.key], row)
            assert same_time(mine[place]["cumulative_ns"], row.cumulative_s)
            assert abs(100 * mine[place]["cumulative_share"] - row.cumulative_percent) < 0.051
    if tables:
        assert {row["clock"] for row in rows} <= {*tables}


def key_of(row):
    return str(row["id"] if "id" in row else next(iter(row.values())))


def compare(mine, row):
    """Every number to the last digit that theirs prints."""
    assert same_time(mine["time_ns"], row.time_s)
    assert abs(100 * mine["share"] - row.percent) < 0.051
    for name, number in row.numbers.items():
        if number is None:
            assert mine[name] is None, name
        elif not math.isinf(number[0]):
            value, error = number
            assert mine[name] == pytest.approx(value, abs=error * 1.001, rel=1e-9), name
    if "id" in mine:
        assert [mine["name"], mine["type"]] == row.info[:2]
        shapes = [shown(mine[name]) for name in ("input_shapes", "output_shapes")]
        # Theirs adds the strides of inputs that are not contiguous.
        assert shapes == [text.split(",-[")[0] for text in row.shapes]
    elif "calls" in mine:
        assert str(mine["calls"]) == row.info[-2]


def same_time(ns, seconds):
    """Theirs are in seconds with three digits, of which a double rounds the last."""
    size = float(seconds)
    last_digit = 10.0 ** (math.floor(math.log10(size)) - 2) if size else 0
    return abs(ns / 1e9 - size) <= 0.5001 * last_digit


def shown(shapes):
    if shapes is None:
        return "N/A"
    return ",".join("{" + ",".join(map(str, shape)) + "}" for shape in json.loads(shapes))


@pytest.mark.parametrize("number", ["29", "30"])
def test_the_same_dump_of_operators(number, ours):
    command = COMMANDS[number]
    _, out, _ = ours(*command.words)
    expected = command.output.splitlines()[-4:]
    assert out.splitlines()[-4:] == expected
    assert ("total device time" in out) == ("total device time" in command.output)


def test_the_same_copy_times(answer):
    totals, _ = answer(*COMMANDS["23"].words)
    text = theirs.totals(COMMANDS["23"].output)
    assert text["copy time"] == f"tot={totals['copy_ns'] / 1e9:.4f} avg=0.0010"
    assert text["copy wait time"] == f"tot={totals['copy_wait_ns'] / 1e9:.4f} avg=0.0008"
    assert (totals["copies"], totals["copy_mean_ns"]) == (1, 1_000_000)


def test_every_option_of_theirs_is_taken():
    theirs.need_data()
    import argparse
    import re

    from strobe.cli.commands import operators

    parser = argparse.ArgumentParser()
    operators.add_arguments(parser)
    wanted = set(re.findall(r"(?<![\w-])--?[a-z][a-z-]*", COMMANDS["01"].output))
    # "-time-consuming" and the like are words of the help.
    known = {option for action in parser._actions for option in action.option_strings}
    assert {option for option in wanted if option.startswith("--")} | {"-t"} <= known


# --- where theirs ends with a traceback -----------------------------------------------------


def ids(rows):
    return [row["id"] for row in rows]


def test_aggregate_by_alone_is_a_sum(answer):  # 07
    assert answer(*COMMANDS["07"].words)[1] == answer(HAND, "-t", "3", "--aggregate-by", "type",
                                                      "--aggregate", "sum")[1]  # fmt: skip


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        ("12", [4, 6, 2, 0, 8]),  # memory: 196 MiB twice, 116.41, 18.38, 8.06; unknown last
        ("13", [10, 8, 0, 2, 4]),  # the same from the smallest on
        ("14", [2, 8, 6, 0, 4]),  # computation: 7.55 G, 131 M, 25.7 M, 4.8 M, then the unknown
        ("15", [0, 6, 8, 2, 4]),
        ("19", [2, 8, 6, 0, 4]),  # FLOPS: 1.76 T, 437 G, 51 G, 2.3 G
    ],
)
def test_what_is_unknown_comes_last(number, expected, answer):
    assert ids(answer(*COMMANDS[number].words)[1]) == expected


def test_a_minus_is_a_mistake_on_the_command_line_as_there(ours):  # 22
    code, out, err = ours(*COMMANDS["22"].words)
    assert (code, out) == (2, "") and "--order-by: a value is missing" in err


@pytest.mark.parametrize("number", ["24", "71"])
def test_no_copies_take_no_time(number, answer):
    totals, rows = answer(*COMMANDS[number].words)
    assert (totals["copies"], totals["copy_ns"], totals["copy_mean_ns"]) == (0, 0, None)
    assert rows


def test_groups_can_be_dumped(ours):  # 31
    code, out, _ = ours(*COMMANDS["31"].words)
    assert code == 0
    assert out.splitlines()[-3:] == ["ConvolutionForward 1", "Host2DeviceCopy 1",
                                     "BatchNormForward 1"]  # fmt: skip


@pytest.mark.parametrize("number", ["34", "35"])
def test_a_wiki_table_may_have_holes(number, ours):
    code, out, _ = ours(*COMMANDS[number].words)
    lines = [line for line in out.splitlines() if line.startswith("|")]
    assert code == 0 and len(lines) == (6 if number == "34" else 3)
    assert len({line.count(" | ") for line in lines}) == 1


def test_an_unknown_type_of_input_is_not_the_one_asked_for(answer):  # 48, 77
    assert answer(*COMMANDS["48"].words)[1] == []
    _, rows = answer(HAND, "--input-dtype", "float16", "-t", "0")
    assert ids(rows) == [8]
    assert answer(*COMMANDS["77"].words)[0]["device_ns"] == 2_773_000


def test_rates_of_a_real_profile_in_order(answer):  # 55
    _, rows = answer(*COMMANDS["55"].words)
    rates = [row["flops_per_s"] for row in rows]
    assert rates == sorted(rates, reverse=True) and len(rates) == 5


def test_a_number_too_large_is_said_to_be_missing(answer, cache):  # 61
    import duckdb

    _, rows = answer(*COMMANDS["61"].words)
    assert [(row["name"], row["computation_flops"]) for row in rows] == [("conv", None),
                                                                        ("relu", 800)]  # fmt: skip
    said = duckdb.sql(f"FROM '{cache}/*/rank_0/tables/problems*.parquet' SELECT what").fetchall()
    assert any("computation of an operator" in what for (what,) in said)


@pytest.mark.parametrize("number", ["62", "63"])
def test_without_device_time_the_host_is_shown(number, answer):
    totals, rows = answer(*COMMANDS[number].words)
    assert totals["device_ns"] is None
    assert [(row["clock"], row["time_ns"]) for row in rows] == [("host", 20_000)] * 2


def test_without_host_time_the_device_is_shown(answer):  # 66
    totals, rows = answer(*COMMANDS["66"].words)
    assert (totals["device_ns"], totals["host_ns"]) == (5_000_000, None)
    assert [row["time_ns"] for row in rows] == [4_000_000, 1_000_000]


def test_a_time_that_is_no_number_is_left_out(answer):  # 68
    totals, rows = answer(*COMMANDS["68"].words)
    assert (totals["device_ns"], ids(rows)) == (1_000_000, [4])


@pytest.mark.parametrize(
    ("number", "code", "error"),
    [
        ("67", 3, "operators have times and the graph does not name them"),
        ("69", 3, "the format of this file is not known"),
        ("70", 2, "does not exist"),
    ],
)
def test_what_holds_no_operator_is_told_in_a_sentence(number, code, error, ours):
    found, out, err = ours(*COMMANDS[number].words)
    assert (found, out) == (code, "")
    assert error in err and "Traceback" not in err


def test_the_largest_of_each_type_of_a_real_profile(answer):  # 72
    document = json.loads(Path(REAL).read_text(encoding="utf-8"))
    expected = {}
    for key, places in document["profiler"]["device"].items():
        kind = document["graph_exec"]["operator"][key]["type"]
        time = max(round(1e9 * p["end"]) - round(1e9 * p["start"]) for p in places.values())
        work = document["profiler"]["opr_footprint"].get(key, {}).get("computation")
        old = expected.get(kind, (0, None))
        expected[kind] = (max(old[0], time), max((w for w in (old[1], work) if w is not None),
                                                 default=None))  # fmt: skip
    _, rows = answer(*COMMANDS["72"].words, "-t", "0")
    assert {r["type"]: (r["time_ns"], r["computation_flops"]) for r in rows} == expected


def test_the_other_profile_is_read_too(answer):  # 75
    totals, rows = answer(*COMMANDS["75"].words)
    document = json.loads((theirs.DATA / "real" / "chrome_timeline.sample_rate1.json").read_text())
    ends: dict[tuple, list[float]] = {}
    for event in document["traceEvents"]:
        if event.get("cat") == "Kernel":
            ends.setdefault(event["name"], []).append(
                event["ts"] * (-1 if event["ph"] == "B" else 1)
            )
    assert totals["device_ns"] == round(1000 * sum(sum(v) for v in ends.values()))
    assert rows[0]["name"] == "backward[16].ConvolutionBackward.ConvolutionBackwardFilterV2"
