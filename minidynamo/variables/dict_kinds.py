"""collections.OrderedDict and collections.defaultdict."""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from typing import Any

from ..guards.builder import GuardBuilder
from ..pycode import expr as E
from ..reasons import UNSUPPORTED_CALL
from ..sources import AttrSource, Source
from .base import NO_GUARDS, Emitting, Provenance, Tracing, VariableTracker
from .constant import ConstantVariable
from .dicts import DictVariable, items_from
from .keys import Key
from .opaque import wrap_opaque
from .registry import wraps
from .sequences import NONE, TupleVariable


class DictKindVariable(DictVariable):
    """A dict of another type: never an argument of an operator of the graph."""

    __slots__ = ()

    def is_python_proxy(self) -> bool:
        return False

    def as_python_proxy(self) -> Any:
        raise TypeError(f"a value of type {self.type_name()}")

    as_meta = as_python_proxy

    def contents(self, emit: Emitting) -> E.Expr:
        return E.Map(
            tuple(emit.value(key.tracker) for key in self.items),
            tuple(emit.value(value) for value in self.items.values()),
        )


class OrderedDictVariable(DictKindVariable):
    """Remembers the order in which keys were added, and lets it be changed."""

    __slots__ = ()
    real_type = OrderedDict
    in_order = True

    def like(self, items: dict[Key, VariableTracker], guards: Provenance) -> DictVariable:
        return OrderedDictVariable(items, guards=guards)

    def call_method(
        self, tx: Tracing, name: str, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
    ) -> VariableTracker:
        last = kwargs.get("last")
        if name == "popitem" and len(args) + len(kwargs) <= 1 and (not kwargs or last is not None):
            return self.pop_end(tx, flag(tx, last or (args[0] if args else None)))
        if (
            name == "move_to_end"
            and 1 <= len(args) + len(kwargs) <= 2
            and args
            and (not kwargs or last is not None)
        ):
            return self.move(tx, args[0], flag(tx, last or (args[1] if len(args) == 2 else None)))
        if kwargs and name == "pop" and kwargs.keys() == {"default"} and len(args) == 1:
            return super().call_method(tx, name, [*args, kwargs["default"]], {})
        if kwargs and name == "setdefault" and kwargs.keys() == {"default"} and len(args) == 1:
            return super().call_method(tx, name, [*args, kwargs["default"]], {})
        return super().call_method(tx, name, args, kwargs)

    def pop_end(self, tx: Tracing, last: bool) -> VariableTracker:
        """CPython: OrderedDict.popitem."""
        keys = self.all_keys(tx)
        if not keys:
            tx.raises("OrderedDict.popitem", KeyError, ConstantVariable("dictionary is empty"))
        key = keys[-1 if last else 0]
        pair = TupleVariable([key.tracker, self.items[key]])
        self.changed(tx, OrderedDict.popitem, ConstantVariable(last))
        del self.items[key]
        return pair

    def move(self, tx: Tracing, key: VariableTracker, last: bool) -> VariableTracker:
        """CPython: OrderedDict.move_to_end."""
        found = Key(tx, key)
        if self.look_up(tx, found) is None:
            tx.raises("OrderedDict.move_to_end", KeyError, key)
        keys = self.all_keys(tx)
        own = next(k for k in keys if k == found)
        self.changed(tx, OrderedDict.move_to_end, own.tracker, ConstantVariable(last))
        value = self.items.pop(own)
        rest = dict(self.items)
        self.items.clear()
        self.items.update({**rest, own: value} if last else {own: value, **rest})
        return NONE

    def changed(self, tx: Tracing, fn: Any, *operands: VariableTracker) -> None:
        """Keys go or change their place."""
        if self.source is not None:
            tx.effect_call(fn, self, *operands)
            self.resized = True
        self.version += 1

    def reconstruct(self, emit: Emitting) -> E.Expr:
        if self.source is not None:
            return emit.load(self.source)
        return E.Call(E.Const(OrderedDict), (self.contents(emit),))


def flag(tx: Tracing, value: VariableTracker | None) -> bool:
    """The argument `last`."""
    if value is None:
        return True
    value = value.realize(tx)
    if not value.is_python_constant():
        tx.unsupported(UNSUPPORTED_CALL, name="a method of OrderedDict with an argument that is not known")
    return bool(value.as_python_constant())


class DefaultDictVariable(DictKindVariable):
    """Makes a value for a key that is missing."""

    __slots__ = ("factory",)
    real_type = defaultdict

    def __init__(
        self,
        items: dict[Key, VariableTracker],
        factory: VariableTracker,
        source: Source | None = None,
        guards: Provenance = NO_GUARDS,
    ) -> None:
        super().__init__(items, source, guards)
        self.factory = factory

    def like(self, items: dict[Key, VariableTracker], guards: Provenance) -> DictVariable:
        return DefaultDictVariable(items, self.factory, guards=guards)

    def missing(self, tx: Tracing, key: VariableTracker) -> VariableTracker:
        """CPython: defdict_missing."""
        factory = self.factory.realize(tx)
        if factory.python_type() is type(None):
            tx.raises("subscript", KeyError, key)
        value = tx.call(factory, [], {})
        self.put(tx, Key(tx, key), value)
        return value

    def getattr(self, tx: Tracing, name: str) -> VariableTracker:
        return self.factory if name == "default_factory" else super().getattr(tx, name)

    def children(self) -> tuple[VariableTracker, ...]:
        return () if self.source is not None else (self.factory, *super().children())

    def forget(self) -> None:
        super().forget()
        self.factory = NONE

    def reconstruct(self, emit: Emitting) -> E.Expr:
        if self.source is not None:
            return emit.load(self.source)
        return E.Call(E.Const(defaultdict), (emit.value(self.factory), self.contents(emit)))


@wraps(OrderedDict, defaultdict)
def wrap_dict_kind(tx: Tracing, value: Any, source: Source) -> VariableTracker:
    items = items_from(value, source)
    if items is None:
        return wrap_opaque(tx, value, source)
    if type(value) is OrderedDict:
        made: DictVariable = OrderedDictVariable(items, source)
    else:
        factory = tx.lazily(value.default_factory, AttrSource(source, "default_factory"))
        made = DefaultDictVariable(items, factory, source)
    made.make_guards(tx, GuardBuilder.TYPE_MATCH)
    return made
