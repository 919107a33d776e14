"""`strobe operators`, and opening a trace as if it were a run."""

import gzip
import json
import os
import stat
from pathlib import Path

import pytest

from strobe.cli import main

TORCH = Path(__file__).resolve().parents[4] / "shared" / "data" / "torch" / "kineto"


@pytest.fixture
def call(tmp_path, monkeypatch, capsys):
    """`strobe` with a trace of two operators and a kernel in trace.json: (code, out, err)."""
    events = [
        {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 7, "tid": 7, "ts": 1e6, "dur": 50,
         "args": {"External id": 1, "Input Dims": [[8, 4], [4, 2]], "Input type": ["float"] * 2}},
        {"ph": "X", "cat": "cpu_op", "name": "aten::a|<b>\u001b[31m", "pid": 7, "tid": 7,
         "ts": 1e6 + 60, "dur": 20},
    ]  # fmt: skip
    write(tmp_path / "trace.json", events)
    monkeypatch.chdir(tmp_path)
    cache = tmp_path / "cache"
    cache.mkdir()
    monkeypatch.setattr("strobe.ingest.importing.imported_run.user_cache", lambda: cache)

    def run(*words):
        code = main(list(words))
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


def write(path, events):
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))


def test_a_run_without_a_device_shows_the_host(call):
    code, out, _ = call("operators", "trace.json", "--columns", "name,time_ns,share,flops_per_s")
    assert (code, out) == (
        0,
        "total device time  not recorded\n"
        "total host time    70.0 µs\n"
        "\n"
        "name                 time  share       flops/s\n"
        "aten::mm          50.0 µs    71%  2.56 MFLOP/s\n"
        "aten::a|<b>�[31m  20.0 µs    29%\n",
    )


@pytest.mark.parametrize("width", ["80", "160"])
def test_it_fits_the_paper(call, width):
    code, out, _ = call("operators", "trace.json", "--width", width)
    assert code == 0 and max(map(len, out.splitlines())) <= int(width)


def test_json_and_csv_say_the_same(call):
    found = json.loads(call("operators", "trace.json", "--json")[1])
    assert found["ok"] and found["totals"]["host_ns"] == 70_000
    names = [column["name"] for column in found["columns"]]
    assert all(column["doc"] for column in found["columns"])
    lines = call("operators", "trace.json", "--csv")[1].splitlines()
    assert lines[0].split(",") == names and len(lines) == 1 + len(found["rows"])
    assert json.loads(call("operators", "trace.json", "--print-only", "summary", "--json")[1]) == {
        "ok": True, "totals": {"device_ns": None, "host_ns": 70_000, "operators": 2},
    }  # fmt: skip


def test_a_type_that_another_framework_calls_otherwise(call):
    events = [{"ph": "X", "cat": "cpu_op", "name": "aten::mkldnn_convolution", "pid": 7, "tid": 7,
               "ts": 1e6, "dur": 50}]  # fmt: skip
    write(Path("trace.json"), events)
    code, _, err = call("operators", "trace.json", "--type", "ConvolutionForward")
    assert code == 0
    assert "no operators of type ConvolutionForward. Similar types: mkldnn_convolution\n" in err
    assert "Similar" not in call("operators", "trace.json", "--type", "mkldnn_convolution")[2]


def test_a_wiki_table_and_a_dump(call):
    _, out, _ = call("operators", "trace.json", "--wiki", "--columns", "name,time_ns")
    assert out.splitlines()[-2:] == [
        "| aten::mm | 50.0 µs |",
        "| aten::a\\|&lt;b>�[31m | 20.0 µs |",
    ]
    _, out, _ = call("operators", "trace.json", "--dump-only-operators", "--print-only", "host")
    assert [line.split()[:2] for line in out.splitlines()][0] == ["aten::mm", "mm"]


