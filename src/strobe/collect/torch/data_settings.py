"""The settings of a data loader."""

import platform
from typing import Any

from strobe.collect.host.sampler import usable_cores


def settings_of(loader: Any) -> dict[str, Any]:
    """The user's settings; functions and objects are represented by their names."""
    from torch.utils.data import IterableDataset

    dataset = getattr(loader, "dataset", None)
    return {
        "num_workers": getattr(loader, "num_workers", None),
        "batch_size": _batch_size(loader),
        "prefetch_factor": getattr(loader, "prefetch_factor", None),
        "pin_memory": bool(getattr(loader, "pin_memory", False)),
        "persistent_workers": bool(getattr(loader, "persistent_workers", False)),
        "drop_last": bool(getattr(loader, "drop_last", False)),
        "in_order": bool(getattr(loader, "in_order", True)),
        "dataset": type(dataset).__name__,
        "is_iterable": isinstance(dataset, IterableDataset),
        "items": _count(loader),
        "sampler": type(getattr(loader, "sampler", None)).__name__,
        "batch_sampler": type(getattr(loader, "batch_sampler", None)).__name__,
        "collate_fn": _name(getattr(loader, "collate_fn", None)),
        "worker_init_fn": _name(getattr(loader, "worker_init_fn", None)),
        "start_method": _start_method(loader),
        "cores": usable_cores(),
        "host": platform.node(),
    }


def _batch_size(loader: Any) -> int | None:
    size = getattr(loader, "batch_size", None)
    if size is None:
        size = getattr(getattr(loader, "batch_sampler", None), "batch_size", None)
    return size if isinstance(size, int) else None


def _count(loader: Any) -> int | None:
    """The number of items, if torch's own sampler counts them anyway: counting may run
    user code.
    """
    from torch.utils.data import RandomSampler, SequentialSampler

    if type(getattr(loader, "sampler", None)) not in (RandomSampler, SequentialSampler):
        return None
    try:
        return len(loader.dataset)
    except Exception:  # torch will get it too, and raise it where it belongs
        return None


def _name(function: Any) -> str | None:
    if function is None:
        return None
    return getattr(function, "__name__", None) or type(function).__name__


def _start_method(loader: Any) -> str | None:
    if not getattr(loader, "num_workers", 0):
        return None
    import multiprocessing

    context = getattr(loader, "multiprocessing_context", None)
    method = getattr(context, "get_start_method", None) or multiprocessing.get_start_method
    return str(method(allow_none=True) or multiprocessing.get_all_start_methods()[0])
