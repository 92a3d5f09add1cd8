"""Expression values -> canonical instructions, spelled for the running CPython.

The tables of `versions` spell each canonical instruction; what is here is only the order in which values are
pushed.
"""

from __future__ import annotations

import opcode
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from inspect import CO_VARARGS, CO_VARKEYWORDS
from types import CodeType, MappingProxyType
from typing import Any

import bytecode as bc
from bytecode.instr import InstrLocation

from ..exc import InternalError
from . import expr as x
from .canon import CANON
from .versions import CURRENT

_OPERATORS = {symbol: number for number, (_, symbol) in enumerate(opcode._nb_ops)}  # type: ignore[attr-defined]
_COMPARISONS = {symbol: number for number, symbol in enumerate(opcode.cmp_op)}

# How the `bytecode` package wants arguments that are not plain numbers or names.
_WRAP: dict[str, Callable[[Any], Any]] = {
    "BINARY_OP": lambda symbol: bc.BinaryOp(_OPERATORS[symbol]),
    "COMPARE_OP": lambda symbol: bc.Compare(_COMPARISONS[symbol]),
    "CALL_INTRINSIC_1": lambda name: bc.Intrinsic1Op[name],
    "CALL_INTRINSIC_2": lambda name: bc.Intrinsic2Op[name],
}

# Instructions whose operand stays below the result; as an `Op` that operand is dropped.
_KEEPS_OPERAND = frozenset({"IMPORT_FROM", "GET_LEN", "MATCH_MAPPING", "MATCH_SEQUENCE", "CHECK_EXC_MATCH"})
_FUNCTION_PARTS = (("defaults", 1), ("kwdefaults", 2), ("annotations", 4), ("closure", 8), ("annotate", 16))
NO_HOLES: Mapping[int, Any] = MappingProxyType({})


@dataclass(frozen=True, eq=False)
class Region:
    """A stretch whose exceptions go to `handler` with `depth` values left below."""

    handler: bc.Label
    depth: int
    lasti: bool


class Flattener:
    """Collects the instructions of one code object.

    cell_names, free_names  names that live in cells
    assigned                locals that certainly hold a value at this point
    deleted                 locals that were deleted anywhere: a handler cannot rely on them
    depth                   values that enclosing statements keep on the stack
    region, location        for the instructions that follow
    reachable               whether something leads to this point
    holes                   what takes the place of constants, by the constant's id
    """

    def __init__(self, code: CodeType, holes: Mapping[int, Any] = NO_HOLES) -> None:
        arguments = code.co_argcount + code.co_kwonlyargcount
        arguments += bool(code.co_flags & CO_VARARGS) + bool(code.co_flags & CO_VARKEYWORDS)
        self.cell_names, self.free_names = frozenset(code.co_cellvars), frozenset(code.co_freevars)
        self.assigned = set(code.co_varnames[:arguments])
        self.deleted: set[str] = set()
        self.depth = 0
        self.items: list[tuple[bc.Instr | bc.Label, Region | None]] = []
        self.location = InstrLocation(code.co_firstlineno, None, None, None)
        self.region: Region | None = None
        self.reachable = True
        self.holes = holes

    # emission
    def raw(self, name: str, arg: Any = None) -> None:
        """One instruction in the spelling of the `bytecode` package."""
        wrap = _WRAP.get(name)
        if wrap is not None:
            arg = wrap(arg)
        args = () if arg is None and name != "LOAD_CONST" else (arg,)
        self.items.append((bc.Instr(name, *args, location=self.location), self.region))

    def emit(self, opname: str, arg: Any = None) -> None:
        """One canonical instruction."""
        emitter = CURRENT.emit.get(opname)
        if emitter is None:
            raise InternalError(f"{opname} cannot be emitted on this CPython")
        for name, value in emitter(arg):
            self.raw(name, value)

    def label(self, label: bc.Label) -> None:
        self.items.append((label, self.region))

    def local(self, name: str) -> str:
        """`name`, checked to be a variable that is no cell."""
        if name in self.cell_names or name in self.free_names:
            raise InternalError(f"{name} lives in a cell: use Deref, Cell or STORE_DEREF")
        return name

    def cell(self, name: str) -> bc.CellVar | bc.FreeVar:
        """`name` as the `bytecode` package's cell or free variable."""
        if name in self.cell_names:
            return bc.CellVar(name)
        if name in self.free_names:
            return bc.FreeVar(name)
        raise InternalError(f"{name} is no cell or free variable of this code")

    def null_and(self, fn: x.Expr) -> None:
        """Push a callable and the NULL next to it."""
        if CURRENT.null_first:
            self.emit("PUSH_NULL")
            self.value(fn)
        else:
            self.value(fn)
            self.emit("PUSH_NULL")

    def values(self, items: Iterable[x.Expr]) -> None:
        for item in items:
            self.value(item)

    def value(self, e: x.Expr) -> None:
        """Code that pushes the value of `e`."""
        _VALUES[type(e)](self, e)

    @contextmanager
    def covered(self, region: Region | None) -> Iterator[None]:
        """Exceptions of what is emitted inside go to `region`."""
        outer, self.region = self.region, region
        try:
            yield
        finally:
            self.region = outer

    def join(self, alternatives: Iterable[Callable[[], None]]) -> None:
        """Run the emission of alternatives from the same state; afterwards only what all that get here have
        assigned is assigned."""
        before, ends = set(self.assigned), []
        for alternative in alternatives:
            self.assigned, self.reachable = set(before), True
            alternative()
            if self.reachable:
                ends.append(self.assigned)
        self.reachable = bool(ends)
        self.assigned = set.intersection(*ends) if ends else before