@pytest.mark.parametrize(
    ("words", "code", "error"),
    [
        (["nowhere.json"], 2, "this run does not exist"),
        (["trace.json", "--order-by", "colour"], 2, "no column colour"),
        (["trace.json", "--opr-name", "("], 2, "not a valid regular expression"),
        (["trace.json", "--min-time", "soon"], 2, "not a length of time"),
        (["trace.json", "--top", "x"], 2, "not a whole number"),
        (["trace.json", "--aggregate", "median"], 2, "is not one of"),
        (["trace.json", "--print-only", "summary", "--csv"], 2, "cannot be combined with --csv"),
        (["notes.txt"], 3, "the format of this file is not known"),
        (["marks.json"], 4, "no operators were recorded"),
    ],
)
def test_mistakes_are_told(call, tmp_path, words, code, error):
    (tmp_path / "notes.txt").write_text("hello")
    write(tmp_path / "marks.json", [{"ph": "X", "cat": "python_function", "name": "f", "pid": 1,
                                     "tid": 1, "ts": 5, "dur": 1}])  # fmt: skip
    found, out, err = call("operators", *words)
    assert (found, out) == (code, "") and error in err
    if "--csv" not in words:
        answer = json.loads(call("operators", *words, "--json")[1])
        assert answer["ok"] is False and error in answer["error"]


@pytest.mark.parametrize(("text", "rows"), [("3e-5", 1), ("30us", 1), ("0.00001", 2), ("1", 0)])
def test_a_bare_number_is_seconds(call, text, rows):
    found = json.loads(call("operators", "trace.json", "--min-time", text, "--json")[1])
    assert len(found["rows"]) == rows


# --- opening ------------------------------------------------------------------------------


def test_any_command_opens_a_trace_and_imports_it_once(call, tmp_path, monkeypatch):
    from strobe.ingest.importing import importer

    imports = []
    original = importer.import_traces
    monkeypatch.setattr(importer, "import_traces",
                        lambda *given: imports.append(given) or original(*given))  # fmt: skip
    assert call("show", "trace.json", "operator-types", "--csv")[1].count("aten::mm") == 1
    assert call("sql", "trace.json", "select count(*) as n from op_args", "--csv")[1] == "n\n2\n"
    code, out, _ = call("export", "trace.json", "--format", "json", "-o", "all.json")
    assert code == 0 and len(imports) == 1
    write(tmp_path / "trace.json", [])
    os.utime(tmp_path / "trace.json", ns=(1, 1))
    call("show", "trace.json")
    assert len(imports) == 2


def test_a_folder_of_traces_is_opened_and_one_of_runs_is_not(call, tmp_path):
    folder = tmp_path / "logs"
    folder.mkdir()
    (folder / "a.json.gz").write_bytes(gzip.compress((tmp_path / "trace.json").read_bytes()))
    assert call("operators", "logs", "--json")[0] == 0
    assert call("import", "trace.json", "-o", "runs/one", "-q")[0] == 0
    code, _, err = call("operators", "runs")
    assert code == 3 and "contains a run" in err and "runs/one" in err
    assert call("operators", "runs/one")[0] == 0


def test_what_nobody_asked_about_for_a_week_is_forgotten(call, tmp_path):
    old = tmp_path / "cache" / "imported-old"
    old.mkdir()
    os.utime(old, (1, 1))
    call("show", "trace.json")
    assert [path.name for path in (tmp_path / "cache").glob("imported-*")] != ["imported-old"]
    assert not old.exists()


def test_the_cache_is_of_this_user_alone(tmp_path, monkeypatch):
    from strobe.store.user_cache import user_cache

    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert stat.S_IMODE(user_cache().stat().st_mode) == 0o700


# --- another framework's trace ------------------------------------------------------------


def test_device_times_of_torch_are_those_of_its_kernels(call):
    if not TORCH.exists():
        pytest.skip("torch's shared data absent")
    path = next(TORCH.glob("*workers_0*.gz"))
    events = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
    on_device = [e for e in events if e.get("cat") in ("Kernel", "Memcpy", "Memset")]
    found = json.loads(call("operators", str(path), "--aggregate-by", "type", "-t", "0",
                            "--json")[1])  # fmt: skip
    assert found["totals"]["device_ns"] == round(1000 * sum(e["dur"] for e in on_device))
    assert sum(row[2] for row in found["rows"]) == found["totals"]["device_ns"]
    assert found["rows"][0][:2] == ["cudnn_convolution_backward_weight", 318]
