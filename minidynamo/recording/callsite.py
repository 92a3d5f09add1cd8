"""Who called, and with which expression: f_lasti, then co_positions, then the syntax tree. Used on a miss only."""

from __future__ import annotations

import ast
import builtins
import itertools
import linecache
import os
import sys
import sysconfig
import types
from dataclasses import dataclass, field
from typing import Any

from .forwarded import filled_in, hands_on

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_STDLIB = (sysconfig.get_path("stdlib") + os.sep, sysconfig.get_path("platstdlib") + os.sep)
_INSTALLED = (sysconfig.get_path("purelib") + os.sep, sysconfig.get_path("platlib") + os.sep)


@dataclass(frozen=True, slots=True)
class Place:
    """A piece of the program: file, line (1-based), its source line, and the columns (0-based, of characters) of what is
    meant in it; (0, 0): the whole line. `text` is what is meant, "" where the source cannot be read."""

    file: str
    line: int
    source: str = ""
    begin: int = 0
    end: int = 0
    text: str = ""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" + (f":{self.begin + 1}" if self.end else "")


@dataclass(frozen=True, slots=True)
class Site:
    """A call: its place, its syntax node (None where the source cannot be read), and the function that makes it. A call that hands on
    `*args` or `**kwargs` has the arguments of the call outside of it, whose place `outer` is; `files`: those of their nodes."""

    place: Place
    call: ast.Call | None
    function: str
    outer: Place | None = None
    files: dict[int, str] = field(default_factory=dict)

    def place_of(self, node: Any) -> Place:
        """Where an argument of the call stands."""
        return place_of(self.files.get(id(node), self.place.file), node)

    @property
    def key(self) -> tuple[str, int]:
        """Tells calls apart: the file and the line of the outermost."""
        place = self.outer or self.place
        return place.file, place.line


def is_library(filename: str) -> bool:
    """Code of minidynamo, torch, the standard library, or frozen modules."""
    if filename.startswith((_PACKAGE, "<frozen ")):
        return True
    torch: Any = sys.modules.get("torch")
    if torch is not None and filename.startswith(os.path.dirname(torch.__file__ or "?") + os.sep):
        return True
    return filename.startswith(_STDLIB) and not filename.startswith(_INSTALLED)


def caller() -> types.FrameType | None:
    """The innermost frame of the program's own."""
    frame: types.FrameType | None = sys._getframe(1)
    while frame is not None and is_library(frame.f_code.co_filename):
        frame = frame.f_back
    return frame