def _load_local(f: Flattener, e: x.Local) -> None:
    f.raw("LOAD_FAST" if f.local(e.name) in f.assigned else CURRENT.checked_local, e.name)


def _move(f: Flattener, e: x.Move) -> None:
    _load_local(f, x.Local(e.name))
    f.emit("DELETE_FAST", e.name)
    f.assigned.discard(e.name)
    f.deleted.add(e.name)


def _attr(f: Flattener, e: x.Attr) -> None:
    f.value(e.base)
    f.emit("LOAD_ATTR", e.name)


def _item(f: Flattener, e: x.Item) -> None:
    f.value(e.base)
    f.value(e.key)
    f.emit("BINARY_SUBSCR")


def _call(f: Flattener, e: x.Call) -> None:
    f.null_and(e.fn)
    f.values(e.args)
    f.emit("CALL", len(e.args))


def _call_kw(f: Flattener, e: x.CallKw) -> None:
    f.null_and(e.fn)
    f.values(e.args)
    f.emit("CALL_KW", (len(e.args), e.names))


def _call_ex(f: Flattener, e: x.CallEx) -> None:
    f.null_and(e.fn)
    f.value(e.args)
    if e.kwargs is not None:
        f.value(e.kwargs)
    f.emit("CALL_FUNCTION_EX", int(e.kwargs is not None))


def _build(opname: str) -> Callable[[Flattener, Any], None]:
    def build(f: Flattener, e: Any) -> None:
        f.values(e.items)
        f.emit(opname, len(e.items))

    return build


def _map(f: Flattener, e: x.Map) -> None:
    for key, value in zip(e.keys, e.values, strict=True):
        f.value(key)
        f.value(value)
    f.emit("BUILD_MAP", len(e.keys))


def _slice(f: Flattener, e: x.Slice) -> None:
    parts = (e.start, e.stop) if e.step is None else (e.start, e.stop, e.step)
    f.values(parts)
    f.emit("BUILD_SLICE", len(parts))


def _function(f: Flattener, e: x.Function) -> None:
    flags = 0
    for part, bit in _FUNCTION_PARTS:
        value = getattr(e, part)
        if value is not None:
            flags |= bit
            f.value(value)
    f.value(e.code)
    f.emit("MAKE_FUNCTION", flags)


def operands(f: Flattener, e: x.Op | x.Effect | x.Apply, results: int) -> None:
    """Push the operands of a canonical instruction, checked against its row."""
    row = CANON.get(e.opname)
    if row is None or row.jump_effect is not None:
        raise InternalError(f"{e.opname} is no canonical instruction that can stand in an expression")
    if results - len(e.operands) != row.effect(e.arg):
        raise InternalError(
            f"{x.source(e)}: {e.opname} does not take {len(e.operands)} operands and give {results}"
        )
    f.values(e.operands)


def spell(f: Flattener, e: x.Op | x.Effect | x.Apply) -> None:
    kind = CANON[e.opname].arg_kind
    f.emit(e.opname, f.cell(e.arg) if kind == "cell" else f.local(e.arg) if kind == "local" else e.arg)


