"""A value is read from memory, exactly and unnoticed, or not at all."""

import pytest

torch = pytest.importorskip("torch")

from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

from strobe.collect.torch.scalars import ScalarReader  # noqa: E402


@pytest.fixture
def reader():
    return ScalarReader(torch)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("value", [1 / 3, -2.5e-5, float("inf"), 0.0])
def test_every_type_is_read_exactly(reader, dtype, value):
    tensor = torch.tensor([0.0, value, 0.0], dtype=dtype)[1]
    assert reader.read(tensor) == tensor.item()


def test_nan_is_a_value(reader):
    found = reader.read(torch.tensor(float("nan")))
    assert found != found


SPARSE = torch.sparse_coo_tensor([[0]], [1.0], (1,), check_invariants=True)


@pytest.mark.parametrize("tensor", [
    torch.zeros(2), torch.zeros(0), torch.tensor(1), torch.tensor(1j), torch.tensor(True),
    torch.zeros((), device="meta"), SPARSE,
    torch.tensor([1 + 2j]).conj().imag, None, 1.0,
])  # fmt: skip
def test_what_is_no_plain_number_is_left_out(reader, tensor):
    assert reader.read(tensor) is None


def test_fake_tensors_are_left_out(reader):
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        assert reader.read(torch.zeros(())) is None


def test_a_subclass_without_storage_of_its_own_is_read(reader):
    class Named(torch.Tensor):
        pass

    assert reader.read(torch.tensor(0.5).as_subclass(Named)) == 0.5


def test_wrapped_tensors_of_torch_func_are_read(reader):
    found = []

    def loss_of(x):
        loss = (x * x).sum()
        found.append(reader.read(loss))
        return loss

    torch.func.grad(loss_of)(torch.tensor([1.0, 2.0]))
    torch.func.vmap(torch.func.grad(loss_of))(torch.ones(3, 2))
    assert found == [5.0, None]


def test_no_operator_is_dispatched(reader):
    class Fails(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            raise AssertionError(function)

    class Refuses(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            raise AssertionError(function)

    tensor = torch.tensor(0.25, requires_grad=True) * 1
    with Fails(), Refuses():
        assert reader.read(tensor) == 0.25
