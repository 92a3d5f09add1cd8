"""Wrappers of other tensors (decision 19): classes with `__tensor_flatten__`, `__tensor_unflatten__` and `__torch_dispatch__`.

The graph takes the wrapper itself; its class's code runs there as it does in plain Python. The guards are on the class and what its code
reads, the wrapper's own metadata, its inner tensors and all its other attributes, which have to be constants.
"""

from __future__ import annotations

from typing import NoReturn

import torch

from ..graph.dispatch_code import METACLASSES, reads_of
from ..graph.meta import TensorMeta, WrapperMeta
from ..graph.wrappers import NoWrapper, faked, is_wrapper_class, member, parts
from ..guards.builder import GuardBuilder
from ..guards.code_reads import RECORDS
from ..guards.guard import make_guard
from ..pycode import expr as E
from ..reasons import STORE, TENSOR_STATE, TENSOR_SUBCLASS
from ..sources import AttrSource, Source, TypeSource
from ..static_access import instance_dict, type_lookup
from .base import NO_GUARDS, Emitting, Provenance, Tracing, VariableTracker
from .constant import ConstantVariable
from .registry import wraps_if
from .tensor import TensorVariable, refused_detail
from .tensor_subclasses import SWITCHED_OFF, TensorSubclass
from .user_objects import SHARED, SLOT, has_plain_attributes, is_data_descriptor

PLAIN_FUNCTION = type_lookup(torch.Tensor, "__torch_function__")
INNER = (torch.Tensor, torch.nn.Parameter)


def why_not_followed(cls: type) -> str | None:
    """Why wrappers of this class are left to plain Python; None for those that are followed. Runs none of its code."""
    if not any(type(cls) is known for known in METACLASSES):
        return "a wrapper with a metaclass of its own"
    if not has_plain_attributes(cls):
        return "a wrapper with __getattribute__"
    if type_lookup(cls, "__torch_function__") not in (PLAIN_FUNCTION, SWITCHED_OFF):
        raw = type_lookup(cls, "__torch_function__")
        if getattr(raw, "__func__", None) is not SWITCHED_OFF:
            return "a wrapper with __torch_function__"
    reads = reads_of(cls)
    return None if not isinstance(reads, str) else f"its code {reads}"


class WrapperVariable(TensorSubclass):
    """A wrapper: one that came from outside, or a result of an operator. `meta` is always a WrapperMeta."""

    __slots__ = SHARED
    meta: WrapperMeta

    def __init__(
        self,
        proxy: torch.fx.Proxy,
        meta: WrapperMeta,
        source: Source | None = None,
        guards: Provenance = NO_GUARDS,
    ) -> None:
        TensorVariable.__init__(self, proxy, meta, source, guards)
        self.cls = meta.cls
        self.members = None

    def overrides_operators(self, tx: Tracing) -> bool:
        """Torch's own `__torch_function__` is part of what an operator does to a wrapper, in the graph and on fakes."""
        return False

    # --- where things are -----------------------------------------------------------------------------------------------
    def own_attribute(self, tx: Tracing, name: str) -> VariableTracker | None:
        """A constant of the instance, or an inner tensor: an operator of the graph reads it, after those before it."""
        members = instance_dict(self.meta.fake)
        if members is None or name not in members:
            return None
        found = member(self.meta, name)
        if not isinstance(found, (TensorMeta, WrapperMeta)):
            return ConstantVariable(found, guards=VariableTracker.propagate(self))
        if tx.trace.for_compiler:  # which sees two inputs, or takes a wrapper apart itself
            tx.unsupported(TENSOR_STATE, name=f"inner tensor {name} of a wrapper")
        return tx.tensor_op(getattr, [self, ConstantVariable(name)], {})

    def type_source(self, tx: Tracing) -> Source:
        source: Source = tx.trace.wrapper_classes[self.cls]
        return source

    def class_source(self, tx: Tracing, name: str) -> Source:
        return AttrSource(self.type_source(tx), name)

    def guard_presence(self, tx: Tracing, name: str) -> None:
        if type_lookup(type(self.cls), name) is not None:  # every class has it: the guard could not tell
            self.refuse(tx, name)
        tx.install(make_guard(self.type_source(tx), GuardBuilder.HASATTR, name))

    def class_variable(self, tx: Tracing) -> VariableTracker:
        return tx.wrap(self.cls, self.type_source(tx))

    def has_own(self, tx: Tracing, name: str) -> bool:
        return name in (instance_dict(self.meta.fake) or {})

    def store(self, tx: Tracing, name: str, value: VariableTracker) -> None:
        self._refuse_store(tx)

    def remove(self, tx: Tracing, name: str) -> None:
        self._refuse_store(tx)

    def _refuse_store(self, tx: Tracing) -> NoReturn:
        """What the graph does depends on what is there."""
        tx.unsupported(STORE, operation="attribute assignment", what="a wrapper of tensors")

    def forget(self) -> None:
        """Nothing is known besides the fake."""

    def reconstruct(self, emit: Emitting) -> E.Expr:
        return TensorVariable.reconstruct(self, emit)


