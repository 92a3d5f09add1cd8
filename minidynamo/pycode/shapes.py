"""What two pieces of emitted code have in common: their shape, all but names of variables, constants and lines.

The code of one shape is assembled once (`lower.assemble`); another piece of that shape takes it with its own names, constants and
first line. A small function has few shapes: a call of the graph, its results picked out, a return.
"""

from __future__ import annotations

from collections.abc import Callable
from types import CodeType
from typing import Any

from . import expr as x
from .canon import CANON
from .resume import is_resume_code
from .tables import Position


class Hole:
    """A constant of shared code that each piece fills in. Compared by identity."""

    __slots__ = ("index",)

    def __init__(self, index: int) -> None:
        self.index = index


class NoShape(Exception):
    """The body holds something whose equality is not that of code."""


class Shape:
    """The shape of `body` as the body of a code object with the variables of `code`. Raises NoShape.

    key       equal for bodies whose code differs in what `constants` and `code` say only
    constants the values of `Const`s, once each by identity, in order
    """

    def __init__(self, code: CodeType, body: x.Body) -> None:
        self.first_line = code.co_firstlineno
        self.slots = {name: slot for slot, name in enumerate(code.co_varnames)}
        self.cells = {name: cell for cell, name in enumerate((*code.co_cellvars, *code.co_freevars))}
        self.constants: list[Any] = []
        self.numbers: dict[int, int] = {}
        self.tokens: list[Any] = [
            code.co_argcount,
            code.co_posonlyargcount,
            code.co_kwonlyargcount,
            code.co_flags,
            len(code.co_varnames),
            tuple([self.slots.get(name) for name in code.co_cellvars]),
            len(code.co_freevars),
            has_docstring(code),
            is_resume_code(code),
        ]
        _parts(self, body)
        self.key = tuple(self.tokens)

    def holes(self) -> dict[int, Hole]:
        """What stands for each constant, by the constant's id."""
        return {known: Hole(number) for known, number in self.numbers.items()}


def has_docstring(code: CodeType) -> bool:
    """Whether the first constant is one, as far as can be seen."""
    return bool(code.co_consts) and isinstance(code.co_consts[0], str)


def fill(shared: CodeType, code: CodeType, constants: list[Any], name: str) -> CodeType:
    """`shared`, the code of a shape, as the code of a body with these constants and the variables of `code`."""
    values = [constants[one.index] if type(one) is Hole else one for one in shared.co_consts]
    if has_docstring(code):
        values[0] = code.co_consts[0]
    return shared.replace(
        co_name=name,
        co_qualname=code.co_qualname,
        co_filename=code.co_filename,
        co_firstlineno=code.co_firstlineno,
        co_varnames=code.co_varnames + shared.co_varnames[len(code.co_varnames) :],
        co_cellvars=code.co_cellvars,
        co_freevars=code.co_freevars,
        co_consts=tuple(values),
    )


# --- how each kind of value is written down ----------------------------------------------------------------------------
Writer = Callable[[Shape, Any], None]


def _part(s: Shape, e: x.Expr | x.Stmt) -> None:
    s.tokens.append(type(e))
    _WRITERS[type(e)](s, e)


def _parts(s: Shape, parts: tuple[x.Expr, ...] | x.Body) -> None:
    s.tokens.append(len(parts))
    for part in parts:
        _part(s, part)


def _optional(s: Shape, e: x.Expr | None) -> None:
    if e is None:
        s.tokens.append(None)
    else:
        _part(s, e)


def _constant(s: Shape, value: Any) -> None:
    number = s.numbers.setdefault(id(value), len(s.constants))
    if number == len(s.constants):
        s.constants.append(value)
    s.tokens.append(number)


def _local(s: Shape, name: str) -> None:
    s.tokens.append(s.slots.get(name, name))


def _cell(s: Shape, name: str) -> None:
    s.tokens.append(s.cells.get(name, name))


def _plain(s: Shape, value: Any) -> None:
    """A name or a number that is part of the instructions."""
    if type(value) not in (str, int, type(None)):
        raise NoShape
    s.tokens.append(value)


def _names(s: Shape, names: tuple[str | None, ...]) -> None:
    s.tokens.append(len(names))
    for name in names:
        _plain(s, name)


def _position(s: Shape, position: Position | int) -> None:
    if isinstance(position, int):
        position = Position(position)
    for line in (position.line, position.end_line):
        s.tokens.append(None if line is None else line - s.first_line)
    s.tokens += (position.col, position.end_col)


_LITERAL = frozenset({"CALL_KW", "BUILD_CONST_KEY_MAP"})  # the instructions depend on their last operand


def _operation(s: Shape, e: x.Op | x.Effect | x.Apply) -> None:
    row = CANON.get(e.opname)
    if row is None:
        raise NoShape
    s.tokens.append(e.opname)
    (_cell if row.arg_kind == "cell" else _local if row.arg_kind == "local" else _plain)(s, e.arg)
    operands = e.operands
    if e.opname in _LITERAL:
        *rest, last = operands
        if not isinstance(last, x.Const) or type(last.value) is not tuple:
            raise NoShape
        _names(s, last.value)
        operands = tuple(rest)
    _parts(s, operands)


def _apply(s: Shape, e: x.Apply) -> None:
    s.tokens.append(tuple([s.slots.get(name, name) if name is not None else None for name in e.names]))
    _operation(s, e)


def _fields(**writers: Writer) -> Writer:
    """These fields, each by its writer."""
    rows = tuple(writers.items())

    def write(s: Shape, e: Any) -> None:
        for name, writer in rows:
            writer(s, getattr(e, name))

    return write


_WRITERS: dict[type, Writer] = {
    x.Local: _fields(name=_local),
    x.Move: _fields(name=_local),
    x.Global: _fields(name=_plain),
    x.Deref: _fields(name=_cell),
    x.Cell: _fields(name=_cell),
    x.Const: _fields(value=_constant),
    x.Null: _fields(),
    x.Attr: _fields(base=_part, name=_plain),
    x.Item: _fields(base=_part, key=_part),
    x.Call: _fields(fn=_part, args=_parts),
    x.CallKw: _fields(fn=_part, args=_parts, names=_names),
    x.CallEx: _fields(fn=_part, args=_part, kwargs=_optional),
    x.Tuple: _fields(items=_parts),
    x.List: _fields(items=_parts),
    x.Set: _fields(items=_parts),
    x.Map: _fields(keys=_parts, values=_parts),
    x.Slice: _fields(start=_part, stop=_part, step=_optional),
    x.Function: _fields(
        code=_part,
        defaults=_optional,
        kwdefaults=_optional,
        annotations=_optional,
        closure=_optional,
        annotate=_optional,
    ),
    x.Op: _operation,
    x.Assign: _fields(name=_local, value=_part),
    x.Do: _fields(value=_part),
    x.Effect: _operation,
    x.Apply: _apply,
    x.Delete: _fields(name=_local),
    x.Return: _fields(value=_part),
    x.Branch: _fields(opname=_plain, operands=_parts, taken=_parts, fallthrough=_parts),
    x.IterBranch: _fields(iterator=_part, more=_parts, done=_parts, iter_name=_local, item_name=_local),
    x.Rescue: _fields(body=_parts, value=_part),
    x.Catch: _fields(body=_parts, name=_local, handler=_parts),
    x.Handling: _fields(exception=_part, body=_parts),
    x.At: _fields(position=_position),
}
