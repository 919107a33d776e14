"""What an event of an XPlane stands for, by its metadata and its stats: each combination once."""

import json
import re
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from strobe.ingest.formats.kinds import KIND
from strobe.ingest.formats.xplane.file import Metadata, Plane, XFile, whole_stats
from strobe.ingest.formats.xplane.hlo import Instruction, Program, as_json
from strobe.ingest.formats.xplane.names import (
    BACKWARD,
    FORWARD,
    OTHER,
    UNNAMED,
    Place,
    Seen,
    direction,
    is_bookkeeping,
    kind_of,
    scope_of,
)
from strobe.ingest.trace.codes import Codes
from strobe.ingest.trace.spans import Vocabulary

HLO_PROTO = "Hlo Proto"
ALLOCATED, FREED = "MemoryAllocation", "MemoryDeallocation"
LEFT_OUT = -1
NO_PROGRAM = 0  # of operations that do not say theirs

_PROGRAM_NAME = re.compile(r"(.*)\((\d+)\)\Z", re.DOTALL)
_DETAIL = re.compile(r"(\w+):([^\s]+)")
_MOST_REGISTERS = 1024
_LARGEST = 2**62
_SIDES = {"pageable": "host", "pinned": "host", "host": "host", "device": "device"}
# Which part of a step an operation is, for graphs.py: what is neither of the two passes and comes
# after them is the update.
_PARTS = {UNNAMED: 0, FORWARD: 1, BACKWARD: 2, OTHER: 3}
# Instructions that contain others, which have events of their own.
_CONTAINERS = {"while", "conditional", "call"}


class Judged(NamedTuple):
    """Numbers of the vocabulary. `args` are those of spans."""

    kind: int  # LEFT_OUT of what is no event of its own
    name: int
    args: dict[str, int]
    direction: str = ""
    program: int = -1  # of operations: a number of Judge.program_codes
    memory: int = 0  # 1 takes memory, -1 gives it back


@dataclass
class Programs:
    """The compiled programs in a file, read when first asked for."""

    file: XFile | None = None
    places: dict[int, tuple[Plane, Metadata]] = field(default_factory=dict)
    by_name: dict[str, int] = field(default_factory=dict)
    _read: dict[int, Program] = field(default_factory=dict)

    def add(self, plane: Plane) -> None:
        for key, metadata in plane.events.items():
            found = _PROGRAM_NAME.match(metadata.name)
            name, id = (found.group(1), int(found.group(2))) if found else (metadata.name, key)
            self.places[id] = (plane, metadata)
            self.by_name[name] = id

    def instruction(self, program_id: Any, module: str, op: str) -> Instruction | None:
        id = program_id if program_id in self.places else self.by_name.get(module)
        if id is None or not op:
            return None
        if id not in self._read:
            self._read[id] = self._program(*self.places[id])
        return self._read[id].instruction(op)

    def _program(self, plane: Plane, metadata: Metadata) -> Program:
        data = metadata.stats.get(HLO_PROTO, b"")
        if self.file is not None and not data:
            data = whole_stats(self.file, plane, metadata).get(HLO_PROTO, b"")
        program = Program(data if isinstance(data, bytes) else b"")
        if self.file is not None:
            self.file.say("a compiled program is damaged", int(program.damaged > 0))
        return program


