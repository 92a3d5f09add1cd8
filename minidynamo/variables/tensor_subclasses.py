"""Tensors of the user's classes (decision 19): attributes and methods are the user's, operators go to `__torch_function__`.

In the graph such a tensor is plain: the graph takes it as a view of class torch.Tensor, so that nothing of the user's runs there.
"""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Callable
from typing import Any

import torch

from ..graph.meta import SymbolicMeta, TensorMeta, WrapperMeta
from ..graph.wrappers import PLAIN_DISPATCH, is_wrapper_class
from ..guards.builder import GuardBuilder, can_id_match
from ..guards.guard import make_guard
from ..pycode import expr as E
from ..reasons import CONTEXT_STATE, OPAQUE_VALUE, TENSOR_STATE, TENSOR_SUBCLASS
from ..sources import AttrSource, Source, TypeSource
from ..static_access import is_subtype, is_users_class, type_lookup
from .base import Emitting, Tracing, VariableTracker
from .contexts import ContextVariable
from .managers import ManagerMethodVariable
from .registry import wraps_if
from .sequences import NONE
from .special_names import COMPARE, FORWARD, SWAPPED, UNARY, reflected
from .tensor import TensorMethodVariable, TensorVariable, refused_detail
from .user_objects import (
    MISSING,
    SHARED,
    UserObject,
    UserObjectVariable,
    has_plain_attributes,
    is_data_descriptor,
)

_MRO = type.__dict__["__mro__"].__get__
KNOWN = (torch.Tensor, torch._C.TensorBase, torch.nn.Parameter, torch.nn.Buffer, object)
SWITCHED_OFF = torch._C._disabled_torch_function_impl  # type: ignore[attr-defined]
METACLASSES = (type(torch.Tensor), type(torch.nn.Parameter), type(torch.nn.Buffer))


def why_not_followed(cls: Any) -> str | None:
    """Why tensors of this class are left to plain Python; None for classes of the user's that are followed."""
    if type_lookup(cls, "__torch_dispatch__") is not PLAIN_DISPATCH:
        return "its class has __torch_dispatch__"
    for base in _MRO(cls):
        if any(base is known for known in KNOWN):
            continue
        module = type_lookup(base, "__module__")
        if not is_users_class(base) or type(module) is str and module.split(".")[0] == "torch":
            return "a subclass of a library"
    if not any(type(cls) is known for known in METACLASSES):
        return "a subclass with a metaclass of its own"
    if not has_plain_attributes(cls):
        return "a subclass with __getattribute__"
    if not is_overriding(cls) and type_lookup(cls, "__torch_function__") is not SWITCHED_OFF:
        return "a subclass whose __torch_function__ is no class method"
    return None


def is_overriding(cls: type) -> bool:
    """Operators on instances go to a `__torch_function__` that is a class method."""
    raw = type_lookup(cls, "__torch_function__")
    return type(raw) in (classmethod, staticmethod) and type(raw.__func__) is types.FunctionType


def has_say(tx: Tracing, value: UserObject) -> bool:
    """Whether torch asks the object's class, guarded."""
    found = is_overriding(value.cls)
    kind = GuardBuilder.TYPE_MATCH if found else GuardBuilder.ID_MATCH
    tx.install(make_guard(AttrSource(value.type_source(tx), "__torch_function__", raw=True), kind))
    return found


