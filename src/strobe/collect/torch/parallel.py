"""How the ranks of a training share its work: backend, groups, and what wraps the model."""

from typing import Any

from strobe.collect.recorder import Recorder

# Settings of DistributedDataParallel that decide how gradients are exchanged.
_OF_DDP = (
    "bucket_bytes_cap", "find_unused_parameters", "gradient_as_bucket_view", "static_graph",
    "broadcast_buffers", "mixed_precision",
)  # fmt: skip
# Attributes that identify a module of FSDP (either version), and how it shards.
_OF_FSDP = ("sharding_strategy", "cpu_offload", "mixed_precision", "limit_all_gathers")

# Before this iteration DistributedDataParallel has not analysed its own work.
_FIRST_REPORT = 10

# If there are more groups, they are only counted: a large mesh has one for each row and column.
_MOST_GROUPS = 64


class Parallel:
    """Writes a fact when it first detects how the work is shared, and whenever it learns more."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._wrappers: dict[str, dict[str, Any]] = {}
        self._last: dict[str, Any] = {}

    def see(self, torch: Any, module: Any = None) -> None:
        if module is not None:
            self._see_wrapper(module)
        found = {**_groups(torch), "wrappers": list(self._wrappers.values())}
        if found != self._last:
            self._last = found
            self._recorder.journal.fact(type="parallel", **found)

    def _see_wrapper(self, module: Any) -> None:
        name = type(module).__name__
        settings: tuple[str, ...]
        if name == "DistributedDataParallel":
            settings, inner = _OF_DDP, type(module.module).__name__
        elif "FullyShardedDataParallel" in name or name.startswith("FSDP"):
            settings, inner = _OF_FSDP, type(getattr(module, "module", module)).__name__
        elif name == "DataParallel":
            settings, inner = ("device_ids",), type(module.module).__name__
        else:
            return
        self._wrappers[name] = {
            "wrapper": name,
            "module": inner,
            **{key: _plain(getattr(module, key)) for key in settings if hasattr(module, key)},
            **_use_of_parameters(module),
        }


def _use_of_parameters(module: Any) -> dict[str, Any]:
    """What DistributedDataParallel itself found, if it searches for unused parameters. It does so
    only in some iterations, first in the tenth.
    """
    if not getattr(module, "find_unused_parameters", False):
        return {}
    try:
        known = module._get_ddp_logging_data()
        if int(known["iteration"]) < _FIRST_REPORT:
            return {}
        return {
            "unused_parameter_bytes": int(known["unused_parameter_size"]),
            "parameter_tensors": int(known["num_parameter_tensors"]),
        }
    except Exception:  # an internal of another version
        return {}


def _groups(torch: Any) -> dict[str, Any]:
    distributed = torch.distributed
    if not (distributed.is_available() and distributed.is_initialized()):
        return {"mode": "alone"}
    world = getattr(distributed.distributed_c10d, "_world", None)  # not torch's public interface
    known = dict(getattr(world, "pg_names", None) or {})
    groups = [
        {"name": str(name), "ranks": list(distributed.get_process_group_ranks(group)),
         "backend": str(distributed.get_backend(group))}
        for group, name in list(known.items())[:_MOST_GROUPS]
    ]  # fmt: skip
    return {
        "mode": "distributed",
        "backend": str(distributed.get_backend()),
        "world_size": int(distributed.get_world_size()),
        "group_count": len(known),
        "groups": groups,
    }


def _plain(value: Any) -> Any:
    """A value that JSON can represent."""
    return value if isinstance(value, bool | int | float | str | type(None)) else str(value)
