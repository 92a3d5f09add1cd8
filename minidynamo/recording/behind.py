"""Where a value comes from that a resume function is compiled again for: behind a graph break everything is an argument."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from .callsite import Place, line_place, place_of, tree_of

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


@dataclass(frozen=True, slots=True)
class Origin:
    """`place`: the line that makes the value, None: it is a parameter of the function, or not to be found; `broken`: the graph breaks
    there, so that plain Python makes it; `behind`: the break, before the line at which the frame goes on, that made it an argument."""

    place: Place | None = None
    broken: Place | None = None
    behind: Place | None = None

    def mend(self, number: bool) -> str:
        """What to do about a value that varies; "" where the break is not to blame, as for tensors that a graph makes."""
        if self.broken is not None:
            return f"mend the graph break at {_short(self.broken)}: plain Python makes the value there"
        if number and self.place is not None and self.behind is not None:
            return f"mend the graph break at {_short(self.behind)}: numbers of the graph before it are guarded behind it"
        return ""


def _short(place: Place) -> str:
    return f"{place.file.rpartition('/')[2]}:{place.line}"


def origin(file: str, begins: int, name: str, breaks: Collection[tuple[str, int]]) -> Origin:
    """Where the frame that goes on at line `begins` has the value of `name` from; `breaks`: lines at which graphs broke.

    A value without a name (`___stack0`) is that of the line at which the frame goes on.
    """
    if name.startswith("___stack"):
        place = line_place(file, begins)
        return Origin(place, place, place)
    statement = _assignment(file, begins, name)
    if statement is None:
        return Origin()
    lines = range(statement.lineno, _last_line(statement) + 1)
    at = next((line for line in lines if (file, line) in breaks), None)
    broken = line_place(file, at) if at is not None else None
    last = max(
        (line for name, line in breaks if name == file and statement.lineno <= line <= begins), default=None
    )
    return Origin(place_of(file, statement), broken, line_place(file, last) if last is not None else None)


def _last_line(statement: ast.stmt) -> int:
    """Of the part that makes values: a loop's or block's body is not."""
    body = getattr(statement, "body", None)
    return max(statement.lineno, body[0].lineno - 1) if body else statement.end_lineno or statement.lineno


def _assignment(file: str, begins: int, name: str) -> ast.stmt | None:
    """The statement before `begins` that assigns `name` last in the text; in a loop it may stand behind it."""
    tree = tree_of(file)
    function = _innermost(tree, begins) if tree is not None else None
    if not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return None
    found = sorted(
        (node for node in _own_statements(function.body) if name in _targets(node)),
        key=lambda node: node.lineno,
    )
    before = [node for node in found if node.lineno < begins]
    chosen = before or found
    return chosen[-1] if chosen else None


def _innermost(tree: ast.AST, line: int) -> ast.AST | None:
    holding = [
        node
        for node in ast.walk(tree)
        if isinstance(node, FUNCTIONS) and node.lineno <= line <= (node.end_lineno or node.lineno)
    ]
    return max(holding, key=lambda node: node.lineno, default=None)


def _own_statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a function, those of functions and classes inside of it left out."""
    for node in body:
        yield node
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            continue
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.stmt):
                yield from _own_statements([child])
            elif isinstance(child, (ast.ExceptHandler, ast.match_case)):
                yield from _own_statements(child.body)


def _targets(node: ast.stmt) -> set[str]:
    """The names that the statement itself assigns."""
    if isinstance(node, ast.Assign):
        stored: list[ast.AST] = list(node.targets)
    elif isinstance(node, (ast.AugAssign, ast.AnnAssign, ast.For, ast.AsyncFor)):
        stored = [node.target]
    elif isinstance(node, (ast.With, ast.AsyncWith)):
        stored = [item.optional_vars for item in node.items if item.optional_vars is not None]
    else:
        stored = [each.target for each in ast.walk(node) if isinstance(each, ast.NamedExpr)]
    return {each.id for part in stored for each in ast.walk(part) if isinstance(each, ast.Name)}
