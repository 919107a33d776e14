"""Mark every call of a torch module without getting in its way.

`torch.nn.Module.__call__` is one small function. We give it new code that contains its own body and
our marks around it. The function object stays the same, so torch.compile still recognises it (and
skips our code inside compiled graphs); the body keeps its file and lines, so tracebacks do not
change; and switching between light and full recording swaps the code, at no cost to calls.
"""

import ast
import inspect
import textwrap
from types import CodeType, FunctionType
from typing import Any

# BODY is replaced by the function's own statements. Only the outermost module of a thread is
# marked.
_LIGHT = """
def _(self, *args, **kwargs):
    if (
        _strobe_is_traced()
        or _strobe_get_ident() in _strobe_inside
        or type(self) in _strobe_unmarked
        or _strobe_compiler.get(_strobe_compiling)
    ):
        BODY
    _strobe_token = 0
    try:
        try:
            _strobe_token = _strobe_began(self)
        except Exception as _strobe_fault:
            _strobe_broke("forward_began", _strobe_fault)
        BODY
    finally:
        try:
            _strobe_ended(self, _strobe_token)
        except Exception as _strobe_fault:
            _strobe_broke("forward_ended", _strobe_fault)
"""

# Every module has a span, in this same frame: a model calls hundreds of them per step.
_FULL = """
def _(self, *args, **kwargs):
    if _strobe_is_traced() or _strobe_compiler.get(_strobe_compiling):
        BODY
    _strobe_token = 0
    _strobe_span = None
    try:
        try:
            _strobe_thread = _strobe_get_ident()
            if _strobe_thread not in _strobe_inside:
                _strobe_token = _strobe_began(self)
            _strobe_stack = _strobe_open.get(_strobe_thread)
            if _strobe_stack is not None:
                _strobe_span = _strobe_new_span(
                    _strobe_labels.get(id(self)) or _strobe_label(self)
                )
                _strobe_span.__enter__()
                _strobe_stack.append(_strobe_span)
        except Exception as _strobe_fault:
            _strobe_broke("module_entered", _strobe_fault)
        BODY
    finally:
        try:
            if _strobe_span is not None:
                if _strobe_stack and _strobe_stack[-1] is _strobe_span:
                    _strobe_stack.pop()
                    _strobe_span.__exit__(None, None, None)
                else:
                    _strobe_left(_strobe_span)
            if _strobe_token:
                _strobe_ended(self, _strobe_token)
        except Exception as _strobe_fault:
            _strobe_broke("module_left", _strobe_fault)
"""


class CallCode:
    """The three code objects of one function: its own, with light marks, with full marks."""

    def __init__(self, function: FunctionType, hooks: dict[str, Any]) -> None:
        """Raises OSError or ValueError if the source is not available or has another shape."""
        self._function = function
        self.original = function.__code__
        self._hooks = hooks
        self.light = _woven(function, _LIGHT)
        self.full = _woven(function, _FULL)

    def use(self, code: CodeType) -> None:
        # They stay when the original code is restored: calls in progress still run the code with
        # our marks.
        self._function.__globals__.update(self._hooks)
        self._function.__code__ = code


def _woven(function: FunctionType, template: str) -> CodeType:
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    own = tree.body[0]
    if not isinstance(own, ast.FunctionDef) or [a.arg for a in own.args.args] != ["self"]:
        raise ValueError(f"{function.__qualname__} has another shape than expected")
    first_line = function.__code__.co_firstlineno
    ast.increment_lineno(tree, first_line - own.lineno)
    _indent(tree, _indentation(function))
    woven = ast.parse(template)
    for node in ast.walk(woven):  # our own statements all get the line of the def
        if hasattr(node, "lineno"):
            node.lineno = node.end_lineno = first_line  # type: ignore[attr-defined]
            node.col_offset = node.end_col_offset = 0  # type: ignore[attr-defined]
    wrapper = woven.body[0]
    assert isinstance(wrapper, ast.FunctionDef)
    wrapper.name = own.name
    _fill(wrapper, own.body)
    module = ast.fix_missing_locations(ast.Module([wrapper], []))
    compiled = compile(module, function.__code__.co_filename, "exec")
    code = next(c for c in compiled.co_consts if isinstance(c, CodeType))
    changes: dict[str, Any] = {}
    if hasattr(code, "co_qualname"):  # 3.11
        changes["co_qualname"] = function.__code__.co_qualname
    return code.replace(**changes)


def _fill(node: ast.AST, body: list[ast.stmt]) -> None:
    for name in ("body", "orelse", "finalbody"):
        statements = getattr(node, name, None)
        if not isinstance(statements, list):
            continue
        filled: list[ast.stmt] = []
        for statement in statements:
            is_body = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Name)
            if is_body and statement.value.id == "BODY":
                filled.extend(body)
            else:
                _fill(statement, body)
                filled.append(statement)
        setattr(node, name, filled)


def _indentation(function: FunctionType) -> int:
    first = inspect.getsource(function).splitlines()[0]
    return len(first) - len(first.lstrip())


def _indent(tree: ast.AST, columns: int) -> None:
    for node in ast.walk(tree):
        if hasattr(node, "col_offset"):
            node.col_offset += columns
            node.end_col_offset += columns  # type: ignore[attr-defined]