@dataclass
class Judge:
    words: Vocabulary
    programs: Programs = field(default_factory=Programs)
    program_codes: Codes[str] = field(default_factory=lambda: Codes({"": NO_PROGRAM}))

    def judge(self, place: Place, metadata: Metadata, stats: dict[str, Any]) -> Judged:
        """`stats` are those of the event and of its metadata."""
        name = metadata.shown or metadata.name
        if is_bookkeeping(name):
            return Judged(LEFT_OUT, -1, {})
        if name in (ALLOCATED, FREED) and "addr" in stats:
            return Judged(LEFT_OUT, -1, {}, memory=1 if name == ALLOCATED else -1)
        module, program_id = _text(stats, "hlo_module"), stats.get("program_id")
        op = _text(stats, "hlo_op")
        instruction = self.programs.instruction(program_id, module, op or name)
        if instruction is None or not (op or not place.is_host):
            instruction = None
        return self._of(place, name, stats, instruction, op, module or str(program_id or ""))

    def _of(
        self, place: Place, name: str, stats: dict[str, Any], instruction: Instruction | None,
        op: str, program: str,
    ) -> Judged:  # fmt: skip
        opcode = instruction.opcode if instruction else _text(stats, "hlo_category")
        is_launch = "correlation_id" in stats and place.is_host
        is_op = bool(op) and not is_launch
        seen = Seen(name, opcode, is_launch, is_op, is_copy="memcpy_details" in stats)
        kind = kind_of(place, seen)
        args = {"on_device": 1} if not place.is_host else {}
        op_name = _op_name(stats, instruction)
        way = ""
        if is_op or (kind in ("kernel", "collective") and not place.is_host):
            way = direction(op_name)
            self._take_op(args, kind, place, instruction, op_name, _source(stats, instruction))
            if "node" not in args and op and program:  # made by the compiler: by its program alone
                args["node"] = self.words.texts[f"{program}/{op}"]
            args |= _work(kind, stats, instruction)
        args |= self._details(kind, stats)
        is_part = kind in ("op", "kernel", "collective") and opcode not in _CONTAINERS
        code = self.program_codes[program] if is_part else -1
        return Judged(KIND[kind], self.words.names[name], args, way, code)

    def _take_op(
        self, args: dict[str, int], kind: str, place: Place, instruction: Instruction | None,
        op_name: str, source: str,
    ) -> None:  # fmt: skip
        words = self.words
        if scope := scope_of(op_name) if op_name else "":
            args["scope"] = words.scopes[scope]
        args["backward"] = int(direction(op_name) == BACKWARD)
        args["part"] = _PARTS[direction(op_name)]
        if op_name or source:
            args["node"] = words.texts[f"{op_name} ({source})" if source else op_name]
        if instruction is None:
            return
        if kind == "collective":
            args |= self._collective(instruction)
        elif place.is_host:
            dims, dtypes = as_json(instruction.inputs)
            args["dims"], args["dtypes"] = words.texts[dims], words.texts[dtypes]
            args["outputs"] = words.texts[as_json((instruction.output,))[0]]

    def _collective(self, instruction: Instruction) -> dict[str, int]:
        texts = self.words.texts
        found = {
            "operation": texts[json.dumps(instruction.collective())],
            "bytes": min(sum(shape.bytes for shape in instruction.inputs), _LARGEST),
            "received_bytes": instruction.output.bytes,
        }
        types = [t for shape in instruction.inputs for t in shape.types]
        if types:
            found["dtype"] = texts[json.dumps(types[0])]
        if instruction.group_size > 0:
            found["group_size"] = instruction.group_size
        if instruction.groups:
            shown = [list(members) for members in instruction.groups]
            found["group"] = texts[json.dumps(shown)]
            if len(shown) == 1:
                found["group_ranks"] = texts[json.dumps(shown[0])]
        return found

    def _details(self, kind: str, stats: dict[str, Any]) -> dict[str, int]:
        """How a kernel was launched, or what was copied."""
        details = dict(_DETAIL.findall(_text(stats, "kernel_details")))
        texts, found = self.words.texts, {}
        for name in ("grid", "block"):
            if name in details:
                found[name] = texts[json.dumps([_whole(n) for n in details[name].split(",")])]
        registers = _whole(details.get("regs"))
        if 0 < registers <= _MOST_REGISTERS:  # ROCm writes addresses there
            found["registers"] = registers
            shared = [_whole(details.get(f"{kind}_shared")) for kind in ("static", "dynamic")]
            found["shared_memory"] = sum(max(0, size) for size in shared)
        if "group_mem" in details:
            found["shared_memory"] = _whole(details["group_mem"])
        if _whole(details.get("occ_pct")) > 0:
            found["occupancy"] = _whole(details["occ_pct"])
        if kind in ("memcpy", "memset"):
            found |= self._moved(stats)
        return found

    def _moved(self, stats: dict[str, Any]) -> dict[str, int]:
        text = _text(stats, "memcpy_details") or _text(stats, "Memset_details")
        details = dict(_DETAIL.findall(text))
        size = _whole(details.get("size") or details.get("num_bytes"))
        found = {"bytes": size} if size > 0 else {}
        source, target = details.get("kind_src", ""), details.get("kind_dst", "")
        if source in _SIDES and target in _SIDES:
            found["direction"] = self.words.texts[f"{_SIDES[source]} to {_SIDES[target]}"]
            found["host_memory"] = self.words.texts[f"{source} {target}"]
        return found


def _op_name(stats: dict[str, Any], instruction: Instruction | None) -> str:
    if instruction is not None and instruction.op_name:
        return instruction.op_name
    for name in ("name", "tf_op", "tf_op_name"):
        given = _text(stats, name).split(":")[0]
        if "/" in given:
            return given
    return ""


def _source(stats: dict[str, Any], instruction: Instruction | None) -> str:
    return (instruction.source if instruction else "") or _text(stats, "source")


def _work(kind: str, stats: dict[str, Any], instruction: Instruction | None) -> dict[str, int]:
    """Work as the source counts it; of operators, else as it follows from their shapes."""
    found = {}
    flops, touched = stats.get("flops"), stats.get("bytes_accessed")
    if kind == "op" and instruction is not None:
        flops = instruction.flops if flops is None else flops
        touched = instruction.bytes if touched is None else touched
    if isinstance(flops, int | float) and 0 < flops < _LARGEST:
        found["flops"] = int(flops)
    if kind == "op" and isinstance(touched, int | float) and 0 < touched < _LARGEST:
        found["bytes"] = int(touched)
    return found


def _text(stats: dict[str, Any], name: str) -> str:
    found = stats.get(name, "")
    return found if isinstance(found, str) else ""


def _whole(text: str | None) -> int:
    """-1 for what is no number."""
    if text is None or not text.isascii() or not text.isdigit() or len(text) > 18:
        return -1
    return int(text)
