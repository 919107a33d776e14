"""Traces of one job are imported together, those of strangers are not."""

import pytest

from strobe.cli import main
from tests.ingest.importing.test_importer import START_US, imported, names_by_rank, trace, undated

HOUR_US = 3600 * 10**6


def refused(tmp_path, files: dict[str, bytes], capsys, command: str = "import") -> str:
    folder = tmp_path / "traces"
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    output = ["-o", str(tmp_path / "run"), "-q"] if command == "import" else []
    assert main([command, str(folder), *output]) == 2
    assert [path.name for path in tmp_path.iterdir()] == ["traces"]
    return capsys.readouterr().err


@pytest.mark.parametrize(
    "files",
    [
        {"a/t.json": trace("a"), "b/t.json": trace("b")},
        {"a/rank_0/t.json": trace("a"), "b/rank_0/t.json": trace("b")},
        {"before.json": trace("a"), "after.json": trace("b", start_us=START_US + HOUR_US)},
        {"a.json": undated("a"), "b.json": undated("b")},
        {
            "host_12.1.pt.trace.json": trace("a", rank=0),
            "host_13.1.pt.trace.json": trace("b", rank=0),
        },
        {
            f"host_12.{(START_US + 50) * 1000}.pt.trace.json": trace("a"),
            f"host_13.{(START_US + 99) * 1000}.pt.trace.json": trace("b", start_us=START_US + 60),
        },
        {
            "rank0.json": trace("a", rank=0),
            "rank1.json": trace("b", rank=1).replace(b'"world_size": 9', b'"world_size": 2'),
        },
        {
            "a/rank0.json": trace("a", rank=0),
            "b/rank1.json": trace("b", rank=1, start_us=START_US + HOUR_US),
        },
    ],
    ids=["folders", "folders of ranks", "times", "undated", "processes", "one after the other",
         "world sizes", "ranks of other times"],
)  # fmt: skip
def test_strangers_are_listed_with_the_command_that_opens_each(tmp_path, files, capsys):
    said = refused(tmp_path, files, capsys)
    assert "this folder contains traces of 2 different jobs" in said
    assert said.count("strobe show ") == 2


@pytest.mark.slow
def test_each_command_opens_what_it_names(tmp_path, capsys):
    files = {
        "two/rank_0/t.json": trace("a"), "two/rank_1/t.json": trace("b"), "one.json": trace("c"),
        "same/x.json": trace("x", rank=0), "same/y.json": trace("y", rank=1),
        "same/z.json": trace("z", start_us=START_US + HOUR_US),
    }  # fmt: skip
    said = refused(tmp_path, files, capsys, "show")
    commands = [line.split("  ")[0].split() for line in map(str.strip, said.splitlines())
                if line.startswith("strobe ")]  # fmt: skip
    root = str(tmp_path / "traces")
    assert sorted(commands) == [
        ["strobe", "import", f"{root}/same/x.json", f"{root}/same/y.json"],
        ["strobe", "show", f"{root}/one.json"],
        ["strobe", "show", f"{root}/same/z.json"],
        ["strobe", "show", f"{root}/two"],
    ]
    assert "torch.profiler; 2 traces; ranks 0, 1; " in said
    for number, (_, _, *paths) in enumerate(commands):
        run = tmp_path / f"run{number}"
        assert main(["import", *paths, "-o", str(run), "-q"]) == 0
        assert len(names_by_rank(run)) == (2 if len(paths) == 2 or "two" in paths[0] else 1)


@pytest.mark.slow
def test_nodes_that_wrote_to_folders_of_their_own_are_one_job(tmp_path):
    files = {f"node{rank}/t.json": trace(f"op{rank}", rank=rank) for rank in (0, 1)}
    assert names_by_rank(imported(tmp_path, files)) == [(0, "op0"), (1, "op1")]


def test_windows_of_one_process_are_one_rank_however_far_apart(tmp_path):
    files = {
        "rank0_start1/host_12.1.pt.trace.json": trace("a"),
        "rank0_start9/host_12.2.pt.trace.json": trace("b", start_us=START_US + 48 * HOUR_US),
    }
    assert names_by_rank(imported(tmp_path, files)) == [(0, "a"), (0, "b")]


@pytest.mark.slow
def test_files_that_are_named_are_imported_together(tmp_path):
    (tmp_path / "a.json").write_bytes(trace("a"))
    (tmp_path / "b.json").write_bytes(trace("b", start_us=START_US + HOUR_US))
    paths = [str(tmp_path / name) for name in ("a.json", "b.json")]
    assert main(["import", *paths, "-o", str(tmp_path / "run"), "-q"]) == 0
    assert names_by_rank(tmp_path / "run") == [(0, "a"), (1, "b")]