class TensorSubclass(UserObject, TensorVariable):
    """What tensors of the user's classes share, wherever they come from. `cls` is the class; the graph has a plain tensor."""

    __slots__ = ()

    def redefines(self, tx: Tracing, name: str) -> bool:
        """Whether the class has something of its own where torch.Tensor has another thing, or nothing; guarded when it has not."""
        raw = type_lookup(self.cls, name, MISSING)
        if not any(raw is type_lookup(base, name, MISSING) for base in self.torch_bases()):
            return True
        source = self.type_source(tx)
        if raw is MISSING:
            tx.install(make_guard(source, GuardBuilder.HASATTR, name))
        else:
            kind = GuardBuilder.ID_MATCH if can_id_match(raw) else GuardBuilder.TYPE_MATCH
            tx.install(make_guard(AttrSource(source, name, raw=True), kind))
        return False

    def torch_bases(self) -> tuple[type, ...]:
        return tuple(base for base in (torch.Tensor, torch.nn.Parameter) if is_subtype(self.cls, base))

    def overrides_operators(self, tx: Tracing) -> bool:
        """Whether operators on it go to its `__torch_function__`."""
        if not tx.trace.torch_function:
            return False
        return has_say(tx, self)

    # --- attributes: the class's own and the instance's go first ------------------------------------------------------------
    def getattr(self, tx: Tracing, name: str) -> VariableTracker:
        if name == "__dict__":
            self.refuse(tx, "attribute __dict__")
        if name == "__class__" or self.redefines(tx, name):
            return UserObject.getattr(self, tx, name)
        raw = type_lookup(self.cls, name, MISSING)
        if raw is MISSING:
            return UserObject.getattr(self, tx, name)
        own = None if is_data_descriptor(raw) else self.own_attribute(tx, name)
        return TensorVariable.getattr(self, tx, name) if own is None else own

    def read_data(self, tx: Tracing) -> VariableTracker:
        tx.unsupported(TENSOR_STATE, name="Tensor.data")

    def has_own(self, tx: Tracing, name: str) -> bool:
        return self.own_attribute(tx, name) is not None

    def call_method(
        self, tx: Tracing, name: str, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
    ) -> VariableTracker:
        found = self.getattr(tx, name)
        if isinstance(found, TensorMethodVariable):
            return TensorVariable.call_method(self, tx, name, args, kwargs)
        return tx.call(found, args, kwargs)

    def as_key(self, tx: Tracing) -> Any:
        if any(self.redefines(tx, name) for name in ("__hash__", "__eq__")):
            return VariableTracker.as_key(self, tx)
        return TensorVariable.as_key(self, tx)

    # --- special methods: the class's own, else what torch.Tensor does ------------------------------------------------------
    def slots_of(self, tx: Tracing, *names: str) -> Any:
        """The class whose slots are used."""
        return UserObject if any(self.redefines(tx, name) for name in names) else TensorVariable

    def slot_binary(
        self, tx: Tracing, symbol: str, left: VariableTracker, right: VariableTracker
    ) -> VariableTracker | None:
        name = FORWARD[symbol.rstrip("=")] if left is self else reflected(symbol)
        found: VariableTracker | None = self.slots_of(tx, name).slot_binary(self, tx, symbol, left, right)
        return found

    def slot_inplace(self, tx: Tracing, symbol: str, right: VariableTracker) -> VariableTracker | None:
        if not self.redefines(tx, f"__i{FORWARD[symbol.rstrip('=')][2:]}"):
            return None
        return UserObject.slot_inplace(self, tx, symbol, right)

    def slot_compare(
        self, tx: Tracing, symbol: str, left: VariableTracker, right: VariableTracker
    ) -> VariableTracker | None:
        name = COMPARE[symbol if left is self else SWAPPED[symbol]]
        found: VariableTracker | None = self.slots_of(tx, name).slot_compare(self, tx, symbol, left, right)
        return found

    def slot_unary(self, tx: Tracing, symbol: str) -> VariableTracker:
        return self._slot(tx, "slot_unary", (UNARY[symbol],), symbol)

    def slot_truth(self, tx: Tracing) -> bool:
        truth: bool = self._slot(tx, "slot_truth", ("__bool__",))
        return truth

    def slot_len(self, tx: Tracing) -> int:
        if self.redefines(tx, "__len__"):
            return UserObject.slot_len(self, tx)
        if not self.overrides_operators(tx):
            return TensorVariable.slot_len(self, tx)
        size = tx.tensor_op("__len__", [self], {}).realize(tx)
        if not size.is_python_constant() or type(size.as_python_constant()) is not int:
            self._opaque(tx, "len()")
        return int(size.as_python_constant())

    def slot_getitem(self, tx: Tracing, key: VariableTracker) -> VariableTracker:
        return self._slot(tx, "slot_getitem", ("__getitem__",), key)

    def slot_setitem(self, tx: Tracing, key: VariableTracker, value: VariableTracker) -> None:
        self._slot(tx, "slot_setitem", ("__setitem__",), key, value)

    def slot_contains(self, tx: Tracing, item: VariableTracker) -> bool:
        found: bool = self._slot(tx, "slot_contains", ("__contains__",), item)
        return found

    def slot_iter(self, tx: Tracing) -> VariableTracker:
        return self._slot(tx, "slot_iter", ("__iter__",))

    def slot_next(self, tx: Tracing) -> VariableTracker | None:
        return self._slot(tx, "slot_next", ("__next__",))

    def call_function(
        self, tx: Tracing, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
    ) -> VariableTracker:
        return self._slot(tx, "call_function", ("__call__",), args, kwargs)

    def _slot(self, tx: Tracing, slot: str, names: tuple[str, ...], *args: Any) -> Any:
        return getattr(self.slots_of(tx, *names), slot)(self, tx, *args)


