"""Constants as guard text and back: `parse_literal(literal(v))` is `v`, bit for bit and type for type.

Only exact builtin constant types and torch's own constants have a literal. Any other object that a path or a
guard must name (a class used as a dict key, an enum member, ...) is a `Ref`, held weakly.
"""

from __future__ import annotations

import ast
import itertools
import math
import struct
import sys
import types
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from minidynamo import exc
from minidynamo.static_access import is_one_of, is_subtype, type_name

# sys.set_int_max_str_digits may be as low as 640; wider ints are written in hex, which has no limit.
_DECIMAL_BITS = 2000
# Nested parentheses that the Python parser takes are limited (200 on every supported version).
_MAX_DEPTH = 50


def float_bits(value: float) -> int:
    """The 64 bits of an IEEE double."""
    return int(struct.unpack("<Q", struct.pack("<d", value))[0])


def bits_float(bits: int) -> float:
    """Inverse of `float_bits`."""
    return float(struct.unpack("<d", struct.pack("<Q", bits))[0])


# ---------------------------------------------------------------------------------------------------- refs


# C objects that cannot change and own nothing of the user's: naming them strongly leaks nothing.
_IMMUTABLE_TYPES = (
    types.MethodDescriptorType,
    types.WrapperDescriptorType,
    types.GetSetDescriptorType,
    types.MemberDescriptorType,
    types.ClassMethodDescriptorType,
    type(None),
    type(Ellipsis),
    type(NotImplemented),
    bool,
)
_IMMUTABLE_IDS = frozenset(map(id, _IMMUTABLE_TYPES))
_TORCH_SINGLETONS = ("dtype", "layout", "memory_format")
_torch_ids: set[int] = set()  # ids of these classes, which never die


def _torch_type(name: str) -> Any:
    """torch's class of that name, None while torch is not imported (then no such object exists)."""
    return getattr(sys.modules.get("torch"), name, None)


def is_immutable(obj: object) -> bool:
    """Whether `obj` may be held strongly by guards."""
    cls = type(obj)
    if cls is types.BuiltinFunctionType:
        owner = obj.__self__  # type: ignore[attr-defined]
        return owner is None or is_one_of(type(owner), (types.ModuleType, type))
    if len(_torch_ids) < len(_TORCH_SINGLETONS):
        _torch_ids.update(id(found) for name in _TORCH_SINGLETONS if (found := _torch_type(name)) is not None)
    return id(cls) in _IMMUTABLE_IDS or id(cls) in _torch_ids


def is_weakrefable(obj: object) -> bool:
    try:
        weakref.ref(obj)
    except TypeError:
        return False
    return True


class _RefTable:
    """The `___ref` of guard text: number -> object, weak unless the object is immutable. KeyError once it
    died.
    """

    def __init__(self) -> None:
        self._numbers = itertools.count()
        self._objects: dict[int, Callable[[], Any]] = {}
        self._by_id: dict[int, int] = {}

    def add(self, obj: object) -> int:
        number = self._by_id.get(id(obj))
        if number is not None and self._objects[number]() is obj:
            return number
        number = next(self._numbers)
        if is_immutable(obj):
            self._objects[number] = lambda: obj
        else:
            self._objects[number] = self._weak(obj, number, id(obj))
        self._by_id[id(obj)] = number
        return number

    def _weak(self, obj: object, number: int, address: int) -> Callable[[], Any]:
        def dead(_: object) -> None:
            self._objects.pop(number, None)
            if self._by_id.get(address) == number:
                del self._by_id[address]

        try:
            return weakref.ref(obj, dead)
        except TypeError:
            raise exc.Unsupported(
                f"a {type_name(type(obj))} object is used as a key that guards must name, but it has no weak "
                "references and no literal form"
            ) from None

    def __getitem__(self, number: int) -> Any:
        obj = self._objects[number]()
        if obj is None and number in self._objects and not isinstance(self._objects[number], weakref.ref):
            return None
        if obj is None:
            raise KeyError(number)
        return obj


REFS = _RefTable()


@dataclass(frozen=True, slots=True)
class Ref:
    """An object that has no literal, by its number in the process-wide weak table: `___ref[3]`."""

    number: int
    table: ClassVar[_RefTable] = REFS

    @classmethod
    def of(cls, obj: object) -> Ref:
        """Raises Unsupported for an object that is neither immutable nor weakly referable."""
        return cls(REFS.add(obj))

    def resolve(self) -> Any:
        """The object. Raises KeyError when it died."""
        return REFS[self.number]


def as_key(value: object) -> Any:
    """`value` as a row or path may hold it: itself if it has a literal, tuples element by element, else a
    Ref.
    """
    if type(value) is str or is_literal(value) and value == value:
        return value
    if type(value) is tuple:
        return tuple(as_key(item) for item in value)
    return Ref.of(value)


# -------------------------------------------------------------------------------------------- value -> text


def _int(value: int) -> str:
    return repr(value) if value.bit_length() <= _DECIMAL_BITS else hex(value)


def _float(value: float) -> str:
    return repr(value) if math.isfinite(value) else f"___float({float_bits(value):#x})"


def _tuple(value: tuple[Any, ...]) -> str:
    return f"({', '.join(map(literal, value))}{',' if len(value) == 1 else ''})"


