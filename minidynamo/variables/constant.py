"""Constants: values of exact, immutable builtin or torch types, known while tracing."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import torch

from ..guards.builder import GuardBuilder
from ..pycode import expr as E
from ..reasons import UNSUPPORTED_CALL
from ..sources import Source
from .base import NO_GUARDS, Emitting, Provenance, Tracing, VariableTracker
from .registry import FROM_PYTHON, wraps

SINGLETONS = (type(None), bool, type(Ellipsis), type(NotImplemented))
NUMBERS = (int, float, complex)
TEXT = (str, bytes)
TORCH = (torch.dtype, torch.device, torch.layout, torch.memory_format)
SINGLE = (*SINGLETONS, torch.dtype, torch.layout, torch.memory_format)  # equal ones are one object
CONSTANT_TYPES = frozenset((*SINGLETONS, *NUMBERS, *TEXT, *TORCH))

BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
    "%": operator.mod,
    "**": operator.pow,
    "@": operator.matmul,
    "<<": operator.lshift,
    ">>": operator.rshift,
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
}
INPLACE: dict[str, Callable[[Any, Any], Any]] = {
    "+=": operator.iadd,
    "-=": operator.isub,
    "*=": operator.imul,
    "/=": operator.itruediv,
    "//=": operator.ifloordiv,
    "%=": operator.imod,
    "**=": operator.ipow,
    "@=": operator.imatmul,
    "<<=": operator.ilshift,
    ">>=": operator.irshift,
    "&=": operator.iand,
    "|=": operator.ior,
    "^=": operator.ixor,
}
COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "<": operator.lt,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    ">=": operator.ge,
}
UNARY: dict[str, Callable[[Any], Any]] = {"-": operator.neg, "+": operator.pos, "~": operator.invert}

FOLD_LIMIT_BITS = (
    1 << 16
)  # larger results are left to plain Python: tracing must not take their time or memory


class ConstantVariable(VariableTracker):
    """A constant, guarded by its value. One from outside is rebuilt from its source (the program may compare identities), another
    one as a constant of the new code."""

    __slots__ = ("value",)

    def __init__(self, value: Any, source: Source | None = None, guards: Provenance = NO_GUARDS) -> None:
        self.source = source
        self.guards = guards
        self.value = value

    def python_type(self) -> type:
        return type(self.value)

    def is_python_constant(self) -> bool:
        return True

    def as_python_constant(self) -> Any:
        return self.value

    as_python_proxy = as_meta = as_python_constant

    def reconstruct(self, emit: Emitting) -> E.Expr:
        if self.source is not None and type(self.value) not in SINGLE:
            return emit.load(self.source)
        return E.Const(self.value)

    # --- operators ---------------------------------------------------------------------------------------------------
    def slot_binary(
        self, tx: Tracing, symbol: str, left: VariableTracker, right: VariableTracker
    ) -> VariableTracker | None:
        if not (left.is_python_constant() and right.is_python_constant()):
            if left is self and isinstance(self.value, TEXT) and symbol in ("%", "%="):
                tx.unsupported(UNSUPPORTED_CALL, name=f"formatting of {right.type_name()}")
            return None
        return self.of_constants(tx, symbol, left, right)

    def of_constants(
        self, tx: Tracing, symbol: str, left: VariableTracker, right: VariableTracker
    ) -> VariableTracker:
        """The operator on two constants, whichever operand's slot it is that computes it."""
        if symbol in MAY_GROW and _too_large(symbol, left.as_python_constant(), right.as_python_constant()):
            self._opaque(tx, f"operator {symbol}")
        return fold(tx, f"operator {symbol}", BINARY.get(symbol) or INPLACE[symbol], left, right)

    def slot_compare(
        self, tx: Tracing, symbol: str, left: VariableTracker, right: VariableTracker
    ) -> VariableTracker | None:
        if not (left.is_python_constant() and right.is_python_constant()):
            return None
        return fold(tx, f"operator {symbol}", COMPARE[symbol], left, right)

    def slot_unary(self, tx: Tracing, symbol: str) -> VariableTracker:
        return fold(tx, f"operator {symbol}", UNARY[symbol], self)

    def slot_truth(self, tx: Tracing) -> bool:
        if self.value is NotImplemented:  # warns, or raises from 3.14 on
            return VariableTracker.slot_truth(self, tx)
        return bool(self.value)

    def slot_len(self, tx: Tracing) -> int:
        if isinstance(self.value, TEXT):
            return len(self.value)
        return VariableTracker.slot_len(self, tx)

    def slot_getitem(self, tx: Tracing, key: VariableTracker) -> VariableTracker:
        if isinstance(self.value, TEXT) and key.is_python_constant():
            return fold(tx, "subscript", operator.getitem, self, key)
        return VariableTracker.slot_getitem(self, tx, key)

    def slot_contains(self, tx: Tracing, item: VariableTracker) -> bool:
        if isinstance(self.value, TEXT) and item.is_python_constant():
            return bool(fold(tx, "operator in", operator.contains, self, item).as_python_constant())
        return VariableTracker.slot_contains(self, tx, item)

    def sequence_items(self, tx: Tracing) -> list[VariableTracker] | None:
        if isinstance(self.value, TEXT):
            return [ConstantVariable(c, guards=self.guards) for c in self.value]
        return None

    def getattr(self, tx: Tracing, name: str) -> VariableTracker:
        value = self.value
        static = getattr(type(value), name, None)
        if type(static).__name__ in ("getset_descriptor", "member_descriptor"):
            return fold(tx, f"attribute {name}", lambda v: getattr(v, name), self)
        return VariableTracker.getattr(self, tx, name)

    def call_method(
        self, tx: Tracing, name: str, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
    ) -> VariableTracker:
        method = getattr(type(self.value), name, None)
        args = [a.realize(tx) for a in args]
        kwargs = {name: a.realize(tx) for name, a in kwargs.items()}
        if name == "join" and len(args) == 1 and not args[0].is_python_constant():
            items = args[0].sequence_items(tx)
            if items is None and not isinstance(args[0], ConstantVariable):
                items, iterator = [], args[0].slot_iter(tx)
                while (item := iterator.slot_next(tx)) is not None:
                    tx.trace.step()
                    items.append(item)
            args = args if items is None else [FROM_PYTHON[tuple]([item.realize(tx) for item in items])]
        if method is None or not all(a.is_python_constant() for a in (*args, *kwargs.values())):
            tx.unsupported(UNSUPPORTED_CALL, name=f"{self.type_name()}.{name}")
        values = {k: v.as_python_constant() for k, v in kwargs.items()}
        return fold(tx, f"{self.type_name()}.{name}", lambda *a: method(*a, **values), self, *args)


