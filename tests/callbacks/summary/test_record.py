"""SummaryRecord without MindSpore; with its messages: tests/frameworks/mindspore."""

import numpy as np
import pytest

import strobe
from tests.callbacks.summary.rows import rows

WRONG = [
    ({"log_dir": None}, TypeError, "log_dir"),
    ({"log_dir": "x", "file_prefix": 5}, TypeError, "file_prefix"),
    ({"log_dir": "x", "file_suffix": "a/b"}, ValueError, "file_suffix"),
    ({"log_dir": "x", "max_file_size": "1"}, TypeError, "max_file_size"),
    ({"log_dir": "x", "raise_exception": 1}, TypeError, "raise_exception"),
    ({"log_dir": "x", "export_options": {"tensor_format": "pt"}}, ValueError, "tensor_format"),
]


@pytest.mark.parametrize("given, kind, name", WRONG)
def test_a_wrong_option_raises_mindspores_type(given, kind, name):
    with pytest.raises(kind, match=name):
        strobe.SummaryRecord(**given)


def test_what_was_added_is_recorded_with_the_step(tmp_path):
    with strobe.SummaryRecord(
        tmp_path / "log", export_options={"tensor_format": "npy"}
    ) as record:  # fmt: skip
        loss = np.array([0.5])
        record.add_value("scalar", "loss", loss)
        record.add_value("tensor", "t", np.array([2**60]))
        loss[0] = 7  # after it was added
        assert record.record(3)
        record.add_value("train_lineage", "any", {"network": "Net"})
        assert record.record(step=4)
        assert record.record(step=5)
        run = record.run_path
    assert rows(run, "select tag, step, value from scalars") == [("loss", 3, 0.5)]
    assert rows(run, "select name, value, step from lineage") == [("network", "Net", 4)]
    (file,) = run.glob("export_*/tensor/t_3.npy")
    assert np.load(file).tolist() == [2**60]


def test_a_second_record_must_wait_for_the_first(tmp_path):
    record = strobe.SummaryRecord(tmp_path / "one")
    with pytest.raises(RuntimeError, match="open already"):
        strobe.SummaryRecord(tmp_path / "two")
    record.close()
    assert not record.record(1)
    with pytest.raises(ValueError, match="closed"):
        record.__enter__()
    strobe.SummaryRecord(tmp_path / "two").close()


def test_the_size_is_limited(tmp_path, capsys):
    with strobe.SummaryRecord(tmp_path / "log", max_file_size=4000) as record:
        for step in range(100):
            record.add_value("tensor", "t", np.zeros(10))
            record.record(step)
        run = record.run_path
    ((count,),) = rows(run, "select count(*) from tensors")
    assert 0 < count < 100
    assert capsys.readouterr().err.count("max_file_size (4000 bytes)") == 1
