"""`__torch_function__`: what an operator on tensors of the user's classes calls instead, and with what arguments.

Nothing is listed here: the operator is called on stand-ins, whose classes are derived from each other as the arguments' are and whose
`__torch_function__` notes how it is called. Torch asks it before anything else happens.
"""

from __future__ import annotations

import types
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.overrides import get_default_nowrap_functions

from ..reasons import TENSOR_SUBCLASS, UNSUPPORTED_CALL
from ..static_access import is_subtype, type_lookup
from ..variables.base import Tracing, VariableTracker
from ..variables.classes import ClassVariable
from ..variables.constant import CONSTANT_TYPES, ConstantVariable
from ..variables.dicts import DictVariable, from_names
from ..variables.functions import BuiltinVariable, TorchFunctionVariable
from ..variables.sequences import (
    ListVariable,
    SequenceVariable,
    SizeVariable,
    SliceVariable,
    TupleVariable,
)
from ..variables.structseq import StructSequenceVariable
from ..variables.tensor import TensorVariable
from ..variables.tensor_subclasses import (
    SWITCHED_OFF,
    NewSubclassVariable,
    NoTorchFunctionVariable,
    TensorSubclass,
    has_say,
    is_differentiable,
    is_overriding,
    why_not_followed,
)
from ..variables.tensor_wrappers import WrapperVariable
from ..variables.user_objects import UserObject
from . import torch_functions
from .builtins import Args, items_of, positional, rule


class Asked(BaseException):
    """A stand-in's `__torch_function__` was called."""

    def __init__(self, asked: type, *given: Any) -> None:
        super().__init__()
        self.asked = asked
        self.given = given


def _ask(cls: type, *given: Any) -> None:
    raise Asked(cls, *given)


_stand_ins: weakref.WeakKeyDictionary[type, type] = weakref.WeakKeyDictionary()


def stand_in(cls: type) -> type:
    """A class that takes the place of `cls` for torch: derived from the stand-ins of its bases."""
    if cls is torch.Tensor or cls is torch.nn.Parameter or not _has_say(cls):
        return cls if is_subtype(cls, torch.Tensor) else object
    known = _stand_ins.get(cls)
    if known is None:
        bases = tuple(dict.fromkeys(stand_in(base) for base in cls.__bases__ if _has_say(base)))
        own = SWITCHED_OFF if type_lookup(cls, "__torch_function__") is SWITCHED_OFF else classmethod(_ask)
        known = _stand_ins[cls] = type(bases[0] if bases else object)(  # the metaclass
            "StandIn", bases or (object,), {"__torch_function__": own}
        )
    return known


def _has_say(cls: type) -> bool:
    return type_lookup(cls, "__torch_function__") is not None


def has_override(tx: Tracing, value: VariableTracker, depth: int = 1) -> bool:
    """Whether torch asks `__torch_function__` because of this argument of an operator."""
    if type(value) in PLAIN:
        return False
    if isinstance(value, TensorSubclass):
        return value.overrides_operators(tx)
    if isinstance(value, UserObject):
        return bool(tx.trace.torch_function) and is_overriding(value.cls) and has_say(tx, value)
    if depth and isinstance(value, SequenceVariable):
        return any(has_override(tx, item, depth - 1) for item in value.items)
    return False


PLAIN = frozenset({TensorVariable, ConstantVariable})  # never asked


class Call:
    """One call of an operator on stand-ins, and the way back from what they are to the arguments."""

    def __init__(self, tx: Tracing, name: str) -> None:
        self.tx = tx
        self.name = name
        self.back: dict[int, VariableTracker] = {}
        self.classes: dict[type, VariableTracker] = {
            torch.Tensor: ClassVariable(torch.Tensor, None),
            torch.nn.Parameter: ClassVariable(torch.nn.Parameter, None),
        }
        self.alive: list[Any] = []

    def refuse(self, why: str) -> Any:
        self.tx.unsupported(TENSOR_SUBCLASS, type=self.name, detail=why)

    def value(self, tracker: VariableTracker) -> Any:
        """What takes the place of an argument."""
        tracker = tracker.realize(self.tx)
        made = self._made(tracker)
        self.alive.append(made)
        if type(made) not in CONSTANT_TYPES:
            self.back[id(made)] = tracker
        return made

    def _made(self, tracker: VariableTracker) -> Any:
        if isinstance(tracker, UserObject) and _has_say(tracker.cls):
            has_say(self.tx, tracker)
            cls = stand_in(tracker.cls)
            self.classes[cls] = tracker.class_variable(self.tx)
            return torch.empty(0).as_subclass(cls) if issubclass(cls, torch.Tensor) else cls()
        if isinstance(tracker, TensorVariable):
            plain = torch.empty(0)
            return torch.nn.Parameter(plain, False) if tracker.meta.is_parameter else plain
        if tracker.is_python_constant():
            return tracker.as_python_constant()
        if type(tracker) in (TupleVariable, ListVariable):
            assert isinstance(tracker, SequenceVariable)
            kind = tuple if type(tracker) is TupleVariable else list
            return kind([self.value(item) for item in tracker.items])
        if isinstance(tracker, SliceVariable):
            return slice(*(self.value(part) for part in tracker.children()))
        return self.refuse(f"called with a {tracker.type_name()}")

    def tracker(self, value: Any) -> VariableTracker:
        """The argument that a value stands for, or a value that torch added."""
        known = self.back.get(id(value))
        if known is not None:
            return known
        if type(value) in CONSTANT_TYPES:
            return ConstantVariable(value)
        if type(value) is tuple:
            return TupleVariable([self.tracker(item) for item in value])
        found: VariableTracker = self.refuse(f"is handed a {type(value).__name__}")
        return found


