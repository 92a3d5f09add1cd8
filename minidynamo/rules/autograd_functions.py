"""`Function.apply` of the user's torch.autograd.Functions: one node, which calls it, where that can be done later without being noticed.

`forward` and `backward` are executed symbolically first, and what that adds to the graph is removed again. It shows that they compute
with their arguments only, and guards what they read. What they do besides, or what cannot be followed, breaks the graph.
"""

from __future__ import annotations

import inspect
import types
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NoReturn

import torch
import torch.fx

from ..cache import OptimizedFunction
from ..graph.memory import may_be_input
from ..graph.meta_value import TensorMeta
from ..reasons import UNSUPPORTED_CALL
from ..sources import AttrSource
from ..static_access import type_lookup
from ..variables.base import Tracing, VariableTracker
from ..variables.classes import ClassVariable
from ..variables.constant import CONSTANT_TYPES, ConstantVariable
from ..variables.function_contexts import FunctionContextVariable
from ..variables.functions import FunctionVariable
from ..variables.sequences import TupleVariable
from ..variables.tensor import TensorVariable
from ..variables.tensor_subclasses import TensorSubclass
from .builtins import Args, rule
from .tensor_ops import from_result

BASE = torch.autograd.Function
APPLY = BASE.__dict__["apply"].__func__ if "apply" in BASE.__dict__ else BASE.apply.__func__
ONCE = torch.autograd.function.once_differentiable(
    lambda: None
).__code__  # it calls what it wraps without a grad mode
NO_CONTEXT = type_lookup(BASE, "setup_context")


class ApplyFunction:
    """What a graph calls: `cls.apply`. It does not keep the class alive: the entry dies with it."""

    def __init__(self, cls: type) -> None:
        self.cls = weakref.ref(cls)
        self.__name__ = f"{cls.__name__}_apply"
        self.__qualname__ = f"{cls.__qualname__}.apply"
        self.__module__ = cls.__module__

    def __call__(self, *args: Any) -> Any:
        return applied(self.cls(), *args)


def _applied(cls: Any, *args: Any) -> Any:
    return cls.apply(*args)


applied = OptimizedFunction(_applied, None)  # forward is not captured by itself while the graph runs


class Look:
    """One call of `apply` that is looked at."""

    def __init__(self, tx: Tracing, cls: ClassVariable, args: list[VariableTracker]) -> None:
        self.tx = tx
        self.cls = cls
        self.args = args
        self.tensors = [arg for arg in args if isinstance(arg, TensorVariable)]

    def refuse(self, why: str) -> NoReturn:
        self.tx.unsupported(UNSUPPORTED_CALL, name=f"{self.cls.name()}.apply ({why})")

    def function(self, name: str) -> VariableTracker:
        """`forward`, `backward` or `setup_context`, a static method."""
        raw = type_lookup(self.cls.fn, name)
        if type(raw) is not staticmethod or type(raw.__func__) is not types.FunctionType:
            self.refuse(f"{name} is no static method")
        found = self.cls.getattr(self.tx, name)
        if raw.__func__.__code__ is not ONCE:
            return found
        assert found.source is not None
        wrapped: Any = raw.__func__
        return self.tx.wrap(wrapped.__wrapped__, AttrSource(found.source, "__wrapped__"))

    def is_recorded(self) -> bool:
        """Whether autograd will call `backward`."""
        return self.tx.grad_mode and any(t.meta.requires_grad for t in self.tensors)  # type: ignore[union-attr]

    def needs(self) -> TupleVariable:
        return TupleVariable(
            [
                ConstantVariable(isinstance(arg, TensorVariable) and arg.meta.requires_grad)  # type: ignore[union-attr]
                for arg in self.args
            ]
        )

    def outputs(self) -> tuple[Any, bool]:
        """What it gives, as metadata, and whether it draws random numbers."""
        recorded = self.is_recorded()
        ctx = FunctionContextVariable(self.needs())
        with self.apart() as nodes:
            result = self.forward(ctx)
            items = list(result.items) if type(result) is TupleVariable else [result]
            items = [item.realize(self.tx) for item in items]
            for item in items:
                if type(item) is not TensorVariable or item.proxy.node not in nodes():
                    self.refuse("forward gives something else than new tensors")
            if len({item.proxy.node for item in items}) < len(items):  # type: ignore[attr-defined]
                self.refuse("forward gives a tensor twice")
            metas = [self.meta(item, ctx, recorded) for item in items]
            if recorded:
                self.backward(ctx, items)
            self.check_reads(nodes())
            draws = self.tx.graph.draws_random
            if draws and not self.tx.graph.draws_on_the_cpu():
                self.refuse("forward or backward draws random numbers elsewhere than on the CPU")
        ctx.forget()
        return (tuple(metas) if type(result) is TupleVariable else metas[0]), draws

    def forward(self, ctx: FunctionContextVariable) -> VariableTracker:
        """Autograd does not record what it does."""
        forward = self.function("forward")
        with self.unrecorded():
            if type_lookup(self.cls.fn, "setup_context") is NO_CONTEXT:
                return self.tx.call(forward, [ctx, *self.args], {}).realize(self.tx)
            result = self.tx.call(forward, list(self.args), {}).realize(self.tx)
            self.tx.call(self.function("setup_context"), [ctx, TupleVariable(list(self.args)), result], {})
            return result

    def meta(self, item: Any, ctx: FunctionContextVariable, recorded: bool) -> TensorMeta:
        meta = item.meta
        if not isinstance(meta, TensorMeta):
            self.refuse("forward gives a tensor whose size depends on data")
        differentiable = meta.dtype.is_floating_point or meta.dtype.is_complex
        requires_grad = recorded and differentiable and not any(item is each for each in ctx.constant_outputs)
        return replace(meta, requires_grad=requires_grad, is_leaf=not requires_grad, is_parameter=False)

    def backward(self, ctx: FunctionContextVariable, outputs: list[Any]) -> None:
        """Executed with gradients like the outputs, and dropped."""
        grads: list[VariableTracker] = []
        for output in outputs:
            node = self.tx.graph.add_op(torch.empty_like, (output.proxy.node,), {}, self.tx.position())
            grads.append(TensorVariable(node, replace(output.meta, requires_grad=False, is_leaf=True)))
        with self.unrecorded():
            result = self.tx.call(self.function("backward"), [ctx, *grads], {}).realize(self.tx)
        given = [g.realize(self.tx) for g in (result.items if type(result) is TupleVariable else [result])]
        if len(given) != len(self.args):
            self.refuse("backward gives another number of gradients than forward has arguments")
        for grad, arg in zip(given, self.args):
            none = grad.is_python_constant() and grad.as_python_constant() is None
            if not none and (type(grad) is not TensorVariable or not isinstance(arg, TensorVariable)):
                self.refuse("backward gives something else than tensors and None")

    def check_reads(self, nodes: dict[torch.fx.Node, None]) -> None:
        """A tensor that is no argument is not one that a backend would see."""
        own = {tensor.proxy.node for tensor in self.tensors}
        for node in nodes:
            if node.target == "item":
                self.refuse("forward or backward reads a number of a tensor")
            if not own.issuperset(each for each in node.all_input_nodes if each not in nodes):
                self.refuse("forward or backward reads a tensor that is no argument")

    @contextmanager
    def unrecorded(self) -> Iterator[None]:
        """Autograd does not record. A change of torch's state breaks the graph, and is undone."""
        trace: Any = self.tx.trace
        known, opened = set(trace.states), len(trace.opened)
        with torch.no_grad():
            try:
                yield
                if len(trace.states) > len(known) or len(trace.opened) > opened:
                    self.refuse("forward or backward changes torch's state")
            finally:
                for manager in reversed(trace.opened[opened:]):
                    manager.release()
                del trace.opened[opened:]
                for key in reversed([key for key in trace.states if key not in known]):
                    key.put(trace.states.pop(key))

    @contextmanager
    def apart(self) -> Iterator[Any]:
        """What is added to the graph inside is removed again. Anything else that changes breaks the graph."""
        trace, graph = self.tx.trace, self.tx.graph
        before, kept = state_of(trace), (trace.first_covered, trace.mode_outside)
        outside = dict.fromkeys(graph.graph.nodes, True)
        with graph.scratch() as nodes:
            yield nodes
            if state_of(trace) != before or any(may_be_input(node, outside) for node in graph.written):
                self.refuse("forward or backward changes something")
        trace.first_covered, trace.mode_outside = kept


