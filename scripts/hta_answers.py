"""Write tests/analyse/hta_answers.json: what HolisticTraceAnalysis says about the real traces.

Strobe's device analyses are compared with it (tests/analyse/test_against_hta.py) without HTA being
installed there. To make the file again, in an environment of its own:

    pip install traceinsight==0.6.1        (the name under which HTA is published; import hta)
    python scripts/hta_answers.py          (needs the real traces beside the checkout)

HTA is asked for all steps (by default it leaves out the last one) and not to round times to
microseconds. It holds times as float64 microseconds; since 1970 these have steps of 0.25 µs, so
the earliest time is taken off all others, exactly, before HTA sees them. That shifts the trace and
changes nothing else.
"""

import gzip
import json
import logging
import os
import sys
import tempfile
import warnings
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

os.environ["HTA_DISABLE_NS_ROUNDING"] = "1"

TRACES = Path(__file__).resolve().parents[2] / "shared" / "data" / "torch"
ANSWERS = Path(__file__).resolve().parents[1] / "tests" / "analyse" / "hta_answers.json"

FILES = {
    "two_ranks": ["hta/two_ranks/rank-0.json.gz", "hta/two_ranks/rank-1.json.gz"],
    "ns_resolution": ["hta/ns_resolution_rank-0.pt.trace.json.gz"],
    "mi250": ["hta/mi250_minitoy_train_ROCm6_2_kineto.json.gz"],
    "nccl_data": ["hta/nccl_data.json.gz"],
    "alexnet": ["hta/critical_path_alexnet.json.gz"],
    "mtia": ["hta/mtia_rank_0.json.gz"],
    "resnet50_0": ["kineto/resnet50_num_workers_0.1623143089861.pt.trace.json.gz"],
    "resnet50_4": ["kineto/resnet50_num_workers_4.1623212756351.pt.trace.json.gz"],
    "h100_bert": ["tracelens/h100_bert-small.json.gz"],
    "h100_timesformer": ["tracelens/h100_timesformer.json.gz"],
    "mi300_timesformer": ["tracelens/mi300_timesformer.json.gz"],
    "mi300_ddp": ["tracelens/mi300_ddp_resnet18.json.gz"],
    "mi210_gpu_only": ["tracelens/mi210_gpu_only_trace.json.gz"],
    "b200_eager": ["tracelens/b200_eager_trace.json.gz"],
    "vllm_graph": ["tracelens/vllm_decode_full_graph_execution.json.gz"],
    # HTA cannot read these two: pandas 3 refuses an assignment that does not fit the column.
    "mi300_checkpoint": ["tracelens/mi300_resnet_act_checkpoint.json.gz"],
    "triton": ["tracelens/torch_compile_triton.json.gz"],
}
TOP_KERNELS = 8


def main() -> int:
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    import hta.version
    import pandas

    answers: dict[str, Any] = {
        "made_by": "scripts/hta_answers.py",
        "hta": hta.version.__version__,
        "pandas": pandas.__version__,
        "traces": {},
    }
    with tempfile.TemporaryDirectory() as folder:
        for name, files in FILES.items():
            shifted = {
                rank: _shifted(TRACES / file, Path(folder) / f"{name}-{rank}.json.gz")
                for rank, file in enumerate(files)
            }
            answers["traces"][name] = {"files": files, **_answers(shifted)}
            sys.stderr.write(f"{name}\n")
    ANSWERS.write_text(json.dumps(answers, indent=1) + "\n", encoding="utf-8")
    return 0


def _shifted(file: Path, target: Path) -> str:
    trace = json.loads(gzip.decompress(file.read_bytes()), parse_float=Decimal)
    events = trace["traceEvents"] if isinstance(trace, dict) else trace
    timed = [event for event in events if event.get("ph") == "X" and "dur" in event]
    first = min(Decimal(event["ts"]) for event in timed)
    for event in events:
        if "ts" in event:
            event["ts"] = Decimal(event["ts"]) - first
    whole = trace if isinstance(trace, dict) else {"traceEvents": events}
    target.write_bytes(gzip.compress(json.dumps(whole, default=_plain).encode(), 1))
    return str(target)


