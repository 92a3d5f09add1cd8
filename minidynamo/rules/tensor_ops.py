"""One operator on tensors: classification, metadata, graph node, tracker of the result."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch

from ..graph import current_device, meta
from ..graph.meta import SymbolicMeta, TensorMeta, WrapperMeta
from ..graph.state_keys import Key
from ..reasons import (
    CALL_ARGUMENTS,
    DISABLED_CALL,
    GLOBAL_STATE_CALL,
    METADATA_MUTATION,
    OPERATOR_UNKNOWN,
    TENSOR_DATA,
    TENSOR_STATE,
    TENSOR_SUBCLASS,
    UNSUPPORTED_CALL,
    Reason,
)
from ..variables.base import Provenance, Tracing, VariableTracker
from ..variables.constant import BINARY, COMPARE, CONSTANT_TYPES, INPLACE, UNARY, ConstantVariable
from ..variables.numbers import NumberVariable
from ..variables.numbers import kind_of as number_kind
from ..variables.read_numbers import ReadNumber
from ..variables.sequences import NONE, ListVariable, SequenceVariable, SizeVariable, TupleVariable
from ..variables.structseq import StructSequenceVariable
from ..variables.tensor import READ_DATA, TensorVariable
from ..variables.tensor_subclasses import TensorSubclass
from ..variables.tensor_wrappers import check_wrappers, new_wrapper
from . import in_place_views, out_arguments, overrides, torch_exceptions, torch_functions
from .torch_functions import Argument, TorchKind
from .torch_state import guard_read

_PLAIN = TorchKind(in_graph=True)
_SETITEM = TorchKind(in_graph=True, mutates=True, writes=((Argument(0, "self"), None),))
_INPLACE = TorchKind(in_graph=True, mutates=True, returns_self=True, writes=((Argument(0, "self"), None),))

OPERATORS: dict[Any, TorchKind] = {
    **dict.fromkeys((*BINARY.values(), *COMPARE.values(), *UNARY.values()), _PLAIN),
    **dict.fromkeys(INPLACE.values(), _INPLACE),
    operator.getitem: _PLAIN,
    getattr: _PLAIN,
    READ_DATA: _PLAIN,
    abs: _PLAIN,
    operator.setitem: _SETITEM,
}


REASONS: dict[str, Reason] = {
    torch_exceptions.NEEDS_DATA: TENSOR_DATA,
    torch_exceptions.OBJECT_STATE: TENSOR_STATE,
    torch_exceptions.MEMORY: TENSOR_DATA,
    torch_exceptions.NOT_TENSORS: UNSUPPORTED_CALL,
    torch_exceptions.INPUT_OUTPUT: UNSUPPORTED_CALL,
    torch_exceptions.DISALLOWED: DISABLED_CALL,
}


NAMES: dict[Any, str] = {fn: f"operator.{fn.__name__}" for fn in OPERATORS}


def name_of(target: Callable[..., Any] | str) -> str:
    """The operator's name as a user writes it."""
    if isinstance(target, str):
        return f"Tensor.{target}"
    known = NAMES.get(target)
    if known is not None:
        return known
    name = getattr(target, "__name__", None) or repr(target)
    module = getattr(target, "__module__", None) or "torch"
    name = name if module == "builtins" else f"{module}.{name}"
    if torch_functions.is_torchs_own(target):
        NAMES[target] = name
    return name


def kind_of(target: Callable[..., Any] | str) -> TorchKind | None:
    """How `target` may be used in a graph; None when it is no tensor operation."""
    if isinstance(target, str):
        return torch_functions.tensor_method(target)
    return OPERATORS.get(target) or torch_functions.classify(target)


