import numpy as np

from strobe.ingest.formats.kinds import KIND
from strobe.ingest.formats.kineto.modules import Modules
from strobe.ingest.trace.spans import Track, Vocabulary, make
from tests.ingest.imports import imported, shared, span, write


def call(name: str, start: float, end: float, **more) -> dict:
    return span(f"nn.Module: {name}", start, end, "python_function", **more)


def scopes(run) -> list[tuple]:
    sql = "SELECT name, scope FROM events WHERE kind IN ('module', 'op') ORDER BY id"
    return run.sql(sql).fetchall()


def test_paths_follow_from_nesting(tmp_path):
    run = imported(write(tmp_path / "a.json", [
        call("Net_0", 0, 100),
        span("torch/nn/modules/module.py(1): _call_impl", 1, 99, "python_function"),
        call("Linear_0", 10, 20),
        span("aten::linear", 12, 18),
        call("Block_0", 30, 80),
        call("Linear_1", 40, 50),
        span("aten::linear", 42, 48),
        call("CrossEntropyLoss_0", 110, 120),
    ]), tmp_path)  # fmt: skip
    assert scopes(run) == [
        ("Net", "Net_0"),
        ("Linear", "Net_0.Linear_0"),
        ("aten::linear", "Net_0.Linear_0"),
        ("Block", "Net_0.Block_0"),
        ("Linear", "Net_0.Block_0.Linear_1"),
        ("aten::linear", "Net_0.Block_0.Linear_1"),
        ("CrossEntropyLoss", "CrossEntropyLoss_0"),
    ]


def test_a_part_called_again_by_itself_keeps_its_place(tmp_path):
    """Checkpointing repeats a forward pass during backward, on autograd's thread."""
    run = imported(write(tmp_path / "a.json", [
        call("Net_0", 0, 100),
        call("Block_0", 10, 20),
        call("Block_0", 110, 120, tid=9),
        span("aten::mm", 111, 112, tid=9),
    ]), tmp_path)  # fmt: skip
    assert scopes(run)[1:] == [("Block", "Net_0.Block_0")] * 2 + [("aten::mm", "Net_0.Block_0")]


def test_modules_that_call_each_other_end_somewhere(tmp_path):
    run = imported(write(tmp_path / "a.json", [
        call("A_0", 0, 100), call("B_0", 10, 90), call("A_0", 20, 80), call("A_0", 30, 70),
    ]), tmp_path)  # fmt: skip
    assert {scope for _, scope in scopes(run)} == {"B_0.A_0", "A_0.B_0"}


def test_what_a_call_lies_in_may_be_in_another_piece():
    words = Vocabulary()
    modules = Modules(words)
    track = words.tracks[Track("cpu", 1, 1)]

    def piece(name: str, start: int, end: int):
        made = make(np.array([start]), np.array([end - start]), KIND["python"],
                    np.array([words.names[name]]), np.array([track]))  # fmt: skip
        return modules.taken_from(made)

    assert len(piece("nn.Module: Linear_0", 10, 20)) == 0
    assert len(piece("nn.Module: Net_0", 0, 100)) == 0
    assert len(piece("train.py(3): main", 0, 200)) == 1
    named = modules.named()
    paths = [list(words.scopes)[code] for code in named.args["module"]]
    assert paths == ["Net_0", "Net_0.Linear_0"]


def test_a_real_model_is_a_tree(tmp_path):
    run = imported(shared("tracelens/mi300_resnet_act_checkpoint.json.gz"), tmp_path)
    called = run.sql("SELECT DISTINCT scope, name FROM events WHERE kind = 'module'").fetchall()
    names = dict(called)
    # ResNet-18: a first convolution, 16 in its blocks, 3 that change the size.
    assert sum(name == "Conv2d" for name in names.values()) == 20
    assert sum(name == "BasicBlock" for name in names.values()) == 8
    assert all(scope.startswith("DistributedDataParallel_0") for scope, name in called
               if name != "CrossEntropyLoss")  # fmt: skip
    blocks = [scope for scope, name in called if name == "BasicBlock"]
    assert all(".ResNet_0.CheckpointWrapper_" in scope for scope in blocks)
    backward = run.sql("SELECT count(*) FROM events e JOIN op_args a ON a.event_id = e.id"
                       " WHERE is_backward AND scope LIKE '%Conv2d%'")  # fmt: skip
    assert backward.fetchall()[0][0] > 100
