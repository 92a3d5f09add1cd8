"""Values that describe code to emit: expressions and statements, and one printer for both.

They are never changed and know nothing of any CPython; `lower` turns them into bytecode. An expression leaves
exactly one value on the stack, a statement none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

from .tables import Position


class Value:
    """What all have, once: the methods that `dataclass` makes are made for each class, in every process that compiles."""

    __slots__ = ()
    __match_args__: ClassVar[tuple[str, ...]] = ()

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and all(
            getattr(self, name) == getattr(other, name) for name in self.__match_args__
        )

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {source(self)}>"  # type: ignore[arg-type]


@dataclass(slots=True, eq=False, repr=False)
class Expr(Value):
    """Base of expressions."""


@dataclass(slots=True, eq=False, repr=False)
class Local(Expr):
    """The value of a local variable that is no cell."""

    name: str


@dataclass(slots=True, eq=False, repr=False)
class Move(Expr):
    """The value of a local variable that is no cell, and that is unbound afterwards."""

    name: str


@dataclass(slots=True, eq=False, repr=False)
class Global(Expr):
    """A global, else a builtin."""

    name: str


@dataclass(slots=True, eq=False, repr=False)
class Deref(Expr):
    """The content of a cell or free variable."""

    name: str


@dataclass(slots=True, eq=False, repr=False)
class Cell(Expr):
    """The cell object of a cell or free variable."""

    name: str


@dataclass(slots=True, eq=False, repr=False)
class Const(Expr):
    """A constant; it should be hashable (code objects hash their constants)."""

    value: Any


@dataclass(slots=True, eq=False, repr=False)
class Null(Expr):
    """NULL, only as an operand of an `Op` that takes it."""


@dataclass(slots=True, eq=False, repr=False)
class Attr(Expr):
    base: Expr
    name: str


@dataclass(slots=True, eq=False, repr=False)
class Item(Expr):
    base: Expr
    key: Expr


@dataclass(slots=True, eq=False, repr=False)
class Call(Expr):
    fn: Expr
    args: tuple[Expr, ...] = ()


@dataclass(slots=True, eq=False, repr=False)
class CallKw(Expr):
    """A call whose last `len(names)` arguments are passed by these names."""

    fn: Expr
    args: tuple[Expr, ...]
    names: tuple[str, ...]


@dataclass(slots=True, eq=False, repr=False)
class CallEx(Expr):
    """fn(*args, **kwargs)."""

    fn: Expr
    args: Expr
    kwargs: Expr | None = None


@dataclass(slots=True, eq=False, repr=False)
class Tuple(Expr):
    items: tuple[Expr, ...] = ()


@dataclass(slots=True, eq=False, repr=False)
class List(Expr):
    items: tuple[Expr, ...] = ()


@dataclass(slots=True, eq=False, repr=False)
class Set(Expr):
    items: tuple[Expr, ...] = ()


@dataclass(slots=True, eq=False, repr=False)
class Map(Expr):
    """A dict; keys and values are evaluated in pairs."""

    keys: tuple[Expr, ...] = ()
    values: tuple[Expr, ...] = ()


@dataclass(slots=True, eq=False, repr=False)
class Slice(Expr):
    start: Expr
    stop: Expr
    step: Expr | None = None


@dataclass(slots=True, eq=False, repr=False)
class Function(Expr):
    """A function of the current globals. `closure` is a tuple of cells, the others are what MAKE_FUNCTION
    takes."""

    code: Expr
    defaults: Expr | None = None
    kwdefaults: Expr | None = None
    annotations: Expr | None = None
    closure: Expr | None = None
    annotate: Expr | None = None


@dataclass(slots=True, eq=False, repr=False)
class Op(Expr):
    """One canonical instruction applied to operands pushed in order; its single result is the value."""

    opname: str
    arg: Any
    operands: tuple[Expr, ...] = ()


@dataclass(slots=True, eq=False, repr=False)
class Stmt(Value):
    """Base of statements."""


Body = tuple[Stmt, ...]


@dataclass(slots=True, eq=False, repr=False)
class Assign(Stmt):
    """Store into a local variable that is no cell; a name the code does not have becomes a new local."""

    name: str
    value: Expr


@dataclass(slots=True, eq=False, repr=False)
class Do(Stmt):
    """Evaluate and drop."""

    value: Expr


@dataclass(slots=True, eq=False, repr=False)
class Effect(Stmt):
    """One canonical instruction without result, such as STORE_ATTR, STORE_DEREF or RAISE_VARARGS."""

    opname: str
    arg: Any
    operands: tuple[Expr, ...] = ()


@dataclass(slots=True, eq=False, repr=False)
class Apply(Stmt):
    """One canonical instruction applied to operands pushed in order. What it leaves goes into the locals `names`,
    the top first; None drops a value."""

    names: tuple[str | None, ...]
    opname: str
    arg: Any
    operands: tuple[Expr, ...] = ()


@dataclass(slots=True, eq=False, repr=False)
class Delete(Stmt):
    """Make a local unbound; UnboundLocalError if it is."""

    name: str


@dataclass(slots=True, eq=False, repr=False)
class Return(Stmt):
    value: Expr


@dataclass(slots=True, eq=False, repr=False)
class Branch(Stmt):
    """Push the operand; if the canonical conditional jump `opname` jumps run `taken`, else `fallthrough`.
    Both may fall off their end and then meet behind the statement."""

    opname: str
    operands: tuple[Expr, ...]
    taken: Body
    fallthrough: Body = ()


@dataclass(slots=True, eq=False, repr=False)
class IterBranch(Stmt):
    """Advance `iterator` (it must be an iterator) once: `more` runs with the next value in local `item_name`,
    `done` at the end. The iterator is in local `iter_name` in both."""

    iterator: Expr
    more: Body
    done: Body
    iter_name: str
    item_name: str


@dataclass(slots=True, eq=False, repr=False)
class Rescue(Stmt):
    """Run `body`; if it raises an instance of Exception, drop that and return `value`. Other exceptions
    propagate unchanged."""

    body: Body
    value: Expr


@dataclass(slots=True, eq=False, repr=False)
class Catch(Stmt):
    """Run `body`; if it raises anything, put the exception into local `name` and run `handler`. The exception
    does not become the handled one (`sys.exc_info()` is unchanged), so `handler` can hand it to a resume
    function at the user's own handler."""

    body: Body
    name: str
    handler: Body