def tensor_op(
    tx: Tracing,
    target: Callable[..., Any] | str,
    args: list[VariableTracker],
    kwargs: dict[str, VariableTracker],
) -> VariableTracker:
    """Add one operator to the graph. Breaks the graph when it needs data, would fail, or reaches outside of the graph."""
    tx.guard_global_state()
    attribute = torch_functions.attribute_of(target)
    if attribute is not None and len(args) == 1 and not kwargs:
        target, args = getattr, [args[0], ConstantVariable(attribute)]
    name, kind = name_of(target), kind_of(target)
    if (
        target in ITEM
        and len(args) == 1
        and not kwargs
        and not isinstance(args[0].realize(tx), TensorSubclass)
    ):
        return number(tx, name, args[0].realize(tx))
    if kind is None:
        tx.unsupported(UNSUPPORTED_CALL, name=name)
    if not kind.in_graph:
        tx.unsupported(REASONS.get(kind.reason or "", GLOBAL_STATE_CALL), name=name)
    args = [realized(tx, a) for a in args]
    if kwargs:
        kwargs = {k: realized(tx, v) for k, v in kwargs.items()}
    made = overrides.overridden(tx, name, target, args, kwargs)
    if made is not None:
        return made
    out = out_arguments.given(tx, name, target, kwargs)
    operands = (*args, *kwargs.values()) if kwargs else args
    try:
        proxies: tuple[tuple[Any, ...], dict[str, Any]] = tuple([a.as_python_proxy() for a in args]), {}
        metas: tuple[tuple[Any, ...], dict[str, Any]] = tuple([a.as_meta() for a in args]), {}
        for key, value in kwargs.items() if kwargs else ():
            proxies[1][key] = value.as_python_proxy()
            if value is not out:
                metas[1][key] = value.as_meta()
    except TypeError as error:
        tx.unsupported(CALL_ARGUMENTS, name=name, detail=str(error))
    if tx.trace.wrapper_classes and meta.holds_wrapper(metas):
        check_wrappers(tx)
    in_place_views.refuse(tx, name, target, args)
    changes = False
    try:
        result = _infer(tx, name, target, *metas)
    except meta.MutatesMeta as change:
        result, changes = in_place_views.changed(tx, name, target, args, change), True
    guards = VariableTracker.propagate(*operands)
    tensors = _tensors(operands)
    written = _written(tx, name, tensors, kind.written(*proxies))
    draws = kind.draws(*proxies)
    if tx.trace.has_accelerator:
        # A backend may run the operator when another device is current.
        proxies = current_device.resolved(proxies, set())
        if torch_functions.is_custom(target) and tx.trace.devices_left():
            tx.unsupported(GLOBAL_STATE_CALL, name=name)
    if not _holds_tensor(result) and not written and not draws:
        if result is None and target is not getattr:  # it is called for what it does, and that is not known
            tx.unsupported(UNSUPPORTED_CALL, name=name)
        return answer(tx, name, target, proxies, result, guards)
    if not written and not draws:
        for tensor in tensors:
            if tensor.meta is result and isinstance(tensor, TensorSubclass):
                tx.graph.tape.lost = True  # with other strides it might be a node
                return tensor
    itself = args[0] if args and kind.gives_self(*proxies) and isinstance(args[0], TensorVariable) else None
    if out is not None:
        out_arguments.check(tx, name, out, tensors, result)
        itself = out
    elif itself is not None and result != itself.meta and not changes:
        tx.unsupported(METADATA_MUTATION, name=name)
    for tensor in written:
        origin = tensor.origin()
        if origin is not None:
            tx.mutates(origin)
    if not isinstance(target, str) and target not in OPERATORS:
        target = torch_functions.graph_target(target)[1]
    changed = [tensor.proxy.node for tensor in written]
    linked = bool(written) and tx.grad_mode and is_linked(kind, operands)
    proxy = tx.graph.add_op(target, *proxies, tx.position(), changed, draws, linked)
    tx.graph.tape.metas[proxy.node] = result
    tx.note_operator()
    if itself is not None and changes:
        itself.meta = result
        tx.graph.tape.lost = True
    return itself if itself is not None else from_result(tx, name, proxy, result, guards)


def overridden(
    tx: Tracing, target: Any, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
) -> VariableTracker | None:
    """What `__torch_function__` of an argument's class gives for a call of `target`, if torch asks one."""
    args = [realized(tx, a) for a in args]
    if not kwargs and overrides.PLAIN.issuperset(map(type, args)):
        return None
    kwargs = {k: realized(tx, v) for k, v in kwargs.items()}
    return overrides.overridden(tx, name_of(target), target, args, kwargs)


