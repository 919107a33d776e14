"""What the wrappers around torch's own functions leave behind, in this very process."""

from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

import strobe  # noqa: E402
from strobe.model.journal import Mark  # noqa: E402


@pytest.fixture
def hooks(tmp_path: Path):
    profiler = strobe.Profiler(tmp_path / "run", light=True)
    profiler.start()
    yield profiler._recorder.hooks
    profiler.stop()
    profiler._recorder.close("finished")


@pytest.fixture
def marks(hooks):
    seen: list[str] = []
    hooks.mark = lambda code, ref=0, value=0, ts_ns=0: seen.append(Mark(code).name)
    return seen


def optimizer_of(cls=torch.optim.SGD):
    parameter = torch.zeros(2, requires_grad=True)
    parameter.grad = torch.ones(2)
    return cls([parameter], lr=0.1)


STEP = [
    "DATA_ASKED", "DATA_CAME", "ZERO_GRAD", "FORWARD_BEGAN", "FORWARD_ENDED",
    "BACKWARD_BEGAN", "BACKWARD_ENDED", "UPDATE_BEGAN", "UPDATE_ENDED",
]  # fmt: skip


def test_a_step_leaves_nine_marks(marks):
    net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 1))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for x in torch.utils.data.DataLoader(torch.zeros(3, 2)):
        optimizer.zero_grad()
        torch.nn.MSELoss()(net(x), torch.zeros(1, 1)).backward()
        optimizer.step()
    of_steps = [mark for mark in marks if mark in STEP]  # loaders have marks of their own
    assert of_steps == [*STEP * 3, "DATA_ASKED", "DATA_CAME"]


def test_an_update_that_raises_is_none_and_the_next_one_counts(marks):
    class Fails(torch.optim.SGD):
        def step(self):
            raise ValueError("in the middle")

    with pytest.raises(ValueError, match="in the middle"):
        optimizer_of(Fails).step()
    optimizer_of().step()
    assert marks == ["UPDATE_BEGAN", "UPDATE_BEGAN", "UPDATE_ENDED"]


def test_updates_nest(marks, hooks):
    class Outer(torch.optim.SGD):
        def step(self):
            inner.step()

    inner = optimizer_of()
    optimizer_of(Outer).step()
    assert marks == ["UPDATE_BEGAN", "UPDATE_BEGAN", "UPDATE_ENDED", "UPDATE_ENDED"]
    assert hooks.updates == {}


def test_a_backward_pass_inside_another_is_part_of_it(marks):
    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, gradient):
            with torch.enable_grad():
                torch.ones(1, requires_grad=True).sum().backward()
            return gradient

    Twice.apply(torch.ones(1, requires_grad=True)).sum().backward()
    assert marks == ["BACKWARD_BEGAN", "BACKWARD_ENDED"]


def test_nothing_of_the_script_is_kept_alive(hooks):
    loader = torch.utils.data.DataLoader(torch.zeros(4, 2), batch_size=2)
    optimizer = optimizer_of()
    for _ in range(3):
        for _ in loader:
            optimizer.step()
    assert len(hooks.optimizers) == 1
    del optimizer
    assert hooks.optimizers == {} == hooks.loaders


def test_exports_and_graphs_are_no_forward_passes(marks):
    net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU())
    torch.export.export(net, (torch.zeros(1, 2),), strict=False)
    assert marks == []
    torch.compile(net, backend="eager", fullgraph=True)(torch.zeros(1, 2))
    assert marks == ["FORWARD_BEGAN", "FORWARD_ENDED"]
