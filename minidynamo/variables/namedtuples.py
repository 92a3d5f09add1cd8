"""Tuples with named fields: classes made by collections.namedtuple and typing.NamedTuple."""

from __future__ import annotations

import types
from collections import namedtuple
from typing import Any

from ..guards.builder import GuardBuilder
from ..guards.guard import make_guard
from ..pycode import expr as E
from ..reasons import CALL_ARGUMENTS, OPAQUE_VALUE
from ..sources import AttrSource, ItemSource, Source, TypeSource
from ..static_access import is_subtype, type_lookup
from .base import NO_GUARDS, Emitting, Provenance, Tracing, VariableTracker
from .dicts import from_names
from .functions import UserFunctionVariable
from .lazy import LazyVariable
from .methods import UserMethodVariable
from .registry import wraps_if
from .sequences import TupleVariable

_FIELD = type(vars(namedtuple("_Sample", "field"))["field"])
# What decides how an instance behaves as a tuple; a class with its own is not followed.
_TUPLE_SLOTS = (
    *("__getattribute__", "__getitem__", "__iter__", "__len__", "__contains__", "__hash__", "__bool__"),
    *("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__", "__add__", "__mul__", "__rmul__"),
)


def is_namedtuple(cls: Any) -> bool:
    """A class whose instances are tuples with the fields `_fields`, and which leaves to tuple what tuples do."""
    if not is_subtype(type(cls), type) or type(cls) is not type or not is_subtype(cls, tuple):
        return False
    fields = type_lookup(cls, "_fields")
    return (
        type(fields) is tuple
        and all(type(type_lookup(cls, name)) is _FIELD for name in fields)
        and all(type_lookup(cls, name) is type_lookup(tuple, name) for name in _TUPLE_SLOTS)
        and type_lookup(cls, "__getattr__") is None
        and type_lookup(cls, "__dict__") is None
    )


def own_new(cls: type) -> types.FunctionType | None:
    """The `__new__` that namedtuple generated: it takes the fields and makes the tuple. None when the class has another one."""
    raw = type_lookup(cls, "__new__")
    fn = raw.__func__ if type(raw) is staticmethod else None
    if type(fn) is not types.FunctionType or type_lookup(cls, "__init__") is not object.__init__:
        return None
    parameters = fn.__code__.co_varnames[: fn.__code__.co_argcount]
    generated = fn.__globals__.get("_tuple_new") is tuple.__new__
    return fn if generated and parameters == ("_cls", *type_lookup(cls, "_fields")) else None


class NamedTupleVariable(TupleVariable):
    """Rebuilt from its source, or by `tuple.__new__`."""

    __slots__ = ("cls", "class_tracker")

    def __init__(
        self,
        items: list[VariableTracker],
        cls: type,
        class_tracker: VariableTracker | None,
        source: Source | None = None,
        guards: Provenance = NO_GUARDS,
    ) -> None:
        """`class_tracker` is needed for an instance without a source."""
        super().__init__(items, source, guards)
        self.cls = cls
        self.class_tracker = class_tracker

    def python_type(self) -> type:
        return self.cls

    def is_python_constant(self) -> bool:
        return False

    def like(self, items: list[VariableTracker], guards: Provenance) -> TupleVariable:
        return TupleVariable(items, guards=guards)

    def fields(self) -> tuple[str, ...]:
        found: tuple[str, ...] = type_lookup(self.cls, "_fields")
        return found

    def class_variable(self, tx: Tracing) -> VariableTracker:
        if self.class_tracker is None:
            assert self.source is not None
            self.class_tracker = tx.wrap(self.cls, TypeSource(self.source))
        return self.class_tracker

    def class_source(self, tx: Tracing, name: str) -> Source:
        source = self.class_variable(tx).source
        if source is None:
            self._opaque(tx, f"attribute {name} of a class without a name")
        return AttrSource(source, name)

    def getattr(self, tx: Tracing, name: str) -> VariableTracker:
        """Fields, and what the user's own class body has: functions, properties, constants."""
        fields = self.fields()
        raw = type_lookup(self.cls, name)
        if name in fields:
            return self.items[fields.index(name)]
        if name == "_fields":
            return tx.lazily(raw, self.class_source(tx, name))
        if name == "__class__":
            return self.class_variable(tx)
        generated = type(raw) is types.FunctionType and raw.__module__ == "collections"
        if type(raw) is types.FunctionType and not generated and tx.may_inline(raw):
            return UserMethodVariable(tx.wrap(raw, self.class_source(tx, name)), self, name)
        if type(raw) is property and type(raw.fget) is types.FunctionType:
            getter = AttrSource(self.class_source(tx, name), "fget")
            return tx.call(tx.wrap(raw.fget, getter), [self], {})
        if name in METHODS and type(raw) is types.FunctionType:
            return NamedTupleMethodVariable(self, name)
        if raw is None or type_lookup(type(raw), "__get__") is not None:
            return super().getattr(tx, name)
        return tx.lazily(raw, self.class_source(tx, name))

    def call_method(
        self, tx: Tracing, name: str, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
    ) -> VariableTracker:
        if name in ("index", "count"):
            return TupleVariable(self.items, guards=self.guards).call_method(tx, name, args, kwargs)
        return tx.call(self.getattr(tx, name), args, kwargs)

    def children(self) -> tuple[VariableTracker, ...]:
        if self.source is not None or self.class_tracker is None:
            return ()
        return (self.class_tracker, *self.items)

    def reconstruct(self, emit: Emitting) -> E.Expr:
        if self.source is not None:
            return emit.load(self.source)
        assert self.class_tracker is not None
        items = E.Tuple(tuple(emit.value(item) for item in self.items))
        return E.Call(E.Const(tuple.__new__), (emit.value(self.class_tracker), items))


