"""Which torch callables may become a node of the graph, and what they do besides giving a result.

Derived, not listed: where a callable lives says that it is an operator; the operator's schema says what it
writes; its tags say whether it draws random numbers or needs data; for torch's own Python functions their
signature and code say it. Only what none of these can say is in the tables below, each row with its reason.
Every answer is computed at the first question and kept.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

import torch

from minidynamo.graph.meta_rules_query import CONSTANT_ATTRIBUTES
from minidynamo.markers import in_graph

from .torch_exceptions import (
    DISALLOWED,
    FUNCTION_EXCEPTIONS,
    METHOD_EXCEPTIONS,
    NEEDS_DATA,
    OBJECT_STATE,
    READS_STATE,
    SOMETIMES_NEEDS_DATA,
    WRITES_STATE,
)


@dataclass(frozen=True, slots=True)
class Argument:
    """A parameter of an operator: its position (None: by keyword only), its name, and its default."""

    position: int | None
    name: str
    default: Any = None

    def of(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """The value that a call gives to it."""
        if self.name in kwargs:
            return kwargs[self.name]
        if self.position is not None and self.position < len(args):
            return args[self.position]
        return self.default


@dataclass(frozen=True, slots=True)
class Switch:
    """A parameter that turns an effect off for values equal to `off`."""

    argument: Argument
    off: Any

    def is_off(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
        """Whether the call turns the effect off; a value that is no plain constant does not."""
        value = self.argument.of(args, kwargs)
        return type(value) in (bool, int, float, type(None)) and value == self.off


@dataclass(frozen=True, slots=True)
class TorchKind:
    """What a torch callable is to the tracer.

    in_graph: it can be a node (`reason` says why not). draws_random: it may draw random numbers. mutates: it
    writes into an argument whenever it is called (see `written` for what depends on the call). returns_self:
    its result is its first argument.
    """

    in_graph: bool
    draws_random: bool = False
    mutates: bool = False
    reason: str | None = None
    returns_self: bool = False
    random_switch: Switch | None = None
    writes: tuple[tuple[Argument, Switch | None], ...] = ()

    def draws(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
        """Whether this call may draw random numbers (dropout with training=False does not)."""
        return self.draws_random and not (
            self.random_switch is not None and self.random_switch.is_off(args, kwargs)
        )

    def written(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
        """The argument values that this call writes into, `out=` and `inplace=True` included. For methods
        args[0] is self.
        """
        if not self.writes and not kwargs:
            return []
        found = [
            argument.of(args, kwargs)
            for argument, switch in self.writes
            if switch is None or not switch.is_off(args, kwargs)
        ]
        return [value for value in (*found, kwargs.get("out")) if value is not None]

    def gives_self(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
        """Whether the result of this call is its first argument, because it works in place."""
        return (
            self.returns_self
            or bool(self.writes)
            and any(
                switch is not None and switch.argument.name == "inplace" and not switch.is_off(args, kwargs)
                for _, switch in self.writes
            )
        )


@dataclass(frozen=True, slots=True)
class AllowedKind(TorchKind):
    """A function of the program's, marked with `allow_in_graph`: what it does is not known, so it may write into each of
    its arguments and draw random numbers."""

    def written(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
        return [*args, *kwargs.values()]

    def gives_self(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
        return False


_ALLOWED = AllowedKind(in_graph=True, draws_random=True, mutates=True)
_DISALLOWED = TorchKind(in_graph=False, reason=DISALLOWED)


def _statistics(position: int, training: Argument) -> tuple[tuple[Argument, Switch | None], ...]:
    """The running statistics of a normalisation, written only in training."""
    switch = Switch(training, False)
    return (Argument(position, "running_mean"), switch), (Argument(position + 1, "running_var"), switch)


def _renormalised() -> tuple[tuple[Argument, Switch | None], ...]:
    """The table of an embedding, which max_norm renormalises in place."""
    return ((Argument(1, "weight"), Switch(Argument(3, "max_norm"), None)),)


#: Python functions that write into arguments without saying so in their signature: (argument, the call that
#: does not).
HIDDEN_WRITES: dict[str, tuple[tuple[Argument, Switch | None], ...]] = {
    "torch.nn.functional.batch_norm": _statistics(1, Argument(5, "training", False)),
    "torch.nn.functional.instance_norm": _statistics(1, Argument(5, "use_input_stats", True)),
    "torch.nn.functional.embedding": _renormalised(),
    "torch.nn.functional.embedding_bag": _renormalised(),
    "torch.batch_norm": _statistics(3, Argument(5, "training")),
    "torch.native_batch_norm": _statistics(3, Argument(5, "training")),
    "torch.cudnn_batch_norm": _statistics(3, Argument(5, "training")),
    "torch.miopen_batch_norm": _statistics(3, Argument(5, "training")),
    "torch.instance_norm": _statistics(3, Argument(5, "use_input_stats")),
}

#: Attributes of tensors that are tensors computed from the tensor: nodes of the graph.
GRAPH_ATTRIBUTES = frozenset({"T", "mT", "H", "mH", "real", "imag"})

#: Attributes that metadata holds for fresh results only; on a graph input they belong to the real object.
_STATE_ATTRIBUTES = frozenset({"is_leaf"})


# --- what operators say of themselves -----------------------------------------------------------------------

_SEEDED = torch.Tag.nondeterministic_seeded
_DATA_TAG = torch.Tag.data_dependent_output


def _overloads(name: str) -> list[Any]:
    """The overloads of an aten operator, without the `out=` forms."""
    if name.startswith("__") and name.endswith("__") and name[2:-2] not in _ATEN_DUNDERS:
        return []
    packet = getattr(torch.ops.aten, name, None)
    if not isinstance(packet, torch._ops.OpOverloadPacket):
        return []
    return _without_out(packet)


def _without_out(packet: Any) -> list[Any]:
    """The overloads of a packet that are tensor operators (TorchScript's list methods share their names)
    without `out=`.
    """
    overloads = [getattr(packet, overload) for overload in packet.overloads()]
    return [
        overload
        for overload in overloads
        if torch.Tag.out not in overload.tags
        and not _has_out(overload._schema)
        and torch._C._dispatch_has_kernel(overload.name())
    ]


_ATEN_DUNDERS = frozenset("and or xor lshift rshift iand ior ixor ilshift irshift".split())


def _has_out(schema: Any) -> bool:
    return any(argument.is_out for argument in schema.arguments)


def _writes_of(overloads: list[Any]) -> tuple[tuple[Argument, Switch | None], ...]:
    """Arguments that some overload writes, by the alias annotations of its schema."""
    found = {}
    for overload in overloads:
        for position, argument in enumerate(overload._schema.arguments):
            if argument.alias_info is not None and argument.alias_info.is_write:
                found[argument.name] = Argument(position, argument.name)
    return tuple((argument, None) for argument in found.values())


#: Parameters of drawing operators that switch the drawing off.
_RANDOM_SWITCHES: dict[str, Any] = {"training": False, "train": False, "dropout_p": 0.0}


def _random_switch(parameters: Iterator[Argument]) -> Switch | None:
    known = {argument.name: argument for argument in parameters}
    for name, off in _RANDOM_SWITCHES.items():
        if name in known:
            return Switch(known[name], off)
    return None


def _schema_parameters(overload: Any) -> Iterator[Argument]:
    for position, argument in enumerate(overload._schema.arguments):
        yield Argument(None if argument.kwarg_only else position, argument.name, argument.default_value)


def _operator_kind(name: str, full_name: str) -> TorchKind:
    """The kind of a C++ operator or method of this aten name."""
    return _schema_kind(name, full_name, _overloads(name))


def _schema_kind(name: str, full_name: str, overloads: list[Any]) -> TorchKind:
    """What the schemas and tags of an operator's overloads say, with torch's naming where there are none."""
    if (
        name not in SOMETIMES_NEEDS_DATA
        and overloads
        and all(_DATA_TAG in overload.tags for overload in overloads)
    ):
        return TorchKind(False, reason=NEEDS_DATA)
    draws = any(_SEEDED in overload.tags for overload in overloads)
    switch = _random_switch(_schema_parameters(overloads[0])) if draws else None
    in_place = _is_in_place(name)
    writes = _writes_of(overloads) or HIDDEN_WRITES.get(full_name, ())
    if in_place and not writes:
        writes = ((Argument(0, "self"), None),)
    return TorchKind(
        True,
        draws_random=draws,
        mutates=any(condition is None for _, condition in writes),
        returns_self=in_place
        and (not overloads or any(overload._schema.returns for overload in overloads))
        and not name.startswith("_foreach")
        and name not in ("__setitem__", "index_put_impl_"),
        random_switch=switch,
        writes=writes,
    )


_IN_PLACE_DUNDERS = frozenset(
    f"__i{name}__"
    for name in "add sub mul truediv div floordiv mod pow matmul and or xor lshift rshift".split()
) | {"__setitem__"}


def _is_in_place(name: str) -> bool:
    """By torch's naming: `add_`, `__iadd__`, `__setitem__`."""
    if name.startswith("__") and name.endswith("__"):
        return name in _IN_PLACE_DUNDERS
    return name.endswith("_")


# --- torch's Python functions -------------------------------------------------------------------------------


def _unwrapped(function: Any) -> list[types.FunctionType]:
    """The Python functions behind a torch function: itself, and for a dispatcher on a flag its two sides."""
    found = [function]
    for cell in function.__closure__ or ():
        if isinstance(cell.cell_contents, types.FunctionType):
            found.append(cell.cell_contents)
    return found


def _named_in(function: types.FunctionType, seen: set[types.CodeType]) -> Iterator[str]:
    """Every name that the code of a torch function uses, and those of the torch functions that it calls."""
    if function.__code__ in seen:
        return
    seen.add(function.__code__)
    for name in function.__code__.co_names:
        yield name
        inner = function.__globals__.get(name)
        if isinstance(inner, types.FunctionType) and inner.__module__.startswith(
            ("torch.nn.functional", "torch._lowrank")
        ):
            for part in _unwrapped(inner):
                yield from _named_in(part, seen)


@cache
def _draws(name: str) -> bool:
    return any(_SEEDED in overload.tags for overload in _overloads(name))


def _parameters(function: types.FunctionType) -> Iterator[Argument]:
    for position, parameter in enumerate(
        inspect.signature(function, follow_wrapped=False).parameters.values()
    ):
        by_position = parameter.kind is not parameter.KEYWORD_ONLY
        default = None if parameter.default is parameter.empty else parameter.default
        yield Argument(position if by_position else None, parameter.name, default)


def _python_kind(function: types.FunctionType, full_name: str) -> TorchKind:
    """The kind of a Python function of torch.functional, torch.nn.functional or torch.Tensor."""
    parts = _unwrapped(function)
    seen: set[types.CodeType] = set()
    names = {name for part in parts for name in _named_in(part, seen)}
    draws = any(map(_draws, names))
    real = parts[-1]
    switch = _random_switch(_parameters(real)) if draws else None
    writes = list(HIDDEN_WRITES.get(full_name, ()))
    in_place = _is_in_place(function.__name__)
    for argument in _parameters(real):
        if argument.name == "inplace":
            first = next(_parameters(real))
            writes.append((first, Switch(argument, False)))
    if in_place:
        writes.append((Argument(0, "self"), None))
    return TorchKind(
        True,
        draws_random=draws,
        mutates=any(condition is None for _, condition in writes),
        returns_self=in_place,
        random_switch=switch,
        writes=tuple(writes),
    )


# --- the questions ------------------------------------------------------------------------------------------


def _resolve(dotted: str) -> Any:
    value: Any = torch
    for part in dotted.split("."):
        value = getattr(value, part, None)
    return value


@lru_cache(maxsize=1)
def _exceptions() -> dict[Any, TorchKind]:
    """Callable -> kind, for the table of exceptions and the state functions of torch._C."""
    found = {}
    for reason, names in FUNCTION_EXCEPTIONS.items():
        for name in names.split():
            function = _resolve(name)
            if function is not None:
                found[function] = TorchKind(False, reason=reason)
    return found


@lru_cache(maxsize=1)
def _method_exceptions() -> dict[str, str]:
    return {name: reason for reason, names in METHOD_EXCEPTIONS.items() for name in names.split()}


@lru_cache(maxsize=1)
def _python_functions() -> dict[types.FunctionType, str]:
    """torch's Python functions on tensors -> full name."""
    import torch.functional
    import torch.nn.functional

    found: dict[types.FunctionType, str] = {}
    for module in (torch.functional, torch.nn.functional):
        for name, value in vars(module).items():
            if isinstance(value, types.FunctionType) and _is_tensor_function(value, name, module.__name__):
                found.setdefault(value, f"{module.__name__}.{name}")
    for name, value in vars(torch.masked._ops).items():
        if isinstance(value, types.FunctionType) and _is_masked(value, name):
            found.setdefault(value, f"torch.masked.{name}")
    for name in ("lobpcg", "unravel_index", "is_tensor"):
        found.setdefault(getattr(torch, name), f"torch.{name}")
    return found


def _is_tensor_function(function: types.FunctionType, name: str, module: str) -> bool:
    """A function that others may override with __torch_function__, or a public one of the module itself."""
    if "handle_torch_function" in function.__code__.co_names:
        return True
    made_here = function.__module__ in (module, "torch._jit_internal", "torch._lowrank")
    return made_here and not name.startswith("_") and name not in _HELPERS


def _is_masked(function: types.FunctionType, name: str) -> bool:
    """A public function of torch.masked that takes a mask."""
    code = function.__code__
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    return not name.startswith(("_", "as_")) and any(each.endswith("mask") for each in names)


_HELPERS = frozenset(
    {"boolean_dispatch", "handle_torch_function", "assert_int_or_pair", "has_torch_function", "is_tracing"}
)

_OPERATOR_MODULES = ("_nn", "_special", "_fft", "_linalg", "_sparse", "_nested")


@lru_cache(maxsize=1)
def _operator_spaces() -> frozenset[Any]:
    spaces = (getattr(torch._C, name, None) for name in _OPERATOR_MODULES)
    return frozenset(space for space in spaces if space is not None)


def classify(fn: Any) -> TorchKind | None:
    """What a torch callable is; None for one that is not torch's (or that the tracer may inline like any
    Python function).

    fn: a function of torch, torch.nn.functional, torch.special, torch.linalg, torch.fft, ..., a method
    descriptor or a Python method of torch.Tensor, or a getter such as `torch.Tensor.T.__get__`.
    """
    if type(fn) not in _callables():  # also keeps the hash of user objects from being asked
        return None
    allowed = in_graph(fn)
    if allowed is not None:
        return (_classify(fn) or _ALLOWED) if allowed else _DISALLOWED
    kind = _kinds.get(fn)
    if kind is None:
        kind = _classify(fn)
        if kind is not None:
            _kinds[fn] = kind
    return kind


@lru_cache(maxsize=1)
def _callables() -> frozenset[type]:
    """The exact types of torch callables."""
    from torch._library.custom_ops import CustomOpDef

    return frozenset((
        types.BuiltinFunctionType, types.FunctionType, types.MethodDescriptorType,
        types.WrapperDescriptorType, types.MethodWrapperType, type,
        torch._ops.OpOverload, torch._ops.OpOverloadPacket, CustomOpDef,
    ))  # fmt: skip


#: Answers about torch's own callables; nothing of the user's is ever held here.
_kinds: dict[Any, TorchKind] = {}


def is_torchs_own(fn: Any) -> bool:
    """Whether it is a callable of torch's that was classified before: one that may be held."""
    return type(fn) in _callables() and fn in _kinds


def _classify(fn: Any) -> TorchKind | None:
    known = _exceptions().get(fn)
    if known is not None:
        return known
    if isinstance(fn, types.BuiltinFunctionType):
        return _builtin_kind(fn)
    overload = custom_overload(fn)
    if isinstance(overload, torch._ops.OpOverloadPacket):
        return _schema_kind(overload.__name__, str(overload), _without_out(overload))
    if isinstance(overload, torch._ops.OpOverload):
        return _schema_kind(overload._opname, str(overload), [overload])
    if isinstance(fn, (types.MethodDescriptorType, types.WrapperDescriptorType)):
        return (
            tensor_method(fn.__name__)
            if issubclass(torch.Tensor, fn.__objclass__) and fn.__objclass__ is not object
            else None
        )
    if isinstance(fn, types.MethodWrapperType):
        return _getter_kind(fn)
    if isinstance(fn, types.FunctionType):
        full_name = _python_functions().get(fn)
        if full_name is not None:
            return _python_kind(fn, full_name)
        if fn.__module__ == "torch._tensor" and fn.__qualname__.startswith(("Tensor.", "TensorBase.")):
            for name in (fn.__name__, *_names_of(fn)):
                if inspect.getattr_static(torch.Tensor, name, None) is fn:
                    return tensor_method(name)
    return None


def _names_of(fn: types.FunctionType) -> list[str]:
    """The names under which torch.Tensor has a function that was given another name."""
    return [name for name, value in vars(torch.Tensor).items() if value is fn]


def _builtin_kind(fn: Any) -> TorchKind | None:
    owner = fn.__self__
    if owner is None and fn.__qualname__.startswith("_VariableFunctionsClass."):
        return _operator_kind(fn.__name__, f"torch.{fn.__name__}")
    if owner is torch._C:
        writes = fn.__name__.lstrip("_").startswith(("set_", "autocast_", "clear_"))
        return TorchKind(False, reason=WRITES_STATE if writes else READS_STATE)
    if isinstance(owner, types.ModuleType) and owner in _operator_spaces():
        return _operator_kind(fn.__name__, f"torch.{fn.__name__}")
    return None


def attribute_of(fn: Any) -> str | None:
    """The name of the attribute that `torch.Tensor.T.__get__` or one of its kin reads, where that may be a node or a constant."""
    if type(fn) is not types.MethodWrapperType or fn.__name__ != "__get__":
        return None
    kind, owner = _getter_kind(fn), fn.__self__
    if kind is None or not kind.in_graph:
        return None
    if isinstance(owner, types.GetSetDescriptorType):
        return owner.__name__
    return next(name for name, value in vars(torch.Tensor).items() if value is owner)


def _getter_kind(fn: Any) -> TorchKind | None:
    """`torch.Tensor.T.__get__` and its kin: what get_overridable_functions() has for attributes."""
    owner = fn.__self__
    if fn.__name__ not in ("__get__", "__set__", "__delete__"):
        return None
    if isinstance(owner, types.GetSetDescriptorType):
        name = owner.__name__ if issubclass(torch.Tensor, owner.__objclass__) else None
    else:
        name = next((name for name, value in vars(torch.Tensor).items() if value is owner), None)
    attribute = None if name is None else tensor_attribute(name)
    if attribute is None:
        return None
    if fn.__name__ != "__get__" or attribute == "state":
        return TorchKind(False, reason=OBJECT_STATE)
    return TorchKind(True)


@lru_cache(maxsize=4096)
def tensor_method(name: str) -> TorchKind | None:
    """The kind of the method that torch.Tensor has under this name; None for an attribute or nothing."""
    method = inspect.getattr_static(torch.Tensor, name, None)
    if method is None or not callable(method) and not isinstance(method, (classmethod, staticmethod)):
        return None
    reason = _method_exceptions().get(name)
    if reason is not None:
        return TorchKind(False, reason=reason)
    if isinstance(method, types.FunctionType):
        operator_kind = _operator_kind(name, f"torch.Tensor.{name}")
        if not operator_kind.in_graph or operator_kind.mutates:
            return operator_kind
        return _python_kind(method, f"torch.Tensor.{name}")
    if isinstance(method, (types.MethodDescriptorType, types.WrapperDescriptorType)):
        if method.__objclass__ is object:
            return None
        return _operator_kind(name, f"torch.Tensor.{name}")
    return TorchKind(False, reason=OBJECT_STATE)


@lru_cache(maxsize=1024)
def tensor_attribute(name: str) -> str | None:
    """How the tracer answers `tensor.name`.

    "meta": a constant of the metadata; "graph": a node (T, mT, H, mH, real, imag); "state": needs the real
    tensor (grad, data, grad_fn, _version, is_leaf, ...); None: no attribute of torch.Tensor (a method, an
    instance attribute, or nothing).
    """
    attribute = inspect.getattr_static(torch.Tensor, name, None)
    if not isinstance(attribute, (types.GetSetDescriptorType, types.MemberDescriptorType, property)):
        return None
    if name in GRAPH_ATTRIBUTES:
        return "graph"
    if name in CONSTANT_ATTRIBUTES and name not in _STATE_ATTRIBUTES:
        return "meta"
    return "state"


def custom_overload(fn: Any) -> Any:
    """The operator behind a function made by torch.library.custom_op; everything else is itself."""
    return getattr(fn, "_opoverload", fn) if type(fn).__name__ == "CustomOpDef" else fn


def is_custom(fn: Any) -> bool:
    """Whether it is an operator of somebody else's, of which only the schema is known."""
    overload = custom_overload(fn)
    return isinstance(overload, (torch._ops.OpOverload, torch._ops.OpOverloadPacket)) and not str(
        overload
    ).startswith(("aten.", "prims."))


def graph_target(fn: Callable[..., Any]) -> tuple[str, Any]:
    """How a callable that is `in_graph` is written in the graph: ("call_method", name) or ("call_function",
    callable).
    """
    if type(fn) is types.BuiltinFunctionType:
        return "call_function", fn
    if isinstance(fn, (types.MethodDescriptorType, types.WrapperDescriptorType)):
        return "call_method", fn.__name__
    if isinstance(fn, types.MethodWrapperType):
        return "call_function", fn
    if isinstance(fn, types.FunctionType) and fn.__module__ == "torch._tensor":
        names = [
            name
            for name in (fn.__name__, *_names_of(fn))
            if inspect.getattr_static(torch.Tensor, name, None) is fn
        ]
        if names:
            return "call_method", names[0]
    return "call_function", custom_overload(fn)
