"""Members of enumerations: known by identity."""

from __future__ import annotations

import enum
from typing import Any

from ..guards.builder import GuardBuilder
from ..guards.guard import make_guard
from ..sources import AttrSource, ItemSource, Source, TypeSource
from ..static_access import is_subtype, type_lookup
from .base import Tracing, VariableTracker
from .constant import ConstantVariable
from .opaque import wrap_opaque
from .registry import wraps_if
from .special_names import COMPARE, FORWARD, UNARY
from .user_objects import UserObjectVariable

_LIBRARY = {name: vars(enum.Enum)[name] for name in ("name", "value")}


class EnumVariable(UserObjectVariable):
    """A member. What the class inherits from int or str works on its plain value."""

    __slots__ = ()

    def getattr(self, tx: Tracing, name: str) -> VariableTracker:
        if name in _LIBRARY and type_lookup(self.cls, name) is _LIBRARY[name]:
            name = f"_{name}_"
        return super().getattr(tx, name)

    def as_key(self, tx: Tracing) -> Any:
        plain = self.plain()
        return (
            plain.value
            if plain is not None and self.inherits("__hash__") and self.inherits("__eq__")
            else self.value
        )

    def known_object(self) -> tuple[Any, ...]:
        return (self.value,)

    def plain(self) -> ConstantVariable | None:
        """The int or str that a member of IntEnum or the like is, without its class."""
        for base, nothing in ((int, 0), (str, "")):
            if is_subtype(self.cls, base):
                return ConstantVariable(base.__add__(self.value, nothing), guards=self.guards)  # type: ignore[operator]
        return None

    def inherits(self, name: str) -> bool:
        """Whether a special method is that of int or str."""
        found = type_lookup(self.cls, name)
        return any(is_subtype(self.cls, base) and found is type_lookup(base, name) for base in (int, str))

    def slot_binary(
        self, tx: Tracing, symbol: str, left: VariableTracker, right: VariableTracker
    ) -> VariableTracker | None:
        if not self.inherits(FORWARD[symbol.rstrip("=")]):
            return super().slot_binary(tx, symbol, left, right)
        a, b = _plain(left), _plain(right)
        return (a if left is self else b).slot_binary(tx, symbol, a, b)

    def slot_inplace(self, tx: Tracing, symbol: str, right: VariableTracker) -> VariableTracker | None:
        return None if self.plain() is not None else super().slot_inplace(tx, symbol, right)

    def slot_compare(
        self, tx: Tracing, symbol: str, left: VariableTracker, right: VariableTracker
    ) -> VariableTracker | None:
        if not self.inherits(COMPARE[symbol]):
            return super().slot_compare(tx, symbol, left, right)
        a, b = _plain(left), _plain(right)
        return (a if left is self else b).slot_compare(tx, symbol, a, b)

    def slot_unary(self, tx: Tracing, symbol: str) -> VariableTracker:
        plain = self.plain()
        if plain is None or not self.inherits(UNARY[symbol]):
            return super().slot_unary(tx, symbol)
        return plain.slot_unary(tx, symbol)

    def slot_truth(self, tx: Tracing) -> bool:
        plain = self.plain()
        if plain is not None and type_lookup(self.cls, "__bool__") in (None, int.__bool__):
            return plain.slot_truth(tx)
        return super().slot_truth(tx)


def _plain(value: VariableTracker) -> VariableTracker:
    plain = value.plain() if isinstance(value, EnumVariable) else None
    return value if plain is None else plain


def member_map(cls: type) -> dict[str, Any]:
    """Name -> member, in the class's own dictionary."""
    found = type_lookup(cls, "_member_map_")
    return found if type(found) is dict else {}


def is_enumeration(cls: Any) -> bool:
    """An enumeration whose metaclass is the library's own."""
    return type(cls) is enum.EnumMeta


@wraps_if("enum member", lambda value: is_enumeration(type(value)))
def wrap_member(tx: Tracing, value: Any, source: Source) -> VariableTracker:
    """Guarded to be the member of that name (members of IntEnum have no weak references)."""
    cls = type(value)
    name = value.__dict__.get("_name_")
    if type(name) is not str or member_map(cls).get(name) is not value:
        return wrap_opaque(tx, value, source)
    made = EnumVariable(value, source)
    made.make_guards(tx, GuardBuilder.TYPE_MATCH)
    tx.guard_class(cls, TypeSource(source))
    home = ItemSource(AttrSource(TypeSource(source), "_member_map_"), name)
    tx.install(make_guard(source, GuardBuilder.DUPLICATE_INPUT, home))
    return made
