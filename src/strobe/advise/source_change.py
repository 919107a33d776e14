"""A fix as a change of the user's source: which call, with which arguments.

Only calls whose parameters are known here are changed, and only if the source on disk still has the
call at the line that was recorded. Files are read, but never written.
"""

import ast
import difflib
import os
import re
from dataclasses import dataclass
from pathlib import Path

from strobe.advise.finding import Finding
from strobe.errors import MissingData
from strobe.messages import message
from strobe.store.run import Run

# The calls that fixes change, with the parameters that may be given by position.
_POSITIONS = {
    "DataLoader": ("dataset", "batch_size", "shuffle", "sampler", "batch_sampler", "num_workers",
                   "collate_fn", "pin_memory", "drop_last", "timeout", "worker_init_fn"),
}  # fmt: skip
_VALUE = r"[A-Za-z_]\w*=[\w.\"'-]+"
# DataLoader(..., num_workers=2); Set `num_workers=2, persistent_workers=True` on the DataLoader
_CALL = re.compile(rf"\b(\w+)\(\.\.\., ({_VALUE}(?:, {_VALUE})*)\)")
_ON_CALL = re.compile(rf"`?({_VALUE}(?:, {_VALUE})*)`? on (?:the|its) `?(\w+)")
_WHERE = re.compile(r"(.+):(\d+)\Z")


@dataclass(frozen=True)
class Change:
    """Arguments that a call at a line needs."""

    function: str
    arguments: dict[str, str]
    file: Path
    line: int


def change_of(finding: Finding, run: Run) -> Change:
    """What the first fix of a finding changes. Raises MissingData, with the reason, if it is
    unknown."""
    wanted = arguments_of(finding)
    if wanted is None:
        raise MissingData(message("outcome.not-one-call"))
    function, arguments = wanted
    if function not in _POSITIONS:
        raise MissingData(message("outcome.unknown-function", function=function))
    at = _WHERE.match(finding.where or "")
    if at is None:
        raise MissingData(message("outcome.unknown-place"))
    return Change(function, arguments, _file(run, at[1], int(at[2])), int(at[2]))


def arguments_of(finding: Finding) -> tuple[str, dict[str, str]] | None:
    """The function that the first fix names, and the arguments that it sets."""
    fix = finding.fixes[0] if finding.fixes else ""
    if match := _CALL.search(fix):
        function, arguments = match.groups()
    elif match := _ON_CALL.search(fix):
        arguments, function = match.groups()
    else:
        return None
    return function, dict(argument.split("=", 1) for argument in arguments.split(", "))


def _file(run: Run, name: str, line: int) -> Path:
    """The file of a place: findings only have its short name."""
    query = "SELECT DISTINCT file FROM places WHERE line = ?"
    files = [file for (file,) in run.connection.execute(query, [line]).fetchall()]
    matching = [file for file in files if file == name or file.endswith(f"{os.sep}{name}")]
    if len(matching) != 1:
        raise MissingData(message("outcome.unknown-file", name=name))
    if not os.path.isfile(matching[0]):
        raise MissingData(message("outcome.no-file", file=matching[0]))
    return Path(matching[0])


def diff(change: Change, root: Path) -> str:
    """The change as a unified diff; paths are relative to `root` if the file is below it."""
    try:
        before = change.file.read_bytes()
        tree = ast.parse(before)
    except (OSError, ValueError, SyntaxError) as error:
        raise MissingData(message("outcome.unreadable", file=change.file, error=error)) from error
    after = _changed(before, _call(tree, change), change.arguments)
    try:
        ast.parse(after)
    except SyntaxError as error:  # no change is better than one that breaks the script
        where = f"{change.file}:{change.line}"
        raise MissingData(
            message("outcome.unusual", function=change.function, where=where)
        ) from error
    file, below = change.file.resolve(), root.resolve()
    name = str(file.relative_to(below if file.is_relative_to(below) else file.anchor))
    old, new = (text.decode("utf-8", "replace").splitlines(keepends=True)
                for text in (before, after))  # fmt: skip
    found = "".join(difflib.unified_diff(old, new, fromfile=f"a/{name}", tofile=f"b/{name}"))
    if not found:
        raise MissingData(message("outcome.already-changed", where=f"{name}:{change.line}"))
    return found


def _call(tree: ast.AST, change: Change) -> ast.Call:
    calls = [
        node for node in ast.walk(tree)
        if isinstance(node, ast.Call) and _name(node) == change.function
        and node.lineno <= change.line <= (node.end_lineno or node.lineno)
    ]  # fmt: skip
    values = {"function": change.function, "where": f"{change.file}:{change.line}"}
    if len(calls) != 1:
        raise MissingData(message("outcome.no-single-call", **values))
    (call,) = calls
    if any(keyword.arg is None for keyword in call.keywords):
        raise MissingData(message("outcome.from-dictionary", **values))
    if any(isinstance(arg, ast.Starred) for arg in call.args):
        raise MissingData(message("outcome.from-list", **values))
    return call


def _name(call: ast.Call) -> str:
    function = call.func
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def _changed(source: bytes, call: ast.Call, arguments: dict[str, str]) -> bytes:
    """The source with these arguments: present ones are replaced, others are added at the end."""
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    present: dict[str | None, ast.expr] = {word.arg: word.value for word in call.keywords}
    present |= dict(zip(_POSITIONS[_name(call)], call.args, strict=False))
    edits: list[tuple[int, int, str]] = []
    added = []
    for name, value in arguments.items():
        if name in present:
            edits.append((*_span(present[name], starts), value))
        else:
            added.append(f"{name}={value}")
    if added:
        # A keyword ends where its value does.
        ends = [_span(node, starts)[1] for node in (*call.args, *(k.value for k in call.keywords))]
        end = max(ends, default=_span(call, starts)[1] - 1)
        edits.append((end, end, (", " if ends else "") + ", ".join(added)))
    for begin, end, text in sorted(edits, reverse=True):
        source = source[:begin] + text.encode() + source[end:]
    return source


def _span(node: ast.expr, starts: list[int]) -> tuple[int, int]:
    """Where a node begins and ends in the source, in bytes."""
    end_line, end_column = node.end_lineno or node.lineno, node.end_col_offset or 0
    return starts[node.lineno - 1] + node.col_offset, starts[end_line - 1] + end_column