@dataclass(slots=True, eq=False, repr=False)
class Handling(Stmt):
    """Run `body` while `exception` is the handled one, as in an except clause; afterwards the one before is.
    An exception of `body` passes on with the handled one restored."""

    exception: Expr
    body: Body


@dataclass(slots=True, eq=False, repr=False)
class At(Stmt):
    """The source position of what follows: a Position, or a line."""

    position: Position | int


def _args(items: Iterable[Expr]) -> str:
    return ", ".join(map(source, items))


def _items(items: tuple[Expr, ...]) -> str:
    return _args(items) + ("," if len(items) == 1 else "")


def _optional(name: str, value: Expr | None) -> str:
    return "" if value is None else f", {name}={source(value)}"


def _block(body: Body, empty: str = "pass") -> str:
    lines = [line for statement in body for line in source(statement).splitlines()]
    return "\n".join("    " + line for line in lines or [empty])


def _call_kw(e: CallKw) -> str:
    split = len(e.args) - len(e.names)
    named = [f"{name}={source(value)}" for name, value in zip(e.names, e.args[split:], strict=True)]
    return f"{source(e.fn)}({', '.join([*map(source, e.args[:split]), *named])})"


def _apply(s: Apply) -> str:
    names = ", ".join(name or "_" for name in s.names)
    if s.opname == "UNPACK_SEQUENCE":
        return f"{names}{',' * (len(s.names) == 1)} = {source(s.operands[0])}"
    return f"{names} = {_op(s)}"