def overridden(
    tx: Tracing,
    name: str,
    target: Callable[..., Any] | str,
    args: list[VariableTracker],
    kwargs: dict[str, VariableTracker],
) -> VariableTracker | None:
    """What `__torch_function__` of the arguments gives for the operator; None when none of them has one. CPython has no counterpart:
    torch/csrc/utils/python_arg_parser.cpp, handle_torch_function_no_python_arg_parser."""
    for value in (*args, *kwargs.values()) if kwargs else args:
        if type(value) not in PLAIN and has_override(tx, value):
            break
    else:
        return None
    tx.guard_global_state()
    call = Call(tx, name)
    asked = _first_asked(call, target, args, kwargs)
    func, classes, *rest = asked.given
    owner = call.classes[asked.asked]
    given: list[VariableTracker] = [
        function_of(func),
        TupleVariable([call.classes[cls] for cls in classes]),
        TupleVariable([call.tracker(value) for value in (rest[0] if rest else ())]),
    ]
    if len(rest) > 1:
        given.append(from_names(tx, {key: call.tracker(value) for key, value in rest[1].items()}))
    method = owner.getattr(tx, "__torch_function__")  # type: ignore[attr-defined]
    result = tx.call(method, given, {}).realize(tx)
    if result.is_python_constant() and result.as_python_constant() is NotImplemented:
        call.refuse("__torch_function__ gives NotImplemented")
    return result


def _first_asked(
    call: Call,
    target: Callable[..., Any] | str,
    args: list[VariableTracker],
    kwargs: dict[str, VariableTracker],
) -> Asked:
    """How torch asks the first of the arguments' classes."""
    values = [call.value(arg) for arg in args]
    named = {key: call.value(value) for key, value in kwargs.items()}
    fn = getattr(torch.Tensor, target) if isinstance(target, str) else target
    try:
        fn(*values, **named)
    except Asked as asked:
        asked.__traceback__ = None
        if asked.asked in call.classes and all(cls in call.classes for cls in asked.given[1]):
            func = asked.given[0]
            if type(fn) is not types.FunctionType or func is fn:
                return asked
        call.refuse("is asked from inside of the operator")
    except Exception as error:
        call.refuse(f"{type(error).__name__} before __torch_function__ is asked")
    raise AssertionError(call.refuse("is not asked"))


def function_of(func: Any) -> BuiltinVariable:
    """torch's function, as `__torch_function__` gets it."""
    return (BuiltinVariable if torch_functions.classify(func) is None else TorchFunctionVariable)(func, None)


@contextmanager
def switched_off(tx: Tracing) -> Iterator[None]:
    """Inside, operators do not ask `__torch_function__` of classes."""
    before, tx.trace.torch_function = tx.trace.torch_function, False
    try:
        yield
    finally:
        tx.trace.torch_function = before


def _parameters(
    tx: Tracing, names: tuple[str, ...], args: Args, kwargs: dict[str, VariableTracker]
) -> tuple[VariableTracker | None, ...]:
    """The arguments of a call of `__torch_function__` by name."""
    given = dict(zip(names, args))
    if (
        len(args) > len(names)
        or not kwargs.keys() <= set(names) - given.keys()
        or "types" not in given | kwargs
    ):
        tx.unsupported(UNSUPPORTED_CALL, name="__torch_function__ with these arguments")
    given |= kwargs
    return tuple(given[name].realize(tx) if name in given else None for name in names)


def _call(
    tx: Tracing, func: VariableTracker, args: VariableTracker | None, kwargs: VariableTracker | None
) -> VariableTracker:
    """`func(*args, **(kwargs or {}))`, where no class is asked."""
    named: dict[str, VariableTracker] = {}
    if isinstance(kwargs, DictVariable):
        named = {str(key.value): kwargs.items[key] for key in kwargs.all_keys(tx)}
    elif kwargs is not None and not (kwargs.is_python_constant() and kwargs.as_python_constant() is None):
        tx.unsupported(UNSUPPORTED_CALL, name="__torch_function__ with these arguments")
    with switched_off(tx):
        return tx.call(func, [] if args is None else items_of(tx, "a call with *arguments", args), named)


