"""What a job's YAML file requests to record, with the keys of mindformers.

A job's file is about everything: model, data, optimizer. Only the keys about profiling are read, at
its top level or below `strobe:`; a misspelled key that resembles one of them is an error.
"""

import difflib
import os
import re
from pathlib import Path
from typing import Any

from strobe.errors import MissingPackage, UsageError
from strobe.model.option_values import own_name, unknown
from strobe.model.options import NAMES, OPTIONS, WITHOUT_EFFECT, YAML, Options

# Keys with a special meaning; all others are names of options.
_SWITCH, _FIRST, _LAST = "profile", "profile_start_step", "profile_stop_step"
_OWN_KEYS = (_SWITCH, _FIRST, _LAST)
_SECTION = "strobe"

_RANKS = "profile_rank_ids"

# What mindformers records by default.
_DEFAULT_STEPS = (1, 10)

# mindformers writes to `rank_{id}` at the end of a path, or `rank_{id}/profiler`; our ranks have
# folders of their own in the run.
_RANK_FOLDER = re.compile(r"[/\\]?rank_(\{\w*\}|\$\{?\w+\}?|\d+)([/\\]profiler)?[/\\]?\Z")

# The callback of mindformers that collects a summary.
_MONITOR = "SummaryMonitor"
_MONITOR_KEYS = (
    "summary_dir", "collect_freq", "collect_specified_data", "keep_default_action",
    "custom_lineage_data", "collect_tensor_freq", "max_file_size", "export_options",
)  # fmt: skip

# An unknown key counts as a misspelling of ours only if it is at least this similar (0 to 1).
_LIKE_OURS = 0.85


def read(path: str | os.PathLike[str]) -> dict[str, Any] | None:
    """The options as given; None if the file says not to profile."""
    data = _loaded(Path(path))
    section = data.get(_SECTION)
    if section is not None and not isinstance(section, dict):
        raise UsageError.of("errors/yaml.section", where=str(path))
    try:
        given = {**_ours(data), **_strict(section or {})}
        return _options(given)
    except UsageError as error:
        error.where = error.where or str(path)
        raise


def summary(path: str | os.PathLike[str]) -> dict[str, Any] | None:
    """The options of the SummaryMonitor among its `callbacks`; None if there is none."""
    from strobe.callbacks.summary.errors import WrongValue, check_keys
    from strobe.callbacks.summary.options import SummaryOptions

    callbacks = _loaded(Path(path)).get("callbacks")
    callbacks = callbacks if isinstance(callbacks, list) else []
    found = [one for one in callbacks if isinstance(one, dict) and one.get("type") == _MONITOR]
    if not found:
        return None
    # mindformers' documents write None, which is a text in YAML
    given = {k: None if v == "None" else v for k, v in found[0].items() if k != "type"}
    try:
        if len(found) > 1:
            raise WrongValue.of("errors/summary.two-collectors", count=len(found))
        check_keys(_MONITOR, given, _MONITOR_KEYS)
        given = {name: value for name, value in given.items() if value is not None}
        folder = given.pop("summary_dir", None)
        SummaryOptions.of(**given)
    except UsageError as error:
        error.where = str(path)
        raise
    if folder is not None:
        given["summary_dir"] = _RANK_FOLDER.sub("", str(folder)) or "."
    return given


def _loaded(path: Path) -> dict[str, Any]:
    try:
        import yaml
    except ImportError:
        raise MissingPackage.of("errors/yaml.no-pyyaml", where=str(path)) from None
    try:
        data = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError.of(
            "errors/yaml.cannot-read", where=str(path), reason=error.strerror
        ) from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        problem = " ".join(str(error).split())
        raise UsageError.of("errors/yaml.not-yaml", where=str(path), reason=problem) from None
    if not isinstance(data, dict):
        raise UsageError.of("errors/yaml.not-mapping", where=str(path))
    return data


def _names() -> set[str]:
    in_yaml = {name for name, own in NAMES.items() if YAML in OPTIONS[own].metadata["ways"]}
    # Keys that a job's file uses for something else are only read below `strobe:`.
    others = {"steps", "every", "format", "formats", "path", "start", "light", "whole", "ranks"}
    return in_yaml - others


def _ours(data: dict[str, Any]) -> dict[str, Any]:
    """The keys at the top level that are about profiling."""
    ours = _names() | set(WITHOUT_EFFECT)
    found = {}
    for key, value in data.items():
        if key in ours or key in _OWN_KEYS:
            found[key] = value
        elif isinstance(key, str) and key != _SECTION:
            known = [*ours, *_OWN_KEYS]
            is_like = difflib.get_close_matches(key, known, n=1, cutoff=_LIKE_OURS)
            if is_like or (key.startswith("profile") and not isinstance(value, dict)):
                raise unknown(key, known)
    if "output_path" not in found and "profile_output" not in found and data.get("output_dir"):
        found["output_path"] = os.path.join(str(data["output_dir"]), "profile")
    return found


def _strict(section: dict[str, Any]) -> dict[str, Any]:
    for key in section:
        if key not in _OWN_KEYS:
            own_name(key)
    return section


def _options(given: dict[str, Any]) -> dict[str, Any] | None:
    switch = given.pop(_SWITCH, False)
    if not isinstance(switch, bool):
        raise UsageError.of("errors/yaml.not-bool", value=repr(switch))
    if given.get(_RANKS, ()) is None:  # mindformers' value for all ranks
        del given[_RANKS]
    first, last = given.pop(_FIRST, None), given.pop(_LAST, None)
    for key in ("output_path", "profile_output"):
        if isinstance(given.get(key), str):
            given[key] = _RANK_FOLDER.sub("", given[key]) or "."
    at_once = given.pop("init_start_profile", None)
    has_choice = any(given.get(name) for name in ("light", "steps", "every", "whole", "schedule"))
    if first is not None or last is not None or not has_choice:
        given["steps"] = _steps(first, last, bool(at_once))
    # mistakes are reported for the file, even where they have no effect yet
    Options.from_json(given)
    return given if switch else None


def _steps(first: Any, last: Any, at_once: bool) -> tuple[int, int]:
    """mindformers names the first and the last step; both are recorded."""
    first = _DEFAULT_STEPS[0] if first is None else first
    last = max(_DEFAULT_STEPS[1], first) if last is None else last
    if type(first) is not int or type(last) is not int or not 1 <= first <= last:
        raise UsageError.of(
            "errors/yaml.empty-steps",
            first_name=_FIRST,
            first=repr(first),
            last_name=_LAST,
            last=repr(last),
        )
    # Then it records from the beginning, whatever the first step is.
    return (1 if at_once else first, last + 1)
