"""Read a tensor of one element without dispatching an operator, and without making training wait.

An operator would show up in traces, in counts of operators and in the script's own modes. So a
value in the host's memory is read from its address. One that a device still computes is copied to
pinned memory, in the order of the device's work, and read when the copy is done.
"""

import struct
import sys
from collections.abc import Callable
from ctypes import c_double, c_float, c_uint16
from typing import Any

from strobe.collect.metrics.numbers import Later

# Copies of values that are on their way to the host, for each device and type.
_SLOTS = 256


class ScalarReader:
    """`None` stands for what is not a number, or cannot be read without changing training."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._tensor = torch.Tensor
        self._floats: dict[Any, Callable[[int], float]] = {
            torch.float32: lambda at, get=c_float.from_address: get(at).value,  # type: ignore[misc]
            torch.float64: lambda at, get=c_double.from_address: get(at).value,  # type: ignore[misc]
            torch.bfloat16: _bfloat16,
            torch.float16: _float16,
        }
        self._plain: dict[type, bool] = {torch.Tensor: True, torch.nn.Parameter: True}
        self._modes = torch._C._len_torch_function_stack
        self._copies: dict[Any, _Copies] = {}
        self.captures = 0  # CUDA graphs that are being captured

    def read(self, tensor: Any) -> float | Later | None:
        plain = self._plain.get(tensor.__class__)
        if plain is None:
            plain = self._plain[tensor.__class__] = self._is_plain(tensor.__class__)
        if not plain:
            return None
        if self._modes() or tensor.__class__ is not self._tensor:
            with self._torch._C.DisableTorchFunction():
                return self._read(tensor)
        return self._read(tensor)

    def _read(self, tensor: Any) -> float | Later | None:
        try:
            if tensor.is_cpu:
                get = self._floats.get(tensor.dtype)
                if get is None or tensor.numel() != 1 or tensor.is_neg():
                    return None
                at = tensor.data_ptr()
                return get(at) if at else None
        except RuntimeError:  # it has no storage: torch.func wraps it, or it is sparse
            return self._unwrapped(tensor)
        return self._from_device(tensor)

    def _is_plain(self, cls: type) -> bool:
        """A subclass may hold its values elsewhere: FakeTensor, DTensor, quantized tensors."""
        dispatch = getattr(cls, "__torch_dispatch__", None)
        none = self._torch._C._disabled_torch_dispatch_impl
        return issubclass(cls, self._tensor) and getattr(dispatch, "__func__", dispatch) is none

    def _unwrapped(self, tensor: Any) -> float | Later | None:
        functorch = self._torch._C._functorch
        while functorch.is_gradtrackingtensor(tensor):
            tensor = functorch.get_unwrapped(tensor)
        if functorch.is_functorch_wrapped_tensor(tensor) or tensor.layout is not (
            self._torch.strided
        ):
            return None
        if tensor.__class__ is not self._tensor or not tensor.is_cpu or not tensor.data_ptr():
            return None
        return self._read(tensor)

    def _from_device(self, tensor: Any) -> Later | None:
        """Not tested: no machine of ours has such a device."""
        is_one = tensor.is_cuda and tensor.dtype in self._floats and tensor.numel() == 1
        if not is_one or self._torch.cuda.is_current_stream_capturing():
            return None
        key = tensor.device, tensor.dtype
        if key not in self._copies:
            self._copies[key] = _Copies(self._torch, tensor.dtype)
        with self._torch.no_grad():
            return self._copies[key].begin(tensor)

    def watch_captures(self) -> Callable[[], None]:
        """While a CUDA graph is being captured, no thread may ask the device for anything."""
        cls = self._torch.cuda.CUDAGraph
        begin, end = cls.capture_begin, cls.capture_end

        def capture_begin(graph: Any, *args: Any, **kwargs: Any) -> Any:
            self.captures += 1
            return begin(graph, *args, **kwargs)

        def capture_end(graph: Any, *args: Any, **kwargs: Any) -> Any:
            try:
                return end(graph, *args, **kwargs)
            finally:
                self.captures -= 1

        cls.capture_begin, cls.capture_end = capture_begin, capture_end

        def undo() -> None:
            cls.capture_begin, cls.capture_end = begin, end

        return undo


class _Copies:
    """A ring of pinned memory. A value is read long before its place is used again."""

    def __init__(self, torch: Any, dtype: Any) -> None:
        self._torch = torch
        self._slots = torch.empty(_SLOTS, dtype=dtype, pin_memory=True).unbind()
        self._events = [torch.cuda.Event() for _ in range(_SLOTS)]
        self._waiting = [False] * _SLOTS
        self._next = 0

    def begin(self, tensor: Any) -> Later | None:
        place = self._next
        if self._waiting[place]:  # the writing thread is behind
            return None
        self._next = (place + 1) % _SLOTS
        self._waiting[place] = True
        self._slots[place].copy_(tensor.reshape(()), non_blocking=True)
        self._events[place].record(self._torch.cuda.current_stream(tensor.device))

        def read() -> float:
            self._events[place].synchronize()
            value = float(self._slots[place].item())
            self._waiting[place] = False
            return value

        return Later(read)


def _bfloat16(at: int) -> float:
    bits = c_uint16.from_address(at).value << 16
    return float(struct.unpack("f", bits.to_bytes(4, sys.byteorder))[0])


def _float16(at: int) -> float:
    bits = c_uint16.from_address(at).value
    return float(struct.unpack("e", bits.to_bytes(2, sys.byteorder))[0])