class SubclassVariable(TensorSubclass):
    """A tensor of a user's class that exists outside of the trace; always rebuilt from its source."""

    __slots__ = (*SHARED, "value", "stored", "moved")
    source: Source

    def __init__(
        self, value: torch.Tensor, proxy: torch.fx.Proxy, meta: TensorMeta | SymbolicMeta, source: Source
    ) -> None:
        TensorVariable.__init__(self, proxy, meta, source)
        self.cls = type(value)
        self.value = value
        self.members = None
        self.stored: dict[str, VariableTracker | None] = {}
        self.moved: set[str] = set()

    own_attribute: Callable[..., Any] = UserObjectVariable.own_attribute
    class_source: Callable[..., Any] = UserObjectVariable.class_source
    store: Callable[..., Any] = UserObjectVariable.store
    keep: Callable[..., Any] = UserObjectVariable.keep
    remove: Callable[..., Any] = UserObjectVariable.remove
    dict_source: Callable[..., Any] = UserObjectVariable.dict_source
    guard_lacks: Callable[..., Any] = UserObjectVariable.guard_lacks
    type_source: Callable[..., Any] = UserObjectVariable.type_source
    guard_presence: Callable[..., Any] = UserObjectVariable.guard_presence
    class_variable: Callable[..., Any] = UserObjectVariable.class_variable

    def forget(self) -> None:
        self.stored.clear()

    def reconstruct(self, emit: Emitting) -> E.Expr:
        return emit.load(self.source)


class NewSubclassVariable(TensorSubclass):
    """A tensor of a user's class made in the trace by `as_subclass`, with the attributes that the trace left in it."""

    __slots__ = (*SHARED, "plain", "class_tracker", "records", "has_history", "attributes")
    filled_later = True

    def __init__(self, plain: TensorVariable, class_tracker: Any, inside: TensorVariable) -> None:
        """inside: the tensor that stands for it in the graph; another one than `plain` where autograd does not record."""
        guards = VariableTracker.propagate(plain, class_tracker)
        assert not isinstance(inside.meta, WrapperMeta), "wrappers have no other class"
        # (A copy: metadata tells by identity which of its operands an operator gives back.)
        TensorVariable.__init__(self, inside.proxy, dataclasses.replace(inside.meta), None, guards)
        self.cls = class_tracker.fn
        self.members = None
        self.plain = plain
        self.class_tracker = class_tracker
        self.records = inside is plain
        self.has_history = is_differentiable(plain)
        self.attributes: dict[str, VariableTracker] = {}

    def origin(self) -> Source | None:
        return self.plain.origin()

    def is_output(self) -> bool:
        return False

    def own_attribute(self, tx: Tracing, name: str) -> VariableTracker | None:
        return self.attributes.get(name)

    def class_source(self, tx: Tracing, name: str) -> Source:
        return AttrSource(self.type_source(tx), name)

    def type_source(self, tx: Tracing) -> Source:
        if self.class_tracker.source is None:
            self.refuse(tx, "attribute of a class without a name")
        source: Source = self.class_tracker.source
        return source

    def guard_presence(self, tx: Tracing, name: str) -> None:
        if type_lookup(type(self.cls), name) is not None:  # every class has it: the guard could not tell
            self.refuse(tx, name)
        tx.install(make_guard(self.type_source(tx), GuardBuilder.HASATTR, name))

    def class_variable(self, tx: Tracing) -> VariableTracker:
        tracker: VariableTracker = self.class_tracker
        return tracker

    def store(self, tx: Tracing, name: str, value: VariableTracker) -> None:
        self.attributes[name] = value

    def remove(self, tx: Tracing, name: str) -> None:
        del self.attributes[name]

    def forget(self) -> None:
        self.attributes.clear()

    def children(self) -> tuple[VariableTracker, ...]:
        return (self.plain, self.class_tracker, *self.attributes.values())

    def reconstruct(self, emit: Emitting) -> E.Expr:
        make: Callable[..., Any] = torch.Tensor.as_subclass
        if self.has_history:
            make = as_class if self.records else as_class_unrecorded
        made = emit.temporary(E.Call(E.Const(make), (emit.value(self.plain), emit.value(self.class_tracker))))
        emit.remember(self, made)
        for name, value in self.attributes.items():
            emit.do(E.Do(E.Call(E.Const(object.__setattr__), (made, E.Const(name), emit.value(value)))))
        return made


