"""What XLA and JAX call things: scopes and directions from op names, kinds from names of events."""

import re
from functools import lru_cache
from typing import NamedTuple

from strobe.ingest.formats.xplane.hlo import COLLECTIVES

# "jit(train_step)/transpose(jvp(Net))/Block_0/Dense_0/dot_general": transformations around scopes.
_WRAPPED = re.compile(r"(\w+)\((.*)\)\Z", re.DOTALL)
_CALLS = {"jit", "pjit", "xla_call", "core_call", "closed_call", "custom_jvp", "custom_vjp"}
_TRANSFORMS = {"jvp", "transpose", "vmap", "pmap", "remat", "checkpoint", "shard_map", "xmap"}
_CONTROL = re.compile(
    r"(?:while|body|cond|body_fun|cond_fun|scan|checkpoint|remat\d*|rematted_computation|pjit"
    r"|closed_call|core_call|shmap_body|shard_map|custom_(?:jvp|vjp)_call(?:_jaxpr)?"
    r"|branch_\d+_fun|)\Z"
)
_BACKWARD = re.compile(r"(?:^|[/(])transpose\(")
_FORWARD = re.compile(r"(?:^|[/(])jvp\(")
_LONGEST_OP_NAME = 4096

FORWARD, BACKWARD, OTHER, UNNAMED = "forward", "backward", "other", ""


def direction(op_name: str) -> str:
    """Whether an operation belongs to the forward pass, to its gradient, or to what is around."""
    if not op_name:
        return UNNAMED
    if _BACKWARD.search(op_name):
        return BACKWARD
    return FORWARD if _FORWARD.search(op_name) else OTHER


@lru_cache(maxsize=1 << 16)
def scope_of(op_name: str) -> str:
    """The path of modules an operation was traced in, dotted; "" if it was in none."""
    # Of several operations that became one, the first speaks for it.
    *parts, _primitive = _split(op_name[:_LONGEST_OP_NAME].partition(";")[0])
    return ".".join(name for part in parts for name in _unwrapped(part))


def _split(path: str) -> list[str]:
    """At slashes that no bracket is open at."""
    parts, depth, start = [], 0, 0
    for place, letter in enumerate(path):
        depth += (letter in "([") - (letter in ")]")
        if letter == "/" and depth <= 0:
            parts.append(path[start:place])
            start = place + 1
    return [*parts, path[start:]]


def _unwrapped(part: str) -> list[str]:
    """The scopes in one part of a path: transformations do not count as scopes, nor do calls."""
    names = [part]
    while any(_WRAPPED.match(name) for name in names):
        inner: list[str] = []
        for name in names:
            found = _WRAPPED.match(name)
            if found is None:
                inner.append(name)
            elif found.group(1) in _TRANSFORMS:
                inner += _split(found.group(2))
            elif found.group(1) not in _CALLS:
                inner.append(name.replace("(", "\x00"))  # a scope that someone named so
        names = inner
    return [name.replace("\x00", "(") for name in names if not _CONTROL.match(name)]


class Place(NamedTuple):
    """Where an event happened, by the names of its plane and its line."""

    device: str  # cpu, gpu:0, tpu:0
    line: str

    @property
    def is_host(self) -> bool:
        return self.device == "cpu"


_DEVICE_PLANE = re.compile(r"/device:([A-Za-z]+):(\d+)(?: (\w+)\D*(\d+))?")


def device_of(plane: str) -> str | None:
    """The device a plane stands for; None if it holds no events of a host or a device."""
    if found := _DEVICE_PLANE.match(plane):
        kind, number, unit, of_unit = found.groups()
        name = f"{kind.lower()}:{number}"
        return f"{name} {unit.lower()}:{of_unit}" if unit else name
    if plane.startswith("/device:"):
        return plane.removeprefix("/device:").lower()
    return "cpu" if plane.startswith(("/host:", "Host", "Syscalls", "#Chip")) or not plane else None


