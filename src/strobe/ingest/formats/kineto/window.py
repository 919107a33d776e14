"""A window of a recording made here: torch.profiler's file, with the names of modules put back."""

import json
from pathlib import Path
from typing import Any

from strobe.ingest.formats import kineto
from strobe.ingest.formats.kinds import MODULE_NAME
from strobe.ingest.formats.kineto import spans as kineto_spans
from strobe.ingest.formats.kineto.spans import Renamed
from strobe.ingest.recording import early_windows, option_filter
from strobe.ingest.recording.windows import Window
from strobe.ingest.trace.problems import Problems
from strobe.ingest.trace.spans import Vocabulary


def read(
    path: Path, number: int, started_unix_ns: int, words: Vocabulary, said: Problems,
    options: dict[str, Any],
) -> Window:  # fmt: skip
    """A window in run time, its texts entered into the rank's vocabulary."""
    trace = early_windows.read(path)
    said.update(trace.problems)
    names = _names(path, said)
    renamed = Renamed(
        [_shown_name(name, names) for name in trace.names],
        _module_scopes(trace, names, words, said),
    )
    spans = kineto_spans.spans(trace, words, number, renamed)
    spans.ts_ns = spans.ts_ns - started_unix_ns
    memory = option_filter.memory(kineto_spans.memory(trace, words), options)
    return Window(
        number,
        option_filter.spans(spans, options, words),
        [memory._replace(ts_ns=memory.ts_ns - started_unix_ns)],
        option_filter.memory_curve(trace, spans, options, words, started_unix_ns),
    )


def _names(path: Path, said: Problems) -> dict[str, dict[str, Any]]:
    """What the recorder called things: modules by number, user names that torch would garble."""
    file = path.with_name(path.name.split(".")[0] + ".names.json")
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
        return {key: dict(found.get(key) or {}) for key in ("modules", "names")}
    except (OSError, ValueError, TypeError, AttributeError) as error:
        said.add(file.name, f"the names of modules are missing: {error}")
        return {"modules": {}, "names": {}}


def _shown_name(name: str, names: dict[str, dict[str, Any]]) -> str:
    module = MODULE_NAME.match(name)
    if module:
        entry = names["modules"].get(module.group(1))
        return str(entry.get("class", name)) if isinstance(entry, dict) else name
    return str(names["names"].get(name, name))


def _module_scopes(
    trace: kineto.Trace, names: dict[str, dict[str, Any]], words: Vocabulary, said: Problems
) -> list[int]:
    """For each name of the trace the number of the module path it stands for, or -1."""
    scopes = []
    for name in trace.names:
        module = MODULE_NAME.match(name)
        entry = names["modules"].get(module.group(1)) if module else None
        if isinstance(entry, dict) and isinstance(entry.get("path"), str):
            scopes.append(words.scopes[entry["path"]])
        else:
            scopes.append(-1)
            if module and names["modules"]:
                said.add("window names", "a module was recorded without its name")
    return scopes
