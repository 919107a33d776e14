"""Name a value after the variable that the script passes to a call: `loss_d.backward()`."""

import ast
import linecache
from collections.abc import Iterator
from types import CodeType, FrameType
from typing import Any

from strobe.collect.places import is_users
from strobe.model.automatic_metrics import Series

# Between a call and the script there may be a library; further away, the script's line says
# nothing about the value.
_DEEPEST = 12
# Code that is created again and again must not fill the memory.
_MOST_CODES, _MOST_CALLS = 4096, 256
_LONGEST = 40
_METHOD = "backward"
# Methods whose result is named after their object, and functions named after their argument.
_OF_OBJECT = frozenset((
    "clone", "contiguous", "cpu", "double", "float", "half", "mean", "named_parameters",
    "parameters", "reshape", "squeeze", "sum", "to", "trainable_params", "view",
))  # fmt: skip
_OF_ARGUMENT = frozenset(("scale", "list", "tuple", "filter", "mean", "sum"))


# What the value is, the code and the instruction that make the call, and the place of the value.
_Key = tuple[str, int, int, int]


class CallNames:
    """The tags of values by the instruction of the script that makes the call."""

    def __init__(self) -> None:
        # By id; the code is referenced so that no other gets its id.
        self._codes: dict[int, tuple[CodeType, bool]] = {}
        self._tags: dict[_Key, str] = {}

    def tag(self, kind: str, frame: FrameType, element: int = -1) -> str:
        """For a value that is given to a function which was called in this frame; `element` is its
        place if it is one of several.
        """
        found: FrameType | None = frame
        for _ in range(_DEEPEST):
            if found is None:
                break
            code = found.f_code
            known = self._codes.get(id(code)) or self._know(code)
            if known[1]:
                key = kind, id(code), found.f_lasti, element
                return self._tags.get(key) or self._name(key, found, found is not frame)
            found = found.f_back
        key = kind, id(frame.f_code), frame.f_lasti, element
        return self._tags.get(key) or self._name(key, frame, False)

    def _know(self, code: CodeType) -> tuple[CodeType, bool]:
        if len(self._codes) >= _MOST_CODES:
            self._codes.clear()
            self._tags.clear()
        self._codes[id(code)] = known = code, is_users(code.co_filename)
        return known

    def _name(self, key: _Key, frame: FrameType, is_passed_on: bool) -> str:
        code, kind = frame.f_code, key[0]
        if len(self._tags) >= _MOST_CALLS:
            return Series(kind, "other calls").tag
        name = name_of_argument(frame, is_passed_on, key[3]).replace("\t", " ")
        series = Series(kind, name, code.co_name.replace("\t", " "), frame.f_lineno or 0)
        self._tags[key] = tag = series.tag
        return tag


def name_of_argument(frame: FrameType, is_passed_on: bool = False, element: int = -1) -> str:
    """What the script calls the object of the method, or the first argument, of the current call;
    "" if it has no name. `is_passed_on`: a library's method was called with it.
    """
    call = _current_call(frame)
    if call is None:
        return ""
    is_method = isinstance(call.func, ast.Attribute) and call.func.attr == _METHOD
    is_own = is_method and not is_passed_on
    if is_own and _text(call.func.value) in ("autograd", "torch.autograd"):  # type: ignore[attr-defined]
        is_own = False
    if is_own:
        return _name(call.func.value)  # type: ignore[attr-defined]
    given = [*call.args, *(keyword.value for keyword in call.keywords)]
    return _name_of_element(given[0], element) if given else ""


def _name_of_element(node: ast.AST, element: int) -> str:
    if element < 0:
        return _name(node)
    if isinstance(node, (ast.List, ast.Tuple)) and element < len(node.elts):
        return _name(node.elts[element])
    return f"{_name(node)}.{element}"


def _current_call(frame: FrameType) -> ast.Call | None:
    text = _current_text(frame)
    for candidate in (text, text.strip()):
        try:
            tree = ast.parse(candidate.strip())
        except (SyntaxError, ValueError):
            continue
        calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
        if calls:
            outermost = calls[0]
            is_cut = isinstance(outermost.func, ast.Name) and outermost.func.id == _METHOD
            return _whole_call(frame) if is_cut else outermost
    return None


def _whole_call(frame: FrameType) -> ast.Call | None:
    """For a method that is named on another line than its object, Python records no more than its
    name and arguments.
    """
    lines, place = linecache.getlines(frame.f_code.co_filename, frame.f_globals), _position(frame)
    try:
        tree = ast.parse("".join(lines))
    except (SyntaxError, ValueError):
        return None
    for node in ast.walk(tree):
        is_method = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
        if is_method and place and (node.end_lineno, node.end_col_offset) == (place[1], place[3]):  # type: ignore[attr-defined]
            return node  # type: ignore[return-value]
    return None


def _current_text(frame: FrameType) -> str:
    """The source of the current expression, where Python (3.11) records its columns; otherwise
    that of the line.
    """
    lines = linecache.getlines(frame.f_code.co_filename, frame.f_globals)
    place = _position(frame)
    if place is None:
        line = frame.f_lineno or 0
        return lines[line - 1] if 0 < line <= len(lines) else ""
    first, last, begin, end = place
    taken = [line.encode() for line in lines[first - 1 : last]]
    if not taken:
        return ""
    taken[-1] = taken[-1][:end]
    taken[0] = taken[0][begin:]
    return "(" + b"".join(taken).decode("utf-8", "replace") + ")"


def _position(frame: FrameType) -> tuple[int, int, int, int] | None:
    positions: Iterator[Any] | None = getattr(frame.f_code, "co_positions", lambda: None)()
    if positions is None:
        return None
    for number, place in enumerate(positions):
        if number == frame.f_lasti // 2:
            return None if None in place else place
    return None


def _name(node: ast.AST) -> str:
    if isinstance(node, (ast.Name, ast.Attribute)):
        return node.id if isinstance(node, ast.Name) else node.attr
    if isinstance(node, ast.NamedExpr):
        return node.target.id
    if isinstance(node, ast.UnaryOp):
        return _name(node.operand)
    if isinstance(node, ast.Subscript):
        return _name_of_item(node)
    if isinstance(node, ast.Call):
        return _name_of_call(node)
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Div, ast.Mult)):
        is_constant = isinstance(node.left, ast.Constant)
        return _name(node.right if is_constant else node.left)
    if isinstance(node, (ast.List, ast.Tuple)) and node.elts:
        return _name(node.elts[0])
    return _text(node)


def _name_of_item(node: ast.Subscript) -> str:
    key = node.slice.value if isinstance(node.slice, ast.Constant) else None
    return key if isinstance(key, str) and key else _text(node)


def _name_of_call(node: ast.Call) -> str:
    function = node.func
    name = function.attr if isinstance(function, ast.Attribute) else _name(function)
    is_method = isinstance(function, ast.Attribute) and name in _OF_OBJECT
    if is_method and _text(function.value) not in ("torch", "F"):  # type: ignore[attr-defined]
        return _name(function.value)  # type: ignore[attr-defined]
    return _name(node.args[-1]) if name in _OF_ARGUMENT and node.args else name


def _text(node: ast.AST) -> str:
    text = ast.unparse(node)
    return text if len(text) <= _LONGEST else ""