def overlaps_itself(meta: Any) -> bool:
    """ATen: has_internal_overlap: elements in one place, as after `expand`. Most operators refuse to write them, compilers do not."""
    return type(meta) is TensorMeta and any(
        size > 1 and stride == 0 for size, stride in zip(meta.shape, meta.stride)
    )


def is_linked(kind: TorchKind, operands: Iterable[VariableTracker]) -> bool:
    """Whether autograd takes what the operator writes as its result. (It does not follow running statistics.)"""
    names = {argument.name for argument, _ in kind.writes}
    statistics = bool(names) and names <= {"running_mean", "running_var"}
    return not statistics and any(t.meta.requires_grad for t in _tensors(operands))


QUANTIZED = frozenset({torch.qint8, torch.quint8, torch.qint32, torch.quint4x2, torch.quint2x4})
ITEM = ("item", torch.Tensor.item)


def number(tx: Tracing, name: str, tensor: VariableTracker) -> VariableTracker:
    """The Python number in a tensor of one element: a node of the graph. Breaks the graph where it is of another type, and where
    the sizes are not known."""
    meta = tensor.as_meta() if isinstance(tensor, TensorVariable) else None
    kind = number_kind(meta.dtype) if type(meta) is TensorMeta and meta.numel == 1 else None
    if not isinstance(tensor, TensorVariable) or kind is None:
        tx.unsupported(TENSOR_DATA, name=name)
    tx.guard_global_state()
    proxy = tx.graph.add_op("item", (tensor.as_proxy().node,), {}, tx.position())
    tx.note_operator()
    return NumberVariable(proxy, kind, tensor.guards)


def _nodes(values: Iterable[Any]) -> Iterator[torch.fx.Node]:
    """Graph nodes among argument values, those in lists and tuples too."""
    for value in values:
        if isinstance(value, (list, tuple)):
            yield from _nodes(value)
        elif isinstance(value, torch.fx.Node):
            yield value


def _tensors(operands: Iterable[VariableTracker]) -> list[TensorVariable]:
    """Tensors among operands, those in lists and tuples too."""
    found: list[TensorVariable] = []
    for operand in operands:
        if isinstance(operand, TensorVariable):
            found.append(operand)
        elif isinstance(operand, SequenceVariable):
            found += _tensors(operand.items)
    return found


def _written(
    tx: Tracing, name: str, tensors: list[TensorVariable], values: list[Any]
) -> list[TensorVariable]:
    """Those of the operands whose nodes are among `values`, which the operator writes. Breaks the graph where it may not."""
    listed = list(_nodes(values)) if values else []
    if not listed:
        return []
    nodes = set(listed)
    if len(nodes) < len(listed) and tx.trace.for_compiler:  # which takes them for different ones
        tx.unsupported(CALL_ARGUMENTS, name=name, detail="one tensor twice among those that it writes")
    written = [tensor for tensor in tensors if tensor.proxy.node in nodes]
    if any(overlaps_itself(tensor.meta) for tensor in written):
        tx.unsupported(CALL_ARGUMENTS, name=name, detail="elements that lie in one place are written")
    return written


def realized(tx: Tracing, tracker: VariableTracker) -> VariableTracker:
    """Look at a value and, for a sequence, at everything in it."""
    tracker = tracker.realize(tx)
    if isinstance(tracker, SequenceVariable):
        tracker.realize_deep(tx)
    return tracker