def _torch_singleton(value: object) -> str:
    return "___" + str(value)


_PRINTERS: dict[type, Callable[[Any], str]] = {
    type(None): repr,
    bool: repr,
    type(Ellipsis): lambda v: "...",
    type(NotImplemented): lambda v: "___NotImplemented",
    int: _int,
    float: _float,
    complex: lambda v: f"___complex({_float(v.real)}, {_float(v.imag)})",
    str: repr,
    bytes: repr,
    tuple: _tuple,
    frozenset: lambda v: f"___frozenset({_tuple(tuple(_Text(t) for t in sorted(map(literal, v))))})",
    range: lambda v: f"___range({_int(v.start)}, {_int(v.stop)}, {_int(v.step)})",
    slice: lambda v: f"___slice({literal(v.start)}, {literal(v.stop)}, {literal(v.step)})",
    Ref: lambda v: f"___ref[{v.number}]",
}


class _Text(str):
    """Text that is printed as it is, inside a container."""


_PRINTERS[_Text] = str

_TORCH_PRINTERS: dict[str, Callable[[Any], str]] = {
    **dict.fromkeys(_TORCH_SINGLETONS, _torch_singleton),
    "device": lambda v: f"___device({v.type!r}, {v.index!r})",
    "Size": lambda v: f"___Size({_tuple(tuple(v))})",
}


_PRINTERS_BY_ID = {id(cls): printer for cls, printer in _PRINTERS.items()}


def _printer(value: object) -> Callable[[Any], str] | None:
    cls = type(value)
    printer = _PRINTERS_BY_ID.get(id(cls))
    if printer is None:
        return next((p for name, p in _TORCH_PRINTERS.items() if cls is _torch_type(name)), None)
    return printer


def is_literal(value: object, depth: int = 0) -> bool:
    """Whether `literal(value)` exists. A Ref counts as one."""
    if type(value) is str or type(value) is int or type(value) is bool:
        return True
    if depth > _MAX_DEPTH or _printer(value) is None:
        return False
    parts: Any = ()
    if isinstance(value, (tuple, frozenset)):
        parts = value
    elif isinstance(value, slice):
        parts = (value.start, value.stop, value.step)
    return all(is_literal(part, depth + 1) for part in parts)


def literal(value: object) -> str:
    """The text of a constant. Raises InternalError when `value` has no literal form."""
    if type(value) is str:
        return repr(value)
    printer = _printer(value)
    if printer is None:
        raise exc.InternalError(f"a {type_name(type(value))} object has no literal form in a guard")
    return printer(value)


# -------------------------------------------------------------------------------------------- text -> value


def make_device(kind: str, index: int | None) -> Any:
    """`___device` of guard text."""
    import torch

    return torch.device(kind) if index is None else torch.device(kind, index)


def make_size(sizes: tuple[int, ...]) -> Any:
    """`___Size` of guard text."""
    import torch

    return torch.Size(sizes)


CONSTRUCTORS: dict[str, Callable[..., Any]] = {
    "___float": bits_float,
    "___complex": complex,
    "___frozenset": frozenset,
    "___range": range,
    "___slice": slice,
    "___device": make_device,
    "___Size": make_size,
}


class NotALiteral(Exception):
    """The text is no literal (it may be a path)."""


def parse_literal(node: ast.expr) -> Any:
    """The value of a literal's syntax tree. Raises NotALiteral."""
    match node:
        case ast.Constant(value):
            return value
        case ast.UnaryOp(ast.USub(), ast.Constant(int() | float() as number)) if type(number) is not bool:
            return -number
        case ast.Tuple(items):
            return tuple(parse_literal(item) for item in items)
        case ast.Call(ast.Name(name), args, []) if name in CONSTRUCTORS:
            return CONSTRUCTORS[name](*map(parse_literal, args))
        case ast.Subscript(ast.Name("___ref"), ast.Constant(number)) if type(number) is int:
            return Ref(number)
        case ast.Name("___NotImplemented"):
            return NotImplemented
        case ast.Attribute(ast.Name("___torch"), name):
            import torch

            return getattr(torch, name)
    raise NotALiteral(ast.dump(node))


# ----------------------------------------------------------------------------------------------- comparison


def same(value: object, expected: object) -> bool:
    """Whether `value` is the same constant as `expected`: exact types throughout, floats by their bits.

    `expected` has a literal. No code of the user's runs: values of other types are compared by identity with
    Refs only.
    """
    if type(expected) is Ref:
        return value is expected.resolve()
    if value is expected:  # also the object of a Ref that guard text has resolved
        return True
    cls = type(value)
    if cls is not type(expected):
        return False
    if cls is float:
        return _same_float(value, expected)  # type: ignore[arg-type]
    if is_subtype(cls, tuple):
        left: Any = value
        right: Any = expected
        same_length = tuple.__len__(left) == tuple.__len__(right)
        return same_length and all(map(same, tuple.__iter__(left), tuple.__iter__(right)))
    return is_literal(value) and literal(value) == literal(expected)


def _same_float(value: float, expected: float) -> bool:
    if value == expected:
        return value != 0.0 or math.copysign(1.0, value) == math.copysign(1.0, expected)
    return value != value and float_bits(value) == float_bits(expected)