def state_of(trace: Any) -> tuple[Any, ...]:
    """What changes when the program changes something, and which tensors the graph takes."""
    cells = sum(cell.written is not None for cell in trace.outside_cells)
    return (
        *(
            len(part)
            for part in (trace.effects, trace.globals_written, trace.mutated, trace.states, trace.opened)
        ),
        len(trace.graph.inputs),
        cells,
    )


@rule(APPLY)
def _apply(tx: Tracing, args: Args, kwargs: dict[str, VariableTracker]) -> VariableTracker:
    """CPython has no counterpart: torch.autograd.function.Function.apply, THPFunction_apply."""
    cls = args[0].realize(tx) if args else None
    if not isinstance(cls, ClassVariable):
        tx.unsupported(UNSUPPORTED_CALL, name="Function.apply with these arguments")
    given = [arg.realize(tx) for arg in bound(tx, cls, list(args[1:]), kwargs)]
    look = Look(tx, cls, given)
    if not look.tensors or any(map(is_strange, given)):
        look.refuse("with arguments other than tensors and constants")
    trace: Any = tx.trace
    if trace.effects or trace.globals_written or any(c.written is not None for c in trace.outside_cells):
        look.refuse("after changes that are not made before the graph has run")
    tx.guard_global_state()
    result, draws = look.outputs()
    proxies = tuple(arg.as_python_proxy() for arg in given)
    proxy = tx.graph.add_op(ApplyFunction(cls.fn), proxies, {}, tx.position(), (), draws)
    tx.note_operator()
    return from_result(tx, cls.name(), proxy, result, VariableTracker.propagate(*given))


def bound(
    tx: Tracing, cls: ClassVariable, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
) -> list[VariableTracker]:
    """All arguments in order, defaults too where there is a `setup_context`."""
    if type_lookup(cls.fn, "setup_context") is NO_CONTEXT:
        if kwargs:
            tx.unsupported(UNSUPPORTED_CALL, name=f"{cls.name()}.apply with keywords")
        return args
    forward = Look(tx, cls, args).function("forward").realize(tx)
    flags = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS
    if (
        not isinstance(forward, FunctionVariable)
        or forward.code().co_kwonlyargcount
        or forward.code().co_flags & flags
    ):
        tx.unsupported(UNSUPPORTED_CALL, name=f"{cls.name()}.apply, whose forward takes any arguments")
    code = forward.code()
    values = forward.bind(tx, args, kwargs)
    return [values[name] for name in code.co_varnames[: code.co_argcount]]


def is_strange(arg: VariableTracker) -> bool:
    if isinstance(arg, TensorVariable):
        return isinstance(arg, TensorSubclass) or not isinstance(arg.meta, TensorMeta)
    return not arg.is_python_constant() or type(arg.as_python_constant()) not in CONSTANT_TYPES
