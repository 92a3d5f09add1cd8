"""Rows as text and text as rows. `parse(text(row)) == row` for every row; both directions read the same
templates.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable
from typing import Any

from minidynamo import exc
from minidynamo.guards.rows import (
    KINDS,
    LITERAL,
    PATHS,
    RELATION,
    SOURCE,
    SOURCES,
    GuardRow,
    Relation,
    Sources,
    derived_path,
)
from minidynamo.literals import NotALiteral, literal, parse_literal
from minidynamo.sources import (
    PLAIN_MEMBERS,
    AttrSource,
    BuiltinSource,
    CellSource,
    ClosureSource,
    CodeSource,
    DefaultSource,
    DictItemSource,
    DictKeySource,
    GlobalSource,
    GlobalsSource,
    ItemSource,
    KwDefaultSource,
    LocalSource,
    ModulesSource,
    SizeSource,
    Source,
    StorageOffsetSource,
    StrideSource,
    TypeSource,
    WeakRefSource,
    is_local_name,
)

_HOLE = "___hole_"


def text(row: GuardRow) -> str:
    """The Python expression of a row, over the frame's arguments, ___globals and ___closure.

    Raises Unsupported for a local whose name cannot be written.
    """
    holes = [x.name() if isinstance(x, PATHS) else literal(x) for x in row.literals]
    return KINDS[row.kind].template.format(*holes, path=row.path.name())


def parse(source: str) -> GuardRow:
    """The row that `source` is the text of. Raises InternalError when it is the text of no row."""
    try:
        tree = ast.parse(source, mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
        raise exc.InternalError(f"guard text is no Python expression: {source!r} ({error})") from error
    for kind, template in _templates().items():
        found: dict[str, ast.expr] = {}
        if _unify(template, tree, found):
            row = _row(kind, found)
            if row is not None:
                return row
    raise exc.InternalError(f"guard text of no known kind: {source!r}")


@functools.cache
def _templates() -> dict[str, ast.expr]:
    """Kind -> syntax tree of its template, holes being the names ___hole_path, ___hole_0, ..."""
    out = {}
    for name, kind in KINDS.items():
        holes = [f"{_HOLE}{i}" for i in range(len(kind.holes))]
        out[name] = ast.parse(kind.template.format(*holes, path=f"{_HOLE}path"), mode="eval").body
    return out


def _unify(template: Any, node: Any, found: dict[str, ast.expr]) -> bool:
    """Structural equality up to holes; the nodes in place of holes go to `found`."""
    if isinstance(template, ast.Name) and template.id.startswith(_HOLE):
        found[template.id.removeprefix(_HOLE)] = node
        return True
    if isinstance(template, ast.AST):
        return type(template) is type(node) and all(
            _unify(getattr(template, name), getattr(node, name), found) for name in template._fields
        )
    if isinstance(template, list):
        return len(template) == len(node) and all(
            _unify(t, n, found) for t, n in zip(template, node, strict=True)
        )
    return bool(template == node)


def _row(kind: str, found: dict[str, ast.expr]) -> GuardRow | None:
    try:
        literals = tuple(_PARSERS[hole](found[str(i)]) for i, hole in enumerate(KINDS[kind].holes))
        path = parse_path(found["path"]) if "path" in found else derived_path(kind, literals)
    except (NotALiteral, NotAPath):
        return None
    return GuardRow(kind, path, literals)


class NotAPath(Exception):
    """The text is no path (it may be a literal)."""


def parse_path(node: ast.expr) -> Source:
    """The source whose `name()` has this syntax tree. Raises NotAPath."""
    match node:
        case ast.Name("___globals"):
            return GlobalsSource()
        case ast.Name("___modules"):
            return ModulesSource()
        case ast.Name(name) if is_local_name(name):
            return LocalSource(name)
        case ast.Subscript(ast.Name(root), ast.Constant(key)) if root in _NAMESPACES and type(key) is str:
            return _NAMESPACES[root](key)
        case ast.Attribute(ast.Subscript(ast.Name("___closure"), ast.Constant(index)), "cell_contents"):
            return ClosureSource("", _index(index))
        case ast.Attribute(
            ast.Subscript(ast.Attribute(base, "__closure__"), ast.Constant(index)), "cell_contents"
        ):
            return CellSource(parse_path(base), _index(index))
        case ast.Subscript(ast.Attribute(base, "__defaults__"), ast.Constant(index)):
            return DefaultSource(parse_path(base), _index(index))
        case ast.Subscript(ast.Attribute(base, "__kwdefaults__"), ast.Constant(key)) if type(key) is str:
            return KwDefaultSource(parse_path(base), key)
        case ast.Attribute(base, "__code__"):
            return CodeSource(parse_path(base))
        case ast.Attribute(base, member) if member in PLAIN_MEMBERS:
            return AttrSource(parse_path(base), member)
        case ast.Call(ast.Name(helper), [base, *args], []) if helper in _STEPS:
            return _step(helper, parse_path(base), args)
        case ast.Subscript(base, key):
            return _step("[]", parse_path(base), [key])
    raise NotAPath(ast.dump(node))


_NAMESPACES: dict[str, Callable[[str], Source]] = {"___globals": GlobalSource, "___builtins": BuiltinSource}

# Helper of the text -> (source class, number of literal arguments).
_STEPS: dict[str, tuple[Callable[..., Source], int]] = {
    "___attr": (AttrSource, 1),
    "___dict_item": (DictItemSource, 1),
    "___dict_key": (DictKeySource, 1),
    "___type": (TypeSource, 0),
    "___weakref_target": (WeakRefSource, 0),
    "___size": (SizeSource, 1),
    "___stride": (StrideSource, 1),
    "___storage_offset": (StorageOffsetSource, 0),
    "[]": (ItemSource, 1),
}


def _step(helper: str, base: Source, args: list[ast.expr]) -> Source:
    make, count = _STEPS[helper]
    if len(args) != count:
        raise NotAPath(helper)
    try:
        return make(base, *map(parse_literal, args))
    except NotALiteral as error:
        raise NotAPath(helper) from error


def _index(value: object) -> int:
    if type(value) is not int:
        raise NotAPath(value)
    return value


def _parse_sources(node: ast.expr) -> Sources:
    if not isinstance(node, ast.Tuple):
        raise NotAPath(ast.dump(node))
    return Sources(tuple(map(parse_path, node.elts)))


class _Holes(ast.NodeTransformer):
    """Replaces every maximal path by a hole and collects the sources in order of appearance."""

    def __init__(self) -> None:
        self.sources: list[Source] = []

    def visit(self, node: ast.AST) -> ast.AST:
        if isinstance(node, (ast.Call, ast.Subscript, ast.Attribute, ast.Name)):
            try:
                source = parse_path(node)
            except NotAPath:
                return self._call(node)
            if source not in self.sources:
                self.sources.append(source)
            return ast.Name(f"{_HOLE}{self.sources.index(source)}_", ast.Load())
        if not isinstance(node, _RELATION_NODES):
            raise NotALiteral(ast.dump(node))
        return self.generic_visit(node)

    def _call(self, node: ast.AST) -> ast.AST:
        match node:
            case ast.Call(ast.Name(function), args, []) if function in RELATION_FUNCTIONS:
                visited: Any = [self.visit(arg) for arg in args]
                return ast.Call(ast.Name(function, ast.Load()), visited, [])
        raise NotALiteral(ast.dump(node))


RELATION_FUNCTIONS = frozenset({"___max", "___min"})
_RELATION_NODES: tuple[type[ast.AST], ...] = (ast.Compare, ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Constant)
_RELATION_NODES += (ast.operator, ast.unaryop, ast.cmpop, ast.boolop, ast.expr_context)


def _parse_relation(node: ast.expr) -> Relation:
    holes = _Holes()
    tree = holes.visit(node)
    if not holes.sources:
        raise NotAPath("a relation without a path")
    text = ast.unparse(tree).replace("{", "{{").replace("}", "}}")
    for i in range(len(holes.sources)):
        text = text.replace(f"{_HOLE}{i}_", f"{{{i}}}")
    return Relation(text, tuple(holes.sources))


def relation(template: str, *sources: Source) -> Relation:
    """The normal form of a relation: arithmetic, comparisons, `and`, `or`, `not`, ___max, ___min over `{i}`
    holes.

    Raises InternalError for anything else.
    """
    written = template.format(*(source.name() for source in sources))
    try:
        return _parse_relation(ast.parse(written, mode="eval").body)
    except (SyntaxError, NotALiteral, NotAPath) as error:
        raise exc.InternalError(f"no relation between numbers: {written!r}") from error


_PARSERS: dict[str, Callable[[ast.expr], Any]] = {
    LITERAL: parse_literal,
    SOURCE: parse_path,
    SOURCES: _parse_sources,
    RELATION: _parse_relation,
}