def _callee(operands: tuple[x.Expr, ...]) -> tuple[x.Expr | None, tuple[x.Expr, ...]]:
    """Canonical a, b, *args -> (callable, the rest), or (None, all) if a is a method called with b first."""
    first, second, *rest = operands
    if isinstance(first, x.Null):
        return second, tuple(rest)
    if isinstance(second, x.Null):
        return first, tuple(rest)
    return None, operands


def _op_call(f: Flattener, e: x.Op) -> None:
    fn, args = _callee(e.operands)
    if fn is not None:
        _call(f, x.Call(fn, args))
    else:
        f.values(args)
        f.emit("CALL", e.arg)


def _op_call_kw(f: Flattener, e: x.Op) -> None:
    names = e.operands[-1]
    if not isinstance(names, x.Const):
        raise InternalError("the names of a CALL_KW must be a constant")
    fn, args = _callee(e.operands[:-1])
    if fn is not None:
        _call_kw(f, x.CallKw(fn, args, names.value))
    else:
        f.values(args)
        f.emit("CALL_KW", (e.arg, names.value))


def _op_call_ex(f: Flattener, e: x.Op) -> None:
    split = -2 if e.arg else -1
    fn, rest = _callee(e.operands[:split])
    if fn is None or rest:
        raise InternalError("CALL_FUNCTION_EX takes one callable and one NULL")
    args, kwargs = (e.operands[-2], e.operands[-1]) if e.arg else (e.operands[-1], None)
    _call_ex(f, x.CallEx(fn, args, None if isinstance(kwargs, x.Null) else kwargs))


def _op_const_key_map(f: Flattener, e: x.Op) -> None:
    keys = e.operands[-1]
    if not isinstance(keys, x.Const):
        raise InternalError("the keys of a BUILD_CONST_KEY_MAP must be a constant")
    _map(f, x.Map(tuple(map(x.Const, keys.value)), e.operands[:-1]))


def _op_make_function(f: Flattener, e: x.Op) -> None:
    names = {bit: part for part, bit in _FUNCTION_PARTS}
    parts: dict[str, x.Expr] = {}
    while e.opname == "SET_FUNCTION_ATTRIBUTE":
        value, inner = e.operands
        if not isinstance(inner, x.Op) or e.arg not in names:
            raise InternalError("SET_FUNCTION_ATTRIBUTE applies to a MAKE_FUNCTION; use Function")
        parts.setdefault(names[e.arg], value)
        e = inner
    _function(f, x.Function(e.operands[0], **parts))


_OPS: dict[str, Callable[[Flattener, x.Op], None]] = {
    "CALL": _op_call,
    "CALL_KW": _op_call_kw,
    "CALL_FUNCTION_EX": _op_call_ex,
    "BUILD_CONST_KEY_MAP": _op_const_key_map,
    "MAKE_FUNCTION": _op_make_function,
    "SET_FUNCTION_ATTRIBUTE": _op_make_function,
}


def _op(f: Flattener, e: x.Op) -> None:
    special = _OPS.get(e.opname)
    if special is not None:
        special(f, e)
        return
    kept = e.opname in _KEEPS_OPERAND
    operands(f, e, 2 if kept else 1)
    spell(f, e)
    if kept:
        f.emit("SWAP", 2)
        f.emit("POP_TOP")


_VALUES: dict[type, Callable[[Flattener, Any], None]] = {
    x.Local: _load_local,
    x.Move: _move,
    x.Global: lambda f, e: f.emit("LOAD_GLOBAL", e.name),
    x.Deref: lambda f, e: f.emit("LOAD_DEREF", f.cell(e.name)),
    x.Cell: lambda f, e: f.emit("LOAD_CLOSURE", f.cell(e.name)),
    x.Const: lambda f, e: f.emit("LOAD_CONST", f.holes.get(id(e.value), e.value)),
    x.Null: lambda f, e: f.emit("PUSH_NULL"),
    x.Attr: _attr,
    x.Item: _item,
    x.Call: _call,
    x.CallKw: _call_kw,
    x.CallEx: _call_ex,
    x.Tuple: _build("BUILD_TUPLE"),
    x.List: _build("BUILD_LIST"),
    x.Set: _build("BUILD_SET"),
    x.Map: _map,
    x.Slice: _slice,
    x.Function: _function,
    x.Op: _op,
}