def _infer(
    tx: Tracing, name: str, target: Callable[..., Any] | str, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    op = ("method", target) if isinstance(target, str) else target
    kinds: set[str] = set()
    on_accelerator = tx.trace.has_accelerator and target is not getattr
    if on_accelerator:
        args, kwargs = current_device.resolved((args, kwargs), kinds)
    if tx.trace.for_compiler and tx.grad_mode and meta.is_undifferentiable(op, args, kwargs):
        tx.unsupported(TENSOR_DATA, name=name)
    try:
        result = meta.infer(op, args, kwargs, tx.grad_mode, tx.trace.for_compiler)
    except meta.NeedsData:
        tx.unsupported(TENSOR_DATA, name=f"Tensor.{args[1]}" if target is getattr else name)
    except meta.OpFailed as failed:
        tx.fails(name, failed.exception)
    except meta.Unknown as unknown:
        tx.unsupported(OPERATOR_UNKNOWN, name=name, error=str(unknown))
    if on_accelerator:
        unnamed = current_device.unnamed(target, (args, kwargs), result)
        if any(Key("current device", kind) in tx.trace.states for kind in unnamed):
            tx.unsupported(GLOBAL_STATE_CALL, name=name)  # a backend may run it when the first one is current
        kinds |= unnamed
    for kind in sorted(kinds) if kinds else ():
        guard_read(tx, "current device", (kind,))
    return result


def _holds_tensor(result: Any) -> bool:
    if isinstance(result, (tuple, list)):
        return any(_holds_tensor(item) for item in result)
    return isinstance(result, (TensorMeta, SymbolicMeta, WrapperMeta))


def answer(
    tx: Tracing, name: str, target: Any, given: tuple[Any, Any], value: Any, guards: Provenance
) -> VariableTracker:
    """What metadata alone tell. The tape is told of what may depend on sizes."""
    if target is getattr and given[0][1] in SIZELESS:
        return from_constant(tx, name, value, guards)
    tape = tx.graph.tape
    op = ("method", target) if isinstance(target, str) else target
    return from_answer(tx, name, value, tape.ask(op, *given, value), guards)


def from_answer(tx: Tracing, name: str, value: Any, traced: Any, guards: Provenance) -> VariableTracker:
    """`value`, whose ints the tape knows as `traced` has them."""
    if type(value) is int:
        return ReadNumber(value, tx.graph.tape, traced, guards=guards)
    made = SEQUENCES.get(type(value))
    if made is None:
        return from_constant(tx, name, value, guards)
    return made([from_answer(tx, name, *both, guards) for both in zip(value, traced)], guards=guards)


SIZELESS = meta.ATTRIBUTES - {"shape"}  # attributes that no size decides


def from_constant(tx: Tracing, name: str, value: Any, guards: Provenance) -> VariableTracker:
    """A result that follows from metadata alone."""
    if type(value) in CONSTANT_TYPES:
        return ConstantVariable(value, guards=guards)
    made = SEQUENCES.get(type(value))
    if made is None:
        tx.unsupported(OPERATOR_UNKNOWN, name=name, error=f"a result of type {type(value).__name__}")
    return made([from_constant(tx, name, item, guards) for item in value], guards=guards)


SEQUENCES: dict[type, type[SequenceVariable]] = {
    tuple: TupleVariable,
    list: ListVariable,
    torch.Size: SizeVariable,
}


def picked(tx: Tracing, whole: torch.fx.Node, index: int, result: Any) -> torch.fx.Proxy:
    """One of the values that a node gives."""
    proxy = tx.graph.add_op(operator.getitem, (whole, index), {}, tx.position())
    tx.graph.tape.metas[proxy.node] = result
    return proxy


def from_result(
    tx: Tracing, name: str, proxy: torch.fx.Proxy, result: Any, guards: Provenance
) -> VariableTracker:
    """Trackers for an operator's result: a tensor, or a structure whose leaves are picked out by getitem nodes."""
    if isinstance(result, WrapperMeta):
        return new_wrapper(tx, proxy, result, guards)
    if isinstance(result, (TensorMeta, SymbolicMeta)):
        if result.dtype in QUANTIZED:  # scale and zero point are no metadata
            tx.unsupported(TENSOR_SUBCLASS, type=f"the result of {name}", detail="quantized")
        return TensorVariable(proxy, result, guards=guards)
    if result is None:
        return NONE
    if isinstance(result, (tuple, list)):
        items = [
            from_result(tx, name, picked(tx, proxy.node, i, item), item, guards)
            for i, item in enumerate(result)
        ]
        made = SEQUENCES.get(type(result))
        if made is not None:
            return made(items, guards=guards)
        return StructSequenceVariable(items, type(result), guards=guards)
    return from_constant(tx, name, result, guards)
