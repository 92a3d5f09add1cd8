"""Statements of the program that may have written a place: candidates from the syntax tree, best first."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from .callsite import Place, place_of, tree_of

_CHANGING_METHODS = frozenset(
    (
        "append",
        "extend",
        "insert",
        "pop",
        "remove",
        "clear",
        "update",
        "setdefault",
        "popitem",
        "add",
        "discard",
    )
)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


@dataclass(frozen=True, slots=True)
class Writer:
    """A statement: its place, the function that it is in, the assigned expression's node (None: no plain assignment), whether
    it is in a loop, and whether it changes a container rather than binds a name or attribute."""

    place: Place
    function: str
    value: Any
    in_loop: bool
    changes: bool = False


def writers(files: tuple[str, ...], member: tuple[str, str], owner: str, caller: str) -> list[Writer]:
    """Statements in `files` that assign the place whose last step is `member` (of an object spelled `owner`), or change the container
    `owner`. In the caller's function first, then in loops; those of `__init__` last."""
    found = [w for file in dict.fromkeys(files) for w in _in_file(file, member, owner)]

    def rank(writer: Writer) -> tuple[bool, bool, bool]:
        initial = writer.function.rpartition(".")[2] in ("__init__", "__post_init__", "<class>")
        return initial, writer.function != caller, not writer.in_loop

    return sorted(found, key=rank)


def _in_file(file: str, member: tuple[str, str], owner: str) -> Iterator[Writer]:
    tree = tree_of(file)
    if tree is None:
        return
    for node, function, in_loop in _statements(tree, "<module>", False):
        value = _written(node, member)
        changes = value is None and _changes(node, owner)
        if value is not None or changes:
            given = value if isinstance(value, ast.expr) else None
            yield Writer(place_of(file, node), function, given, in_loop, changes)


def _statements(tree: Any, function: str, in_loop: bool) -> Iterator[tuple[Any, str, bool]]:
    """(statement, name of its function, in a loop) of everything below `tree`."""
    for node in ast.iter_child_nodes(tree):
        name, loop = function, in_loop
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            name, loop = (node.name if function == "<module>" else f"{function}.{node.name}"), False
        elif isinstance(node, ast.ClassDef):
            name, loop = "<class>" if function == "<module>" else f"{function}.<class>", False
        elif isinstance(node, (ast.For, ast.While, ast.AsyncFor)):
            loop = True
        if isinstance(node, ast.stmt):
            yield node, function, loop if isinstance(node, (ast.For, ast.AsyncFor)) else in_loop
        yield from _statements(node, name, loop)


def _written(node: Any, member: tuple[str, str]) -> Any:
    """The value node when `node` assigns the place, True when it writes it in another way, else None."""
    if isinstance(node, ast.Assign):
        return node.value if any(_is_place(t, member) for t in node.targets) else None
    if isinstance(node, ast.AnnAssign):
        return node.value if node.value is not None and _is_place(node.target, member) else None
    if isinstance(node, (ast.AugAssign, ast.For, ast.AsyncFor)):
        return True if _is_place(node.target, member) else None
    if (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Call)
        and _name(node.value.func) == "setattr"
    ):
        return True if member == ("attr", _set_name(node.value)) else None
    return None


def _changes(node: Any, owner: str) -> bool:
    """`node` changes the container that the program spells `owner`: a method call, an item that is assigned or deleted."""
    name = _last_of(owner)
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        func = node.value.func
        return (
            isinstance(func, ast.Attribute) and func.attr in _CHANGING_METHODS and _name(func.value) == name
        )
    targets = node.targets if isinstance(node, (ast.Assign, ast.Delete)) else [getattr(node, "target", None)]
    return any(isinstance(t, ast.Subscript) and _name(t.value) == name for t in targets)


def _set_name(call: ast.Call) -> str:
    name = call.args[1] if len(call.args) > 1 else None
    return str(name.value) if isinstance(name, ast.Constant) else ""


def _is_place(target: Any, member: tuple[str, str]) -> bool:
    kind, text = member
    if isinstance(target, (ast.Tuple, ast.List)):
        return any(_is_place(item, member) for item in target.elts)
    if kind == "attr":
        return isinstance(target, ast.Attribute) and target.attr == text
    if kind == "item":
        return isinstance(target, ast.Subscript) and (
            not isinstance(target.slice, ast.Constant) or repr(target.slice.value) == text
        )
    return isinstance(target, ast.Name) and target.id == text


def _name(node: Any) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _last_of(spelled: str) -> str:
    """`items` of `self.items`, of `len(items)` too."""
    inner = spelled.removeprefix("len(").rstrip(")")
    return inner.rpartition(".")[2]


def carets(place: Place, name: str, member: tuple[str, str]) -> Place:
    """`place` narrowed to the expression of its line that reads `name` (or its last step); the whole line if there is none."""
    tree = tree_of(place.file)
    if tree is None:
        return place
    on_line = [
        n for n in ast.walk(tree) if getattr(n, "lineno", None) == place.line and isinstance(n, ast.expr)
    ]
    tests = (
        lambda n: ast.unparse(n) == name,
        lambda n: isinstance(n, ast.Attribute) and member == ("attr", n.attr),
        lambda n: isinstance(n, ast.Name) and n.id == name.partition(".")[0].partition("[")[0],
        lambda n: isinstance(n, ast.Subscript) and member[0] == "item",
    )
    for test in tests:
        found = [n for n in on_line if test(n)]
        read = [n for n in found if not isinstance(getattr(n, "ctx", None), ast.Store)] or found
        if read:
            return place_of(place.file, min(read, key=lambda n: n.col_offset))
    return place