def _op(e: Op | Effect | Apply) -> str:
    symbol = e.arg if e.opname in ("BINARY_OP", "COMPARE_OP") else None
    if symbol is not None and len(e.operands) == 2:
        return f"({source(e.operands[0])} {symbol} {source(e.operands[1])})"
    if e.opname == "STORE_ATTR" and len(e.operands) == 2:
        return f"{source(e.operands[1])}.{e.arg} = {source(e.operands[0])}"
    if e.opname == "STORE_SUBSCR" and len(e.operands) == 3:
        value, base, key = map(source, e.operands)
        return f"{base}[{key}] = {value}"
    if e.opname == "STORE_DEREF" and len(e.operands) == 1:
        return f"cell {e.arg} = {source(e.operands[0])}"
    arg = "" if e.arg is None else f"[{e.arg!r}]"
    return f"{e.opname}{arg}({_args(e.operands)})"


def _function(e: Function) -> str:
    parts = ("defaults", "kwdefaults", "annotations", "closure", "annotate")
    return f"function({source(e.code)}{''.join(_optional(part, getattr(e, part)) for part in parts)})"


def _branch(s: Branch) -> str:
    test = s.opname.removeprefix("POP_JUMP_IF_").lower()
    return f"if {test}({_args(s.operands)}):\n{_block(s.taken)}\nelse:\n{_block(s.fallthrough)}"


def _iter_branch(s: IterBranch) -> str:
    head = f"{s.iter_name} = {source(s.iterator)}\nif more({s.iter_name}) as {s.item_name}:"
    return f"{head}\n{_block(s.more)}\nelse:\n{_block(s.done)}"


def _constant(value: Any) -> str:
    """A constant's text. No code of the user's runs (a class may have a metaclass with `__repr__`), and ints
    may be wider than `repr` takes."""
    if type(value) is int and value.bit_length() > 2000:
        return hex(value)
    if isinstance(value, type):
        return type.__repr__(value)
    return repr(value)


_PRINTERS: dict[type, Callable[[Any], str]] = {
    Local: lambda e: e.name,
    Move: lambda e: e.name,
    Global: lambda e: e.name,
    Deref: lambda e: e.name,
    Cell: lambda e: f"cell({e.name})",
    Const: lambda e: _constant(e.value),
    Null: lambda e: "NULL",
    Attr: lambda e: f"{source(e.base)}.{e.name}",
    Item: lambda e: f"{source(e.base)}[{source(e.key)}]",
    Call: lambda e: f"{source(e.fn)}({_args(e.args)})",
    CallKw: _call_kw,
    CallEx: lambda e: (
        f"{source(e.fn)}(*{source(e.args)}{'' if e.kwargs is None else ', **' + source(e.kwargs)})"
    ),
    Tuple: lambda e: f"({_items(e.items)})",
    List: lambda e: f"[{_args(e.items)}]",
    Set: lambda e: f"{{{_args(e.items)}}}" if e.items else "set()",
    Map: lambda e: (
        "{" + ", ".join(f"{source(k)}: {source(v)}" for k, v in zip(e.keys, e.values, strict=True)) + "}"
    ),
    Slice: lambda e: f"slice({_args((e.start, e.stop) if e.step is None else (e.start, e.stop, e.step))})",
    Function: _function,
    Op: _op,
    Assign: lambda s: f"{s.name} = {source(s.value)}",
    Do: lambda s: source(s.value),
    Effect: _op,
    Apply: _apply,
    Delete: lambda s: f"del {s.name}",
    Return: lambda s: f"return {source(s.value)}",
    Branch: _branch,
    IterBranch: _iter_branch,
    Rescue: lambda s: f"try:\n{_block(s.body)}\nexcept Exception:\n    return {source(s.value)}",
    Catch: lambda s: f"try:\n{_block(s.body)}\ncatch {s.name}:\n{_block(s.handler)}",
    Handling: lambda s: f"handling {source(s.exception)}:\n{_block(s.body)}",
    At: lambda s: f"# line {s.position if isinstance(s.position, int) else s.position.line}",
}


def source(e: Expr | Stmt | Body) -> str:
    """The value as Python-like text; several lines for blocks and for tuples of statements."""
    if isinstance(e, tuple):
        return "\n".join(map(source, e))
    return _PRINTERS[type(e)](e)