# Lines that tell again what other lines of a device tell: which program, which step, which scope.
MODULES_LINE, STEPS_LINE = "XLA Modules", "Steps"
COUNTERS_LINE = "_counters_"
_RETOLD = {
    STEPS_LINE, MODULES_LINE, "XLA TraceMe", "Framework Name Scope", "Framework Ops", "Source code",
    "Sparse Core Steps", "Sparse Core Modules", "Launch Stats", "Host Offload Ops",
    "Tensor Core Sync Flag", "Sparse Core Syncs",
}  # fmt: skip
_BOOKKEEPING = re.compile(r"ThreadpoolListener::|end: ")
_COPY = re.compile(
    r"mem_?cpy|copy(?:host|device|peer)|__amd_rocclr_copyBuffer|copy(?:-start|-done)?(?:\.|\Z)"
    r"|(?:dynamic-)?slice-start",
    re.IGNORECASE,
)
_FILL = re.compile(r"memset|__amd_rocclr_fillBuffer", re.IGNORECASE)
_COLLECTIVE_KERNEL = re.compile(r"\w*(?:nccl|rccl)", re.IGNORECASE)
_COLLECTIVE_OP = re.compile(rf"(?:async-)?(?:{'|'.join(COLLECTIVES)})(?:-start|-done|[.\d]|\Z)")
_DRIVER_CALL = re.compile(r"(?:cuda|hip|cu|hsa_|nccl|rccl)[A-Z_]\w*")
_WAIT = re.compile(
    r"(?:cuda|hip|cu)(?:Device|Stream|Event|Ctx)Synchronize|.*::Await\b|.*[Bb]lock(?:HostUntil|_until)"
    r"|PjrtAsyncWait|CopyToLiteral|.*::ToLiteral"
)
_DATA = re.compile(r"Iterator(?:::|GetNext)|.*IteratorGetNext|tf\.data")
_RUNTIME = re.compile(
    r"(?:\[\d+\] )?\w+::|(?:Invoke)?Rendezvous|Wait: |Wait for |PJRT_|PjRt|Pjit|Pjrt|pjit|cpp_pjit"
    r"|Tfrt|TfRt|DevicePut|ParseArguments|Handle in|AllocateOutput|Thunk|.*:XLA GPU module"
    r"|Build buffer|Resolve constant|MakeOutput|RecordUsage|ThenExecute|ComputeSemaphore|shard_args"
    r"|BufferFromHost|(?:Transfer|Copy|Execute)(?:[A-Z]\w*)?\Z|Linearize|Delinearize|XlaCompile"
    r"|KernelLaunch|EnqueueRequest|DoEnqueue|RunProgram|py_xla"
)


def is_bookkeeping(name: str) -> bool:
    """Instants by which the profiler strings other events together."""
    return bool(_BOOKKEEPING.match(name))


class Seen(NamedTuple):
    """What an event's kind is judged by."""

    name: str
    opcode: str = ""  # of the instruction behind it, or its category
    is_launch: bool = False  # has a number in common with what it launched
    is_op: bool = False  # runs an instruction of a program
    is_copy: bool = False


def kind_of(place: Place, seen: Seen) -> str:
    return _host_kind(seen) if place.is_host else _device_kind(place, seen)


def _device_kind(place: Place, seen: Seen) -> str:
    if place.line in _RETOLD:
        return "annotation"
    if _is_collective(seen):
        return "collective"
    if _FILL.match(seen.name) or "Memset" in place.line:
        return "memset"
    if seen.is_copy or _COPY.match(seen.name) or "Memcpy" in place.line:
        return "memcpy"
    return "kernel"


def _is_collective(seen: Seen) -> bool:
    if _COLLECTIVE_KERNEL.match(seen.name):
        return True
    return bool(_COLLECTIVE_OP.match(seen.opcode) or _COLLECTIVE_OP.match(seen.name))


def _host_kind(seen: Seen) -> str:
    if seen.name.startswith("$"):
        return "python"
    if _WAIT.match(seen.name):
        return "sync"
    if seen.is_launch or _DRIVER_CALL.match(seen.name):
        return "runtime"
    if seen.is_op:
        return "collective" if _is_collective(seen) else "op"
    if _DATA.match(seen.name):
        return "data"
    return "runtime" if _RUNTIME.match(seen.name) else "annotation"


_ALLOCATOR = re.compile(r"([A-Za-z]+)_(\d+)_bfc")


def device_of_allocator(name: str) -> str:
    """gpu:0, for GPU_0_bfc; the host's otherwise."""
    found = _ALLOCATOR.match(name)
    if found is None:
        return "cpu"
    kind = found.group(1).lower()
    return f"{kind}:{found.group(2)}"
