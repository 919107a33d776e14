"""What the parts of a collective know of each other."""

from tests.ingest.imports import imported, shared, span, write

SQL = """
    SELECT t.device, e.name, c.* EXCLUDE event_id FROM collective_args c
    JOIN events e ON e.id = c.event_id JOIN tracks t ON t.id = e.track_id ORDER BY e.id
"""
TOLD = {
    "Collective name": "allreduce", "dtype": "Float", "In msg nelems": 100, "Group size": 4,
    "Out msg nelems": 100, "Process Group Name": "2", "Process Group Ranks": "[0, 1, ...]",
}  # fmt: skip
STREAM = {"pid": 0, "tid": 20, "device": 0, "stream": 20}
GROUPS = {"distributedInfo": {"rank": 0, "pg_config": [{"pg_name": "2", "ranks": [0, 1, 4, 5]}]}}


def test_span_and_kernel_learn_from_the_operator(tmp_path):
    kernel = "ncclDevKernel_Generic_4"
    run = imported(write(tmp_path / "a.json", [
        span("record_param_comms", 0, 50, **TOLD),
        span("nccl:all_reduce", 5, 40, "user_annotation"),
        span("cudaLaunchKernel", 10, 12, "cuda_runtime", correlation=9),
        span(kernel, 60, 90, "kernel", correlation=9, **STREAM),
    ], **GROUPS), tmp_path)  # fmt: skip
    known = ("all_reduce", "2", 4, 400, "Float", "[0, 1, 4, 5]", 400, None, None)
    assert run.sql(SQL).fetchall() == [
        ("cpu", "nccl:all_reduce", *known),
        ("cuda:0", kernel, *known),
    ]


def test_without_numbers_the_tensors_of_the_span_tell(tmp_path):
    """2022: an all-to-all is a kernel called SendRecv."""
    kernel = "ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclWorkElem)"
    shape = {"Input Dims": [[8, 4]], "Input type": ["float"]}
    run = imported(write(tmp_path / "a.json", [
        span("record_param_comms", 0, 50),
        span("nccl:all_to_all", 5, 40, "user_annotation", **shape),
        span("cudaLaunchKernel", 10, 12, "cuda_runtime", correlation=9),
        span(kernel, 60, 90, "kernel", correlation=9, **STREAM),
    ]), tmp_path)  # fmt: skip
    rows = run.sql(SQL).fetchall()
    assert rows[1] == ("cuda:0", kernel, "all_to_all", None, None, 128, "float", None, None,
                       "ring", "simple")  # fmt: skip


def test_where_no_span_shows_it_the_operator_is_the_collective(tmp_path):
    run = imported(write(tmp_path / "a.json", [
        span("record_param_comms", 0, 50, **TOLD),
        span("record_param_comms", 60, 70, **{**TOLD, "Collective name": "wait"}),
    ]), tmp_path)  # fmt: skip
    assert [(name, row[0]) for _, name, *row in run.sql(SQL).fetchall()] == [
        ("record_param_comms", "all_reduce")
    ]


def test_collectives_of_a_real_training(tmp_path):
    """A100: a step reduces five buckets of ResNet-50's gradients and broadcasts its buffers."""
    run = imported(shared("hta/nccl_data.json.gz"), tmp_path)
    for device in ("cpu", "cuda:0"):
        rows = run.sql(
            "SELECT operation, count(*), sum(bytes), any_value(group_ranks), max(group_size)"
            " FROM collective_args JOIN events e ON e.id = event_id"
            f" JOIN tracks t ON t.id = track_id WHERE device = '{device}' GROUP BY 1 ORDER BY 1"
        ).fetchall()
        # 25,557,032 parameters and 53,173 running statistics, four bytes each but for the counts
        assert rows == [
            ("all_reduce", 15, 3 * 4 * 25_557_032, "[0, 1]", 2),
            ("broadcast", 6, 3 * (4 * 53_120 + 8 * 53), "[0, 1]", 2),
        ]


def test_kernels_of_old_traces_have_bytes_and_operation(tmp_path):
    run = imported(shared("hta/two_ranks/rank-0.json.gz"), tmp_path)
    kernels = run.sql(
        "SELECT operation, bytes, algorithm FROM collective_args JOIN events e ON e.id = event_id"
        " JOIN tracks t ON t.id = track_id WHERE device = 'cuda:0'"
    ).fetchall()
    assert len(kernels) == 10
    assert {operation for operation, _, _ in kernels} == {"all_to_all", "all_reduce", "all_gather"}
    assert all(size > 0 and algorithm == "ring" for _, size, algorithm in kernels)
