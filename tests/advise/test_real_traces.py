"""What the rules about devices say of real traces, each looked into by hand."""

import pytest

from strobe.advise import RULES, advise, rules_named
from tests.ingest.imports import imported, shared

# Of a trace: the findings about devices, with the share of step time they cost.
ABOUT_DEVICES = ("device-idle", "exposed-communication", "host-sync", "low-precision-unused",
                 "slow-transfer", "slow-rank")  # fmt: skip
VERDICTS = {
    # The device idles 39% of the time, nearly all of it while the loop waits for data.
    "kineto/resnet50_num_workers_0.1623143089861.pt.trace.json.gz": {},
    # A V100 with a small batch in float32: the host does not keep up.
    "kineto/resnet50_num_workers_4.1623212756351.pt.trace.json.gz": {
        "device-idle": 0.19, "host-sync": 0.07, "low-precision-unused": 0.07,
    },
    # V100, float32, the device always busy.
    "hta/ns_resolution_rank-0.pt.trace.json.gz": {"low-precision-unused": 0.30},
    # 272 calls of hipFree take a second of each step.
    "tracelens/mi300_ddp_resnet18.json.gz": {"device-idle": 0.89},
    # One rank; nccl runs two thirds of the time that the host's steps take.
    "tracelens/mi300_resnet_act_checkpoint.json.gz": {"exposed-communication": 0.66},
    # BERT of a batch of one, under a profiler that records call stacks.
    "tracelens/h100_bert-small.json.gz": {"device-idle": 0.93},
    "hta/nccl_data.json.gz": {"device-idle": 0.76},
    "hta/two_ranks": {"device-idle": 0.29},
    "hta/triton_example.json.gz": {},
    "hta/mtia_rank_0.json.gz": {},
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", VERDICTS)
def test_findings_about_devices(tmp_path, name):
    run = imported(shared(name), tmp_path)
    advice = advise(run, rules_named(ABOUT_DEVICES))
    found = {rule: round(finding.share, 2) for rule, finding in advice.findings.items()}
    assert found == VERDICTS[name]
    assert not [unknown for unknown in advice.cannot_tell.values() if "fault" in unknown.reason]
    run.close()


def test_a_call_that_frees_memory_in_every_step_is_named(tmp_path):
    run = imported(shared("tracelens/mi300_ddp_resnet18.json.gz"), tmp_path)
    advice = advise(run)
    finding = advice.findings["allocator-churn"]
    assert finding.where == "train_single_gpu.py:41"
    assert {row["name"] for row in finding.evidence[0].rows} == {"hipFree"}
    assert "inside hipFree" in advice.clear["device-idle"].why  # which this explains
    run.close()


def test_a_loader_that_keeps_up_is_not_blamed(tmp_path):
    """Six steps each: one loads data itself, the other in four workers."""
    by_workers = {}
    for name, workers in ((name, name.split("_")[3][0]) for name in list(VERDICTS)[:2]):
        run = imported(shared(name), tmp_path / workers)
        by_workers[workers] = advise(run).findings
        run.close()
    if "data-starvation" not in {rule.NAME for rule in RULES}:
        pytest.skip("no rule about data")
    assert next(iter(by_workers["0"])) == "data-starvation"
    assert "data-starvation" not in by_workers["4"]


ASCEND = "../ascend/torch_npu_2ranks"


@pytest.mark.slow
def test_a_line_of_the_users_code_by_its_call_stack(tmp_path):
    run = imported(shared(ASCEND), tmp_path)
    finding = advise(run).findings["host-sync"]
    # `print` of a loss, in the class that averages it.
    assert finding.where == "main.py:483" and "aten::item" in finding.why
    run.close()
