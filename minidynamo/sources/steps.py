"""Attributes, items, keys, types, weak references: one step from a base."""

from __future__ import annotations

import types
import weakref
from collections import deque
from dataclasses import field
from types import CodeType
from typing import Any

from minidynamo import exc, static_access
from minidynamo.literals import Ref, literal
from minidynamo.pycode import expr
from minidynamo.sources.base import ChainedSource, Source, source
from minidynamo.sources.roots import LocalSource

# Attributes that the type of their owner keeps itself; their plain spelling is readable and runs C code only.
PLAIN_MEMBERS = frozenset(
    {"__dict__", "__globals__", "__func__", "__self__", "_parameters", "_buffers", "_modules"}
)


# Parts of what a class holds under a name; taking the name from an object the usual way would bind or run it.
RAW_MEMBERS = frozenset({"__func__", "fget", "fset", "fdel"})


@source
class AttrSource(ChainedSource):
    """An attribute, read statically: `___attr(x, 'k')`, or `x.k` for the structural ones in PLAIN_MEMBERS.

    raw: emitted code too loads what the class has under the name, without running a descriptor; guards read structural ones too
        as `___attr`
    """

    member: str
    raw: bool = field(default=False, compare=False)

    def spell(self) -> str:
        if self.member in PLAIN_MEMBERS and not self.raw:
            return f"{self.base.name()}.{self.member}"
        return f"___attr({self.base.name()}, {self.member!r})"

    def expr_on(self, base: Any, code: CodeType | None) -> Any:
        if self.member == "cell_contents" and isinstance(self.base, LocalSource):
            return expr.Deref(self.base.local)  # a resume function's cell parameter is one of its cells
        if self.raw:
            return expr.Call(expr.Const(static_access.static_attr), (base, expr.Const(self.member)))
        if self.member in RAW_MEMBERS and isinstance(self.base, AttrSource):
            raw = (self.base.base.expr(code), expr.Const(self.base.member))
            return expr.Attr(expr.Call(expr.Const(static_access.static_attr), raw), self.member)
        return expr.Attr(base, self.member)

    def step(self, value: Any) -> Any:
        return static_access.static_attr(value, self.member)

    def plain_base(self) -> Source | None:
        return self.base if self.member in PLAIN_MEMBERS and not self.raw else None

    def describe(self) -> str:
        return f"{self.base.owner()}.{self.member}"


@source
class ItemSource(ChainedSource):
    """`x[key]` on a builtin container whose `__getitem__` is C code (see `item_source`). `key` is a literal
    or a Ref.
    """

    key: Any

    def spell(self) -> str:
        return f"{self.base.name()}[{literal(self.key)}]"

    def expr_on(self, base: Any, code: CodeType | None) -> Any:
        return expr.Item(base, _key_expr(self.key))

    def step(self, value: Any) -> Any:
        container = value
        if not has_plain_items(type(container)):
            raise TypeError(
                f"items of a {static_access.type_name(type(container))} are read by code of its own"
            )
        return container[_key(self.key)]

    def plain_base(self) -> Source | None:
        return self.base

    def describe(self) -> str:
        return f"{self.base.owner()}[{literal(self.key)}]"


@source
class DictItemSource(ChainedSource):
    """An item of a dict subclass, overrides and `__missing__` bypassed: `___dict_item(d, key)`."""

    key: Any

    def spell(self) -> str:
        return f"___dict_item({self.base.name()}, {literal(self.key)})"

    def expr_on(self, base: Any, code: CodeType | None) -> Any:
        return expr.Call(expr.Const(dict.__getitem__), (base, _key_expr(self.key)))

    def step(self, value: Any) -> Any:
        return static_access.dict_item(value, _key(self.key))

    def describe(self) -> str:
        return f"{self.base.owner()}[{literal(self.key)}]"


@source
class DictKeySource(ChainedSource):
    """The key at one position of a dict's iteration order."""

    index: int

    def spell(self) -> str:
        return f"___dict_key({self.base.name()}, {self.index})"

    def expr_on(self, base: Any, code: CodeType | None) -> Any:
        keys = expr.Call(expr.Const(list), (base,))
        return expr.Item(keys, expr.Const(self.index))

    def step(self, value: Any) -> Any:
        return static_access.dict_key(value, self.index)

    def describe(self) -> str:
        return f"key {self.index} of {self.base.owner()}"


@source
class TypeSource(ChainedSource):
    """The exact type of a value."""

    def spell(self) -> str:
        return f"___type({self.base.name()})"

    def expr_on(self, base: Any, code: CodeType | None) -> Any:
        return expr.Call(expr.Const(type), (base,))

    def step(self, value: Any) -> Any:
        return type(value)

    def describe(self) -> str:
        return f"type of {self.base.owner()}"


@source
class WeakRefSource(ChainedSource):
    """The object that a `weakref.ref` points to."""

    def spell(self) -> str:
        return f"___weakref_target({self.base.name()})"

    def expr_on(self, base: Any, code: CodeType | None) -> Any:
        return expr.Call(base, ())

    def step(self, value: Any) -> Any:
        ref = value
        if type(ref) is not weakref.ref:
            raise TypeError(f"a {static_access.type_name(type(ref))} is no weakref.ref")
        return ref()

    def plain_base(self) -> Source | None:
        return self.base

    def describe(self) -> str:
        return f"target of {self.base.owner()}"


_CONTAINERS = (list, tuple, dict, str, bytes, bytearray, range)
_C_METHODS = (types.WrapperDescriptorType, types.MethodDescriptorType)


def has_plain_items(cls: type) -> bool:
    """Whether `x[k]` on an exact `cls` runs C code only and has no effect: no override, no `__missing__`."""
    if static_access.is_one_of(cls, (dict, list, tuple, deque)):
        return True
    return (
        any(static_access.is_subtype(cls, container) for container in _CONTAINERS)
        and static_access.is_one_of(type(static_access.type_lookup(cls, "__getitem__")), _C_METHODS)
        and static_access.type_lookup(cls, "__missing__") is None
    )


def item_source(base: Source, key: object, container: object) -> ItemSource | DictItemSource:
    """The source of `container[key]`; `key` is a literal or a Ref. Raises Unsupported for no builtin
    container.
    """
    cls = type(container)
    if has_plain_items(cls):
        return ItemSource(base, key)
    if static_access.is_subtype(cls, dict):
        return DictItemSource(base, key)
    raise exc.Unsupported(
        f"items of {static_access.type_name(cls)} are read by its own __getitem__, which a guard cannot run"
    )


def _key(key: object) -> Any:
    return key.resolve() if type(key) is Ref else key


def _key_expr(key: object) -> Any:
    return expr.Const(_key(key))
