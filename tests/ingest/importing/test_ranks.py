"""Which rank a trace belongs to."""

import pytest

from tests.ingest.importing.test_importer import imported, names_by_rank, problems, trace


@pytest.mark.slow
def test_ranks_are_those_of_the_content(tmp_path):
    files = {f"{rank}.json": trace(f"op_{rank}", rank=rank) for rank in (5, 2)}
    run = imported(tmp_path, {**files, "README": b"about these traces"})
    assert names_by_rank(run) == [(2, "op_2"), (5, "op_5")]


@pytest.mark.slow
@pytest.mark.parametrize(
    "names",
    [
        ("rank_3/a.json", "rank_11/a.json"),
        ("rank3.json", "rank-11.json"),
        ("x/Rank 3/deep/a.json", "x/rank11/a.json"),
        ("trace_rank_3.json", "rank_5/rank11_of_16.json"),
    ],
)
def test_else_those_of_names(tmp_path, names):
    run = imported(tmp_path, {name: trace(name) for name in names})
    assert names_by_rank(run) == [(3, names[0]), (11, names[1])]
    assert problems(run) == {}


@pytest.mark.slow
def test_names_that_only_look_like_ranks_are_none(tmp_path):
    run = imported(tmp_path, {"frank4.json": trace("a"), "rank_99999999999.json": trace("b")})
    assert names_by_rank(run) == [(0, "a"), (1, "b")]


@pytest.mark.slow
def test_two_traces_without_a_rank_are_told(tmp_path):
    run = imported(
        tmp_path, {"a.json": trace("a"), "b.json": trace("b"), "c.json": trace("c", rank=1)}
    )
    assert names_by_rank(run) == [(0, "a"), (1, "c"), (2, "b")]
    assert problems(run) == {
        ("a.json, b.json", "2 traces do not say their rank: taken as ranks 0 and 2"): 1
    }


@pytest.mark.slow
def test_files_of_one_worker_are_one_rank(tmp_path):
    files = {
        "host_12.1000.pt.trace.json": trace("a"), "host_12.2000.pt.trace.json": trace("b"),
        "host_13.1000.pt.trace.json": trace("c"),
        "other_1.1.pt.trace.json": trace("d"), "other_1.2.pt.trace.json": trace("e", rank=7),
    }  # fmt: skip
    run = imported(tmp_path, files)
    assert names_by_rank(run) == [(0, "a"), (0, "b"), (1, "c"), (7, "d"), (7, "e")]
    what = "2 traces do not say their rank: taken as ranks 0 and 1"
    assert problems(run) == {("host_12.1000.pt.trace.json, host_13.1000.pt.trace.json", what): 1}


def test_one_rank_from_two_files_is_told(tmp_path):
    run = imported(tmp_path, {"a.json": trace("a", rank=1), "b.json": trace("b", rank=1)})
    assert names_by_rank(run) == [(1, "a"), (1, "b")]
    assert problems(run) == {("a.json", "2 files are of rank 1: taken as parts of it"): 1}