def is_differentiable(tensor: TensorVariable) -> bool:
    """Whether it requires a gradient; where that depends on data, it may."""
    return not isinstance(tensor.meta, TensorMeta) or tensor.meta.requires_grad


def as_class(tensor: torch.Tensor, cls: type) -> torch.Tensor:
    """`tensor.as_subclass(cls)`, part of the tensor's history if it has one, whatever the grad mode is where it is called."""
    with torch.enable_grad():
        return torch.Tensor.as_subclass(tensor, cls)


def as_class_unrecorded(tensor: torch.Tensor, cls: type) -> torch.Tensor:
    """`tensor.as_subclass(cls)` where autograd does not record."""
    with torch.no_grad():
        return torch.Tensor.as_subclass(tensor, cls)


def as_plain(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor as the graph takes it: of class torch.Tensor, over the same memory, leading back to it in backward."""
    with torch.enable_grad():
        return torch.Tensor.as_subclass(tensor, torch.Tensor)


class NoTorchFunctionVariable(ContextVariable):
    """`torch._C.DisableTorchFunctionSubclass()`: inside, operators do not ask `__torch_function__` of classes. The graph needs no such
    thing: its tensors are plain."""

    __slots__ = ("entered",)
    again_is_the_same = False

    def __init__(self) -> None:
        super().__init__(torch._C.DisableTorchFunctionSubclass, ())
        self.entered: bool | None = None  # what was before it was entered

    def enter(self, tx: Tracing) -> VariableTracker:
        if self.entered is not None:
            tx.unsupported(CONTEXT_STATE, name=self.type_name(), what="is entered again")
        tx.guard_global_state()
        self.entered, tx.trace.torch_function = tx.trace.torch_function, False
        self.birth = tx.trace.root_index
        tx.trace.opened.append(self)
        return NONE

    def leave(self, tx: Tracing) -> VariableTracker:
        opened: list[ContextVariable] = tx.trace.opened
        if not opened or opened[-1] is not self:
            tx.unsupported(
                CONTEXT_STATE, name=self.type_name(), what="is left before others that it contains"
            )
        tx.trace.torch_function, self.entered = self.entered, None
        opened.pop()
        return NONE

    def getattr(self, tx: Tracing, name: str) -> VariableTracker:
        return (
            ManagerMethodVariable(self, name) if name in ("__enter__", "__exit__") else self._opaque(tx, name)
        )

    def leave_graph(self, graph: Any, where: Any) -> None:
        """The graph does not know of it."""

    def reconstruct(self, emit: Emitting) -> E.Expr:
        if self.entered is not None:
            emit.impossible("a manager that is entered")
        return E.Call(E.Const(self.cls), ())


@wraps_if(
    "tensor subclass",
    lambda value: is_subtype(type(value), torch.Tensor) and not is_wrapper_class(type(value)),
)
def wrap_subclass(tx: Tracing, value: torch.Tensor, source: Source) -> VariableTracker:
    """A subclass is never treated as a Tensor."""
    detail = why_not_followed(type(value))
    plain = value if detail is not None else as_plain(value)
    detail = detail or refused_detail(plain)
    if detail is not None:
        tx.unsupported(TENSOR_SUBCLASS, type=type(value).__name__, detail=detail)
    always = torch.is_grad_enabled() or not plain.requires_grad
    proxy = tx.graph.add_input(
        source, plain, (torch.Tensor.as_subclass, torch.Tensor) if always else (as_plain,)
    )
    with torch._C.DisableTorchFunctionSubclass():
        is_leaf = torch.Tensor.is_leaf.__get__(value)  # type: ignore[attr-defined]
    meta = dataclasses.replace(TensorMeta.of(plain), is_leaf=is_leaf)
    made = SubclassVariable(value, proxy, meta, source)
    made.make_guards(tx, GuardBuilder.TENSOR_MATCH)
    tx.guard_class(type(value), TypeSource(source))
    if is_subtype(type(value), torch.nn.Parameter) is False and not made.lacks(tx, "_is_param"):
        tx.unsupported(
            OPAQUE_VALUE, operation="use", type=f"{type(value).__name__} that calls itself a parameter"
        )
    return made