@rule(torch.Tensor.__torch_function__.__func__)
def _of_tensor(tx: Tracing, args: Args, kwargs: dict[str, VariableTracker]) -> VariableTracker:
    """torch.Tensor.__torch_function__: the operator itself; tensors that it gives become instances of the class."""
    names = ("cls", "func", "types", "args", "kwargs")
    cls, func, classes, given, named = _parameters(tx, names, args, kwargs)
    if not isinstance(cls, ClassVariable) or classes is None or func is None:
        tx.unsupported(UNSUPPORTED_CALL, name="__torch_function__ with these arguments")
    for each in (each.realize(tx) for each in items_of(tx, "__torch_function__", classes)):
        if not isinstance(each, ClassVariable):
            tx.unsupported(UNSUPPORTED_CALL, name="__torch_function__ with these types")
        cls.guard_bases(tx, each.fn)
        if not is_subtype(cls.fn, each.fn):
            return ConstantVariable(NotImplemented)
    result = _call(tx, func, given, named).realize(tx)
    if isinstance(func, BuiltinVariable) and func.fn in get_default_nowrap_functions():
        return result
    return converted(tx, result, cls)


@rule(SWITCHED_OFF)
def _switched_off(tx: Tracing, args: Args, kwargs: dict[str, VariableTracker]) -> VariableTracker:
    """torch._C._disabled_torch_function_impl: the operator itself."""
    func, classes, given, named = _parameters(tx, ("func", "types", "args", "kwargs"), args, kwargs)
    assert func is not None
    return _call(tx, func, given, named)


def converted(tx: Tracing, result: VariableTracker, cls: ClassVariable) -> VariableTracker:
    """torch._tensor._convert."""
    if cls.fn is torch.Tensor:
        return result
    if isinstance(result, TensorVariable):
        return result if is_subtype(result.python_type(), cls.fn) else as_subclass(tx, result, cls)
    if isinstance(result, (TupleVariable, ListVariable)):
        items = [converted(tx, item.realize(tx), cls) for item in result.items]
        if isinstance(result, StructSequenceVariable):
            return StructSequenceVariable(items, result.struct_type, result.guards)
        if type(result) not in (TupleVariable, ListVariable, SizeVariable):
            tx.unsupported(UNSUPPORTED_CALL, name=f"{result.type_name()} of tensors of a subclass")
        return type(result)(items, guards=result.guards)
    return result


def as_subclass(tx: Tracing, tensor: TensorVariable, cls: ClassVariable) -> VariableTracker:
    """`tensor.as_subclass(cls)`: a view of that class. It is made after the graph, where autograd records: so one that is made
    where it does not must be a view in the graph."""
    if isinstance(tensor, WrapperVariable):
        tx.unsupported(TENSOR_SUBCLASS, type=tensor.type_name(), detail="a wrapper as another class")
    tx.guard_global_state()
    inside: VariableTracker = tensor
    if cls.fn is torch.Tensor or not tx.grad_mode and is_differentiable(tensor):
        with switched_off(tx):
            inside = tx.tensor_op(torch.ops.aten.alias.default, [tensor], {})
        if cls.fn is torch.Tensor:
            return inside
    assert isinstance(inside, TensorVariable)
    detail = why_not_followed(cls.fn) if cls.source is not None else "a class without a name"
    if detail is not None:
        tx.unsupported(TENSOR_SUBCLASS, type=cls.name(), detail=detail)
    made = NewSubclassVariable(tensor, cls, inside)
    tx.guard_class(cls.fn, cls.source)  # type: ignore[arg-type]
    tx.trace.holds(made)
    return made


@rule(torch.Tensor.as_subclass)
@positional("as_subclass", 2, 2)
def _as_subclass(tx: Tracing, tensor: VariableTracker, cls: VariableTracker) -> VariableTracker:
    if not isinstance(tensor, TensorVariable) or not isinstance(cls, ClassVariable):
        tx.unsupported(UNSUPPORTED_CALL, name="as_subclass with these arguments")
    if not is_subtype(cls.fn, torch.Tensor):
        tx.unsupported(UNSUPPORTED_CALL, name="as_subclass with a class that is no tensor")
    return as_subclass(tx, tensor, cls)


@rule(torch._C.DisableTorchFunctionSubclass)
@positional("DisableTorchFunctionSubclass", 0, 0)
def _no_torch_function(tx: Tracing) -> VariableTracker:
    return NoTorchFunctionVariable()