def _replace(self: NamedTupleVariable, tx: Tracing, kwargs: dict[str, VariableTracker]) -> VariableTracker:
    fields = self.fields()
    if not kwargs.keys() <= set(fields):
        tx.unsupported(CALL_ARGUMENTS, name="_replace", detail="names that are no fields")
    items = [kwargs.get(name, item) for name, item in zip(fields, self.items)]
    return NamedTupleVariable(
        items, self.cls, self.class_variable(tx), guards=VariableTracker.propagate(self, *items)
    )


def _asdict(self: NamedTupleVariable, tx: Tracing, kwargs: dict[str, VariableTracker]) -> VariableTracker:
    if kwargs:
        tx.unsupported(CALL_ARGUMENTS, name="_asdict", detail="keywords")
    return from_names(tx, dict(zip(self.fields(), self.items)))


METHODS = {"_replace": _replace, "_asdict": _asdict}


class NamedTupleMethodVariable(VariableTracker):
    """A method that namedtuple gave the class."""

    __slots__ = ("owner", "name")

    def __init__(self, owner: NamedTupleVariable, name: str) -> None:
        super().__init__(None, owner.guards)
        self.owner = owner
        self.name = name

    def python_type(self) -> type:
        return types.MethodType

    def children(self) -> tuple[VariableTracker, ...]:
        return (self.owner,)

    def call_function(
        self, tx: Tracing, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
    ) -> VariableTracker:
        if args:
            tx.unsupported(CALL_ARGUMENTS, name=self.name, detail="positional arguments")
        made_by = type_lookup(self.owner.cls, self.name)
        if made_by.__module__ != "collections" and not made_by.__module__.startswith("namedtuple_"):
            tx.unsupported(OPAQUE_VALUE, operation=f"method {self.name}", type=self.owner.type_name())
        return METHODS[self.name](self.owner, tx, kwargs)

    def reconstruct(self, emit: Emitting) -> E.Expr:
        return E.Attr(emit.value(self.owner), self.name)


def make_namedtuple(
    tx: Tracing, cls: type, tracker: Any, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
) -> VariableTracker:
    """`cls(*args, **kwargs)`: the generated `__new__` binds them to fields."""
    new = own_new(cls)
    if new is None or tracker.source is None:
        tx.unsupported(OPAQUE_VALUE, operation="call", type=cls.__name__)
    source = AttrSource(AttrSource(tracker.source, "__new__"), "__func__")
    tx.install(make_guard(source, GuardBuilder.FUNCTION_MATCH))
    bound = UserFunctionVariable(new, source).bind(tx, [tracker, *args], kwargs)
    items = [bound[name] for name in type_lookup(cls, "_fields")]
    return NamedTupleVariable(items, cls, tracker, guards=VariableTracker.propagate(tracker, *items))


@wraps_if("named tuple", lambda value: is_namedtuple(type(value)))
def wrap_namedtuple(tx: Tracing, value: Any, source: Source) -> VariableTracker:
    items: list[VariableTracker] = [
        LazyVariable(item, ItemSource(source, index)) for index, item in enumerate(tuple.__iter__(value))
    ]
    made = NamedTupleVariable(items, type(value), None, source)
    made.make_guards(tx, GuardBuilder.TYPE_MATCH, GuardBuilder.TUPLE_LENGTH)
    tx.guard_class(type(value), TypeSource(source))
    return made