def _plain(number: Decimal) -> float | int:
    return int(number) if number == number.to_integral_value() else float(number)


def _answers(files: dict[int, str]) -> dict[str, Any]:
    from hta.trace_analysis import TraceAnalysis

    try:
        analysis = TraceAnalysis(trace_files=files, include_last_profiler_step=True)
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"[:100]}
    return {"ranks": {str(rank): _of_rank(analysis, rank) for rank in files}}


def _of_rank(analysis: Any, rank: int) -> dict[str, Any]:
    questions: dict[str, Callable[[Any, int], Any]] = {
        "temporal": _temporal,
        "idle": _idle,
        "overlap": _overlap,
        "kernel_types": _kernel_types,
        "kernels": _kernels,
        "queue": _queue,
        "bandwidth": _bandwidth,
        "launches": _launches,
    }
    answers = {}
    for name, ask in questions.items():
        try:
            answers[name] = ask(analysis, rank)
        except Exception as error:
            answers[name] = {"error": f"{type(error).__name__}: {error}"[:100]}
    return answers


def _temporal(analysis: Any, rank: int) -> dict[str, float]:
    table = analysis.get_temporal_breakdown(visualize=False)
    row = table[table["rank"] == rank].iloc[0]
    names = ("idle", "compute", "non_compute", "kernel")
    return {f"{name}_us": float(row[f"{name}_time(us)"]) for name in names}


def _idle(analysis: Any, rank: int) -> dict[str, dict[str, float]]:
    table, _ = analysis.get_idle_time_breakdown(ranks=[rank], visualize=False)
    found: dict[str, dict[str, float]] = {}
    for row in table.itertuples():
        found.setdefault(str(row.stream), {})[row.idle_category] = float(row.idle_time)
    return found


def _overlap(analysis: Any, rank: int) -> float | None:
    table = analysis.get_comm_comp_overlap(visualize=False)
    return _number(table[table["rank"] == rank]["comp_comm_overlap_pctg"].iloc[0])


def _kernel_types(analysis: Any, rank: int) -> dict[str, float]:
    """Exclusive time of each combination of types, over all ranks."""
    table, _ = analysis.get_gpu_kernel_breakdown(visualize=False)
    return {row.kernel_type: float(row.sum) for row in table.itertuples()}


def _kernels(analysis: Any, rank: int) -> dict[str, Any]:
    _, table = analysis.get_gpu_kernel_breakdown(visualize=False, num_kernels=10**6)
    table = table[table["rank"] == rank].sort_values(["sum (us)", "name"], ascending=[False, True])
    top = {
        row["name"]: {name: float(row[f"{name} (us)"]) for name in ("sum", "min", "max", "mean")}
        for _, row in table.head(TOP_KERNELS).iterrows()
    }
    sums = table.groupby("kernel_type")["sum (us)"].sum()
    counts = table.groupby("kernel_type")["name"].count()
    return {"top": top, "sum_us": sums.to_dict(), "names": counts.to_dict()}


def _queue(analysis: Any, rank: int) -> dict[str, Any]:
    table = analysis.get_queue_length_summary(ranks=[rank])["queue_length"]
    return {str(row.name[1]): _described(row) for _, row in table.iterrows()}


def _bandwidth(analysis: Any, rank: int) -> dict[str, Any]:
    table = analysis.get_memory_bw_summary(ranks=[rank])
    if table is None:
        return {}
    return {row.name[1]: _described(row) for _, row in table["memory_bw_gbps"].iterrows()}


def _launches(analysis: Any, rank: int) -> dict[str, float]:
    table = analysis.get_cuda_kernel_launch_stats(ranks=[rank], visualize=False)[rank]
    names = ("cpu_duration", "gpu_duration", "launch_delay")
    return {"count": len(table), **{f"{name}_us": float(table[name].sum()) for name in names}}


def _described(row: Any) -> dict[str, float | None]:
    return {
        name: _number(row[name]) for name in ("count", "mean", "min", "25%", "50%", "75%", "max")
    }


def _number(value: Any) -> float | None:
    return None if value != value else float(value)


if __name__ == "__main__":
    sys.exit(main())