def check_wrappers(tx: Tracing) -> None:
    """Break the graph where an operator on wrappers would do something else when the graph runs."""
    for cls in () if tx.trace.torch_function else tx.trace.wrapper_classes:
        if type_lookup(cls, "__torch_function__") is PLAIN_FUNCTION:
            detail = "a wrapper without __torch_function__ for once"
            tx.unsupported(TENSOR_SUBCLASS, type=cls.__name__, detail=detail)
    for effect in tx.trace.effects:  # which are replayed after the graph
        words = {effect.arg} if type(effect.arg) is str else set()
        for operand in effect.operands:
            if operand.is_python_constant() and type(operand.as_python_constant()) is str:
                words.add(operand.as_python_constant())
        if any(_may_read(cls, effect.opname, words) for cls in tx.trace.wrapper_classes):
            what = f"{effect.arg or 'an item'}, which is stored before a wrapper is used"
            tx.unsupported(STORE, operation="use", what=what)


def _may_read(cls: type, opname: str | None, words: set[str]) -> bool:
    """Whether code of the class may read what a change stores. opname: None for a call of a method, of a list say; words: the names and
    keys in it"""
    reads = reads_of(cls)
    if isinstance(reads, str) or not words.isdisjoint(reads.names):
        return True
    if reads.containers and opname in (None, "STORE_SUBSCR", "DELETE_SUBSCR"):
        return True
    return any(f"cell {word}" in reads.names for word in words) or "cell_contents" in words and reads.cells


def new_wrapper(tx: Tracing, proxy: torch.fx.Proxy, meta: WrapperMeta, guards: Provenance) -> WrapperVariable:
    """The tracker of an operator's result."""
    if meta.cls not in tx.trace.wrapper_classes:
        tx.unsupported(
            TENSOR_SUBCLASS, type=meta.cls.__name__, detail="a wrapper of a class that is no input's"
        )
    return WrapperVariable(proxy, meta, guards=guards)


@wraps_if("tensor wrapper", lambda value: is_wrapper_class(type(value)))
def wrap_wrapper(tx: Tracing, value: torch.Tensor, source: Source) -> VariableTracker:
    """A wrapper of the user's or of torch's."""
    try:
        detail = why_refused(value)
        meta = faked(value) if detail is None else None
    except NoWrapper as why:
        detail = str(why)
    if detail is not None or meta is None:
        tx.unsupported(TENSOR_SUBCLASS, type=type(value).__name__, detail=detail)
    made = WrapperVariable(tx.graph.add_input(source, value), meta, source)
    guard_wrapper(tx, value, source)
    return made


def why_refused(value: torch.Tensor) -> str | None:
    """Why the wrapper, or one of its inner tensors, is not followed. Raises NoWrapper."""
    cls = type(value)
    detail = why_not_followed(cls)
    if detail is not None:
        return detail
    with torch._C.DisableTorchFunctionSubclass():
        detail = refused_detail(value)
    if detail is not None:
        return detail
    names, others = parts(value)
    for name in (*names, *others):
        raw = type_lookup(cls, name)
        if raw is not None and (is_data_descriptor(raw) or isinstance(raw, SLOT)):
            return f"attribute {name} is a descriptor of its class"
    for name in names:
        inner = (instance_dict(value) or {})[name]
        if is_wrapper_class(type(inner)):
            detail = why_refused(inner)
        elif any(type(inner) is known for known in INNER):
            detail = refused_detail(inner)
        else:
            detail = f"a {type(inner).__name__}"
        if detail is not None:
            return f"inner tensor {name}: {detail}"
    return None


def guard_wrapper(tx: Tracing, value: torch.Tensor, source: Source) -> None:
    """Everything that decides about what operators on the wrapper give."""
    cls, kind = type(value), TypeSource(source)
    tx.install(make_guard(source, GuardBuilder.TENSOR_MATCH))
    if cls not in tx.trace.wrapper_classes:
        tx.trace.wrapper_classes[cls] = kind
        reads = reads_of(cls)
        assert not isinstance(reads, str) and reads.serial in RECORDS
        tx.install(make_guard(kind, GuardBuilder.DISPATCH_CODE, reads.serial))
        tx.guard_class(cls, kind)
    names, others = parts(value)
    tx.install(make_guard(AttrSource(source, "__dict__"), GuardBuilder.LENGTH))
    for name in others:
        tx.install(make_guard(AttrSource(source, name), GuardBuilder.CONSTANT_MATCH))
    for name in names:
        inner = (instance_dict(value) or {})[name]
        if is_wrapper_class(type(inner)):
            guard_wrapper(tx, inner, AttrSource(source, name))
        else:
            tx.install(make_guard(AttrSource(source, name), GuardBuilder.TENSOR_MATCH))
            tx.install(make_guard(AttrSource(AttrSource(source, name), "__dict__"), GuardBuilder.LENGTH))