def fold(tx: Tracing, name: str, fn: Callable[..., Any], *operands: VariableTracker) -> VariableTracker:
    """Run a pure builtin on constants now. What it raises is the program's own error: plain Python raises it."""
    try:
        value = fn(*[o.as_python_constant() for o in operands])
    except Exception as error:
        tx.fails(name, error)
    return constant_value(tx, name, value, VariableTracker.propagate(*operands))


def constant_value(tx: Tracing, name: str, value: Any, guards: Provenance = NO_GUARDS) -> VariableTracker:
    """The tracker of a value computed while tracing; unsupported unless it is a constant or a tuple/list of constants."""
    tp = type(value)
    if tp in CONSTANT_TYPES:
        return ConstantVariable(value, guards=guards)
    made = FROM_PYTHON.get(tp)
    if made is not None:
        return made([constant_value(tx, name, item, guards) for item in value], guards=guards)
    tx.unsupported(UNSUPPORTED_CALL, name=f"{name} giving {tp.__name__}")


MAY_GROW = frozenset({"<<", "**", "*", "<<=", "**=", "*="})


def _too_large(symbol: str, a: Any, b: Any) -> bool:
    """Would folding build a huge number or string?"""
    op = symbol.rstrip("=")
    if op == "<<":
        return type(b) is int and b > FOLD_LIMIT_BITS
    if op == "**":
        return type(a) is int and type(b) is int and b > 0 and a.bit_length() * b > FOLD_LIMIT_BITS
    if op == "*":
        if isinstance(a, TEXT):
            return isinstance(b, int) and len(a) * b > FOLD_LIMIT_BITS
        return isinstance(b, TEXT) and isinstance(a, int) and len(b) * a > FOLD_LIMIT_BITS
    return False


@wraps(*SINGLETONS)
def wrap_singleton(tx: Tracing, value: Any, source: Source) -> VariableTracker:
    made = ConstantVariable(value, source)
    made.make_guards(tx, GuardBuilder.CONSTANT_MATCH)
    return made


@wraps(complex, *TEXT, *TORCH)
def wrap_constant(tx: Tracing, value: Any, source: Source) -> VariableTracker:
    made = ConstantVariable(value, source)
    made.make_guards(tx, GuardBuilder.TYPE_MATCH, GuardBuilder.EQUALS_MATCH)
    return made
