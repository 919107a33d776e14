"""Device time and overlap side by side with what Ascend's own profiler worked out for its steps.

step_trace_time.csv has the parts of a step in microseconds. Its kernels have fractions of a
nanosecond, which ours have not: sums differ by a few tens of nanoseconds.
"""

import csv
from pathlib import Path

import pytest

from strobe.cli import main
from strobe.ingest.building.opening import open_run_dir
from strobe.reading import OpenedRun

ASCEND = Path(__file__).resolve().parents[3] / "shared" / "data" / "ascend"
# Of the second folder ranks 1 and 3 are without the file of their kernels.
FOLDERS = {
    "torch_npu_2ranks/level1": {0: "rank0_ascend_pt", 1: "rank1_ascend_pt"},
    "torch_npu_4ranks_pp2_dp2": {0: "rank_0_ascend_pt", 2: "rank_2_ascend_pt"},
}


@pytest.mark.slow
@pytest.mark.parametrize("folder", FOLDERS)
def test_parts_of_a_step(tmp_path, folder):
    if not (ASCEND / folder).is_dir():
        pytest.skip("shared data absent")
    assert main(["import", str(ASCEND / folder), "-o", str(tmp_path / "run"), "-q"]) == 0
    with OpenedRun(open_run_dir(tmp_path / "run")) as run:
        found = {
            rank: [ns / 1000 for ns in parts]
            for rank, *parts in run.sql(
                """SELECT rank, d.compute_ns, d.communication_ns, overlapped_ns, o.communication_ns
                   FROM device_time d JOIN overlap o USING (rank, device) WHERE step IS NOT NULL"""
            ).fetchall()
        }
    for rank, name in FOLDERS[folder].items():
        path = ASCEND / folder / name / "ASCEND_PROFILER_OUTPUT" / "step_trace_time.csv"
        with path.open(newline="") as file:
            (step,) = csv.DictReader(file)
        names = ("Computing", "Communication(Not Overlapped)", "Overlapped", "Communication")
        assert found[rank] == pytest.approx([float(step[name]) for name in names], abs=0.025)