def site_of(frame: types.FrameType, function: str, depth: int = 0) -> Site:
    """The call that `frame` is making, of a function whose qualified name is `function`."""
    file, line = frame.f_code.co_filename, frame.f_lineno
    span = next(itertools.islice(frame.f_code.co_positions(), frame.f_lasti // 2, None), None)
    name = function.rpartition(".")[2]
    if tree_of(file) is None:
        node = _call_alone(file, span)
    else:
        node = _call_at(file, span, name) or _only_call_on(file, line, name)
    if node is None:
        return Site(line_place(file, line), None, frame.f_code.co_qualname)
    site = Site(place_of(file, node), node, frame.f_code.co_qualname)
    return _seen_from_outside(site, node, frame, depth) or site


DEEPEST = 8  # functions that hand on their arguments, one inside the other


def _seen_from_outside(site: Site, call: ast.Call, frame: types.FrameType, depth: int) -> Site | None:
    """`site` with the arguments of the call outside, when it hands on the `*args` or `**kwargs` of its function. None otherwise, and
    where that function was not called by a line of the program (but by `map`, or by a library)."""
    back, code = frame.f_back, frame.f_code
    if back is None or depth == DEEPEST or not hands_on(code, call) or is_library(back.f_code.co_filename):
        return None
    above = site_of(back, code.co_qualname, depth + 1)
    if above.call is None or isinstance(above.call.func, ast.Name) and hasattr(builtins, above.call.func.id):
        return None
    bound = _is_bound(above.call, code.co_qualname, code.co_varnames[:1], varying=True)
    made = filled_in(code, call, above.call, bound)
    if made is None:
        return None
    nodes = (*above.call.args, *(keyword.value for keyword in above.call.keywords))
    files = {id(node): above.files.get(id(node), above.place.file) for node in nodes}
    return Site(site.place, made, site.function, above.outer or above.place, files)


def line_place(file: str, line: int) -> Place:
    """A whole line."""
    source = linecache.getline(file, line).rstrip("\n")
    return Place(file, line, source, text=source.strip())


def place_of(file: str, node: Any) -> Place:
    """The first line of a node, and the node's columns in it."""
    source = linecache.getline(file, node.lineno).rstrip("\n")
    begin = _characters(source, node.col_offset)
    end = _characters(source, node.end_col_offset) if node.end_lineno == node.lineno else len(source)
    return Place(file, node.lineno, source, begin, end, source[begin:end])


def _characters(source: str, offset: int) -> int:
    """A column of the syntax tree counts bytes of UTF-8."""
    return len(source.encode()[:offset].decode(errors="ignore"))


_trees: dict[str, tuple[int, ast.Module | None]] = {}


def tree_of(file: str) -> ast.Module | None:
    """The syntax tree of a file, None where the source cannot be read. Kept as long as the file's lines are the same."""
    lines = linecache.getlines(file)
    known = _trees.get(file)
    if known is not None and known[0] == hash(tuple(lines)):
        return known[1]
    try:
        tree = ast.parse("".join(lines)) if lines else None
    except (SyntaxError, ValueError, RecursionError):
        tree = None
    _trees[file] = (hash(tuple(lines)), tree)
    return tree


def _call_at(file: str, span: Any, name: str) -> ast.Call | None:
    tree = tree_of(file)
    if tree is None or span is None or None in span:
        return None
    begin, end = (span[0], span[2]), (span[1], span[3])
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or (node.end_lineno, node.end_col_offset) != end:
            continue
        # (the span of a method call begins at the name of the method where the call goes over several lines)
        if (node.lineno, node.col_offset) == begin or node.lineno <= begin[0] <= (node.end_lineno or 0):
            return node
    return None


def _call_alone(file: str, span: Any) -> ast.Call | None:
    """The call where the file as a whole is no program (a document, a notebook): parsed from its own text."""
    lines = linecache.getlines(file)[span[0] - 1 : span[1]] if span is not None and None not in span else []
    if not lines:
        return None
    text = b"\n".join(line.rstrip("\n").encode() for line in lines)
    last = len(text) - len(lines[-1].rstrip("\n").encode()) + span[3]
    try:
        node = ast.parse(b"(" + text[span[2] : last] + b")", mode="eval").body
    except (SyntaxError, ValueError):
        return None
    for inner in ast.walk(node):
        if isinstance(inner, ast.expr):
            for row, column in (("lineno", "col_offset"), ("end_lineno", "end_col_offset")):
                shift = span[2] - 1 if getattr(inner, row) == 1 else 0
                setattr(inner, column, getattr(inner, column) + shift)
                setattr(inner, row, getattr(inner, row) + span[0] - 1)
    return node if isinstance(node, ast.Call) else None


def _only_call_on(file: str, line: int, name: str) -> ast.Call | None:
    """The one call on a line of something of that name (or of anything, where it is the only call)."""
    tree = tree_of(file)
    if tree is None:
        return None
    found = [
        n
        for n in ast.walk(tree)
        if isinstance(n, ast.Call) and n.lineno <= line <= (n.end_lineno or n.lineno)
    ]
    named = [n for n in found if ast.unparse(n.func).rpartition(".")[2] == name]
    return named[0] if len(named) == 1 else found[0] if len(found) == 1 else None


@dataclass(frozen=True, slots=True)
class Passed:
    """What a call passes for a parameter: the expression's node, or `star`: it comes out of `*args` or `**kwargs`."""

    node: Any
    star: bool = False


def passed(
    call: ast.Call, parameters: tuple[str, ...], positional: int, function: str, root: str, index: int
) -> Passed | None:
    """The expression for parameter `root` (`index`: which item, for *args; else -1). None when it is not passed (a default).

    A method gets its first parameter from the object before the dot.
    """
    for keyword in call.keywords:
        if keyword.arg == root:
            return Passed(keyword.value)
    bound = 1 if _is_bound(call, function, parameters, varying=index >= 0) else 0
    if root not in parameters:
        return None
    at = parameters.index(root)
    at = positional + index if at >= positional and index >= 0 else at
    if at < bound:
        return Passed(call.func.value) if isinstance(call.func, ast.Attribute) else Passed(call.func)
    for place, argument in enumerate(call.args):
        if isinstance(argument, ast.Starred):
            return Passed(argument.value, star=True)
        if place == at - bound:
            return Passed(argument) if parameters.index(root) < positional or index >= 0 else None
    star = next((k.value for k in call.keywords if k.arg is None), None)
    return Passed(star, star=True) if star is not None else None


def _is_bound(call: ast.Call, function: str, parameters: tuple[str, ...], varying: bool = False) -> bool:
    """`function` is a method and the call does not go through its class. `varying`: it takes any number of arguments, so that
    their count says nothing."""
    owner = function.rpartition(".")[0].rpartition(".")[2]
    if not owner or owner == "<locals>":
        return False
    if varying:
        if parameters[:1] not in (("self",), ("cls",)):
            return False
    elif len(call.args) >= len(parameters):
        return False  # a static method
    if not isinstance(call.func, ast.Attribute):
        return True  # a callable object
    return ast.unparse(call.func.value).rpartition(".")[2] != owner
