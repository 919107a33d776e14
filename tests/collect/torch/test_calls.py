import traceback

import pytest

torch = pytest.importorskip("torch")

from strobe.collect.torch.calls import CallCode  # noqa: E402

CALL = torch.nn.Module._wrapped_call_impl


class Fails(torch.nn.Module):
    def forward(self, x):
        raise ValueError("in the middle")


def failure() -> str:
    try:
        torch.nn.Sequential(torch.nn.Identity(), Fails())(torch.zeros(1))
    except ValueError:
        return traceback.format_exc()
    raise AssertionError


class Span:
    """Of a module, in place of torch.profiler's."""

    def __init__(self, label: str, seen: list[str]) -> None:
        self.label, self.seen = label, seen

    def __enter__(self) -> None:
        self.seen.append(f"[{self.label}")

    def __exit__(self, *error) -> None:
        self.seen.append(f"{self.label}]")


@pytest.fixture
def calls():
    seen: list[str] = []
    inside: dict[int, str] = {}
    hooks = {
        "_strobe_is_traced": lambda: False,
        "_strobe_compiler": {},
        "_strobe_compiling": "",
        "_strobe_get_ident": lambda: 1,
        "_strobe_inside": inside,
        "_strobe_unmarked": {torch.nn.MSELoss},
        "_strobe_began": lambda m: (
            (
                inside.update({1: "forward"}),
                seen.append(f"+{type(m).__name__}"),
            )
            and 7
        ),
        "_strobe_ended": lambda m, token: (inside.clear(), seen.append(f"-{type(m).__name__}")),
        "_strobe_open": {1: []},
        "_strobe_labels": {},
        "_strobe_label": lambda m: type(m).__name__,
        "_strobe_new_span": lambda label: Span(label, seen),
        "_strobe_left": lambda span: seen.append(f"left {span.label}"),
    }
    calls = CallCode(CALL, hooks)
    yield calls, seen
    calls.use(calls.original)


def test_light_sees_the_outermost_module_only(calls):
    codes, seen = calls
    codes.use(codes.light)
    torch.nn.Sequential(torch.nn.Identity(), torch.nn.ReLU())(torch.zeros(1))
    assert seen == ["+Sequential", "-Sequential"]


def test_light_leaves_a_loss_unmarked(calls):
    codes, seen = calls
    codes.use(codes.light)
    torch.nn.MSELoss()(torch.zeros(1), torch.ones(1))
    assert seen == []


def test_full_sees_every_module(calls):
    codes, seen = calls
    codes.use(codes.full)
    torch.nn.Sequential(torch.nn.Identity(), torch.nn.ReLU())(torch.zeros(1))
    parts = ["[Identity", "Identity]", "[ReLU", "ReLU]"]
    assert seen == ["+Sequential", "[Sequential", *parts, "Sequential]", "-Sequential"]


def test_a_span_that_the_end_of_the_window_left_is_not_left_again(calls):
    codes, seen = calls
    codes.use(codes.full)
    stack = CALL.__globals__["_strobe_open"][1]

    class Ends(torch.nn.Module):
        def forward(self, x):
            stack.clear()
            return x

    Ends()(torch.zeros(1))
    assert seen == ["+Ends", "[Ends", "left Ends", "-Ends"]


def test_tracebacks_and_the_function_itself_stay_as_they_were(calls):
    codes, seen = calls
    bare = failure()
    for code in (codes.light, codes.full):
        codes.use(code)
        assert failure() == bare
        assert torch.nn.Module.__call__ is CALL
    codes.use(codes.original)
    assert failure() == bare and "Fails]" in seen


def test_the_original_may_come_back_in_the_middle_of_a_call(calls):
    codes, seen = calls
    codes.use(codes.light)

    class Ends(torch.nn.Module):
        def forward(self, x):
            codes.use(codes.original)
            return x

    Ends()(torch.zeros(1))
    assert seen == ["+Ends", "-Ends"]
