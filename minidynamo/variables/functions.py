"""User functions, inner functions, bound methods and builtins."""

from __future__ import annotations

import types
from typing import Any, NoReturn

import torch

from ..cache import OptimizedFunction
from ..guards.builder import GuardBuilder
from ..guards.guard import make_guard
from ..pycode import expr as E
from ..reasons import OPERATOR_FAILS
from ..sources import AttrSource, CellSource, DefaultSource, KwDefaultSource, Source
from ..static_access import type_lookup
from .base import NO_GUARDS, Emitting, Provenance, Tracing, VariableTracker
from .code import CodeVariable
from .constant import ConstantVariable
from .dicts import DictVariable, from_names
from .keys import Key
from .lazy import LazyVariable
from .marked import DisabledVariable, marked
from .opaque import wrap_opaque
from .registry import WITHOUT_SOURCE, wraps
from .sequences import BUILTINS, TupleVariable


class FunctionVariable(VariableTracker):
    """A Python function whose code is known: calling it is inlining it."""

    __slots__ = ()

    def python_type(self) -> type:
        return types.FunctionType

    def code(self) -> types.CodeType:
        raise NotImplementedError

    def name(self) -> str:
        return self.code().co_qualname

    def default(self, tx: Tracing, index: int, count: int) -> VariableTracker | None:
        """Default of the positional parameter `index` of `count`, or None."""
        raise NotImplementedError

    def keyword_default(self, tx: Tracing, name: str) -> VariableTracker | None:
        raise NotImplementedError

    def call_function(
        self, tx: Tracing, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
    ) -> VariableTracker:
        return tx.inline(self, args, kwargs)

    def bind(
        self, tx: Tracing, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
    ) -> dict[str, VariableTracker]:
        """Arguments by parameter name. CPython: initialize_locals. A call that CPython refuses breaks the graph, so that
        plain Python raises its own TypeError."""
        code = self.code()
        count, names = code.co_argcount, code.co_varnames
        if len(args) == count and not (kwargs or code.co_kwonlyargcount or code.co_flags & 0x0C):
            return dict(zip(names, args))
        keyword_only = names[count : count + code.co_kwonlyargcount]
        bound = dict(zip(names[:count], args))
        extra = args[count:]
        after = count + len(keyword_only)
        if code.co_flags & 0x04:
            bound[names[after]] = TupleVariable(list(extra))
        elif extra:
            self._refuses(tx, "too many positional arguments")
        takes_any = bool(code.co_flags & 0x08)
        others: dict[str, VariableTracker] = {}
        for key, value in kwargs.items():
            if key in (*names[code.co_posonlyargcount : count], *keyword_only) and key not in bound:
                bound[key] = value
            elif takes_any and (key not in bound or key in names[: code.co_posonlyargcount]):
                others[key] = value
            else:
                self._refuses(tx, f"keyword {key!r}")
        if takes_any:
            bound[names[after + bool(code.co_flags & 0x04)]] = from_names(tx, others)
        for index, name in enumerate(names[:count]):
            if name not in bound:
                self._fill(tx, bound, name, self.default(tx, index, count))
        for name in keyword_only:
            if name not in bound:
                self._fill(tx, bound, name, self.keyword_default(tx, name))
        return bound

    def _refuses(self, tx: Tracing, detail: str) -> NoReturn:
        """CPython refuses the call: plain Python raises its TypeError."""
        tx.unsupported(OPERATOR_FAILS, name=f"the call of {self.name()} ({detail})", error="TypeError")

    def _fill(
        self, tx: Tracing, bound: dict[str, VariableTracker], name: str, value: VariableTracker | None
    ) -> None:
        if value is None:
            self._refuses(tx, f"no value for {name!r}")
        bound[name] = value


class UserFunctionVariable(FunctionVariable):
    """A function that exists outside of the trace; always rebuilt from its source. `entered` is what the translator keeps of it
    from one call to the next."""

    __slots__ = ("entered", "fn")
    source: Source

    def __init__(self, fn: types.FunctionType, source: Source) -> None:
        super().__init__(source)
        self.fn = fn
        self.entered: Any = None

    def code(self) -> types.CodeType:
        return self.fn.__code__

    def default(self, tx: Tracing, index: int, count: int) -> VariableTracker | None:
        """Guarded by value when it is used; how many defaults there are is guarded too (they decide which one it is)."""
        defaults = self.fn.__defaults__
        at = index - (count - len(defaults or ()))
        if defaults is None or at < 0:
            return None
        whole = LazyVariable(defaults, AttrSource(self.source, "__defaults__")).realize(tx)
        return LazyVariable(defaults[at], DefaultSource(self.source, at)) if whole is not None else None

    def keyword_default(self, tx: Tracing, name: str) -> VariableTracker | None:
        defaults = self.fn.__kwdefaults__
        if not defaults or name not in defaults:
            return None
        return tx.lazily(defaults[name], KwDefaultSource(self.source, name))

    def getattr(self, tx: Tracing, name: str) -> VariableTracker:
        if name in ("__name__", "__qualname__", "__module__", "__doc__"):
            return LazyVariable(getattr(self.fn, name), AttrSource(self.source, name))
        if name == "__code__":  # which is guarded
            return CodeVariable(self.code())
        if name in self.fn.__dict__ and type_lookup(types.FunctionType, name) is None:
            return tx.lazily(self.fn.__dict__[name], AttrSource(self.source, name))
        return super().getattr(tx, name)

    def guard_own(self, tx: Tracing, name: str) -> None:
        """Guard that the function has, or has not, an attribute of its own of that name."""
        tx.install(make_guard(self.source, GuardBuilder.OWN_ATTRIBUTE, name))

    def slot_truth(self, tx: Tracing) -> bool:
        return True

    def reconstruct(self, emit: Emitting) -> E.Expr:
        return emit.load(self.source)


class Cell:
    """A symbolic cell: shared by the functions that close over one variable. `content` is None while it is unbound."""

    __slots__ = ("name", "content")

    def __init__(self, name: str, content: VariableTracker | None = None) -> None:
        self.name = name
        self.content = content

    def content_to_rebuild(self) -> VariableTracker | None:
        """What must be in the cell when it is made anew."""
        return self.content

    def forget(self) -> None:
        """Drop the content: the trace is over."""
        self.content = None


class CellVariable(VariableTracker):
    """A cell object on the stack (LOAD_CLOSURE)."""

    __slots__ = ("cell",)
    mutable = True
    filled_later = True

    def __init__(self, cell: Cell) -> None:
        super().__init__()
        self.cell = cell

    def python_type(self) -> type:
        return types.CellType

    def children(self) -> tuple[VariableTracker, ...]:
        content = self.cell.content_to_rebuild()
        return () if content is None else (content,)

    def reconstruct(self, emit: Emitting) -> E.Expr:
        return emit.cell(self.cell)


class InnerFunctionVariable(FunctionVariable):
    """A function made in the trace (lambda, comprehension, def). Rebuilt by MAKE_FUNCTION over rebuilt cells; only one whose
    globals are the frame's own can be."""

    __slots__ = ("function_code", "globals_of", "defaults", "cells", "annotations", "keyword_defaults")
    mutable = True

    def __init__(self, code: types.CodeType, globals_of: Any) -> None:
        super().__init__()
        self.function_code = code
        self.globals_of = globals_of
        self.defaults: list[VariableTracker] = []
        self.cells: list[CellVariable] = []
        self.annotations: VariableTracker | None = None  # a tuple of names and values in turn
        self.keyword_defaults: DictVariable | None = None

    def children(self) -> tuple[VariableTracker, ...]:
        others = (self.annotations, self.keyword_defaults)
        return (*self.defaults, *self.cells, *(each for each in others if each is not None))

    def reconstruct(self, emit: Emitting) -> E.Expr:
        emit.require_own_globals(self.globals_of, self.name())
        return E.Function(
            E.Const(self.function_code),
            defaults=E.Tuple(tuple(emit.value(d) for d in self.defaults)) if self.defaults else None,
            kwdefaults=emit.value(self.keyword_defaults) if self.keyword_defaults is not None else None,
            annotations=emit.value(self.annotations) if self.annotations is not None else None,
            closure=E.Tuple(tuple(emit.value(c) for c in self.cells)) if self.cells else None,
        )

    def code(self) -> types.CodeType:
        return self.function_code

    def default(self, tx: Tracing, index: int, count: int) -> VariableTracker | None:
        at = index - (count - len(self.defaults))
        return self.defaults[at] if at >= 0 else None

    def keyword_default(self, tx: Tracing, name: str) -> VariableTracker | None:
        if self.keyword_defaults is None:
            return None
        return self.keyword_defaults.look_up(tx, Key(tx, ConstantVariable(name)))

    def slot_truth(self, tx: Tracing) -> bool:
        return True


class BuiltinVariable(VariableTracker):
    """A builtin function or type of Python, by identity. What it does with symbolic values is `rules.builtins`."""

    __slots__ = ("fn",)

    def __init__(self, fn: Any, source: Source | None, guards: Provenance = NO_GUARDS) -> None:
        super().__init__(source, guards)
        self.fn = fn

    def python_type(self) -> type:
        return type(self.fn)

    def slot_truth(self, tx: Tracing) -> bool:
        return True

    def reconstruct(self, emit: Emitting) -> E.Expr:
        return emit.load(self.source) if self.source is not None else E.Const(self.fn)

    def as_key(self, tx: Tracing) -> Any:
        return self.fn

    def known_object(self) -> tuple[Any, ...]:
        return (self.fn,)

    def name(self) -> str:
        return getattr(self.fn, "__qualname__", repr(self.fn))

    def getattr(self, tx: Tracing, name: str) -> VariableTracker:
        """The name of a function, which nobody can change where it is written in C."""
        if name in ("__name__", "__qualname__") and type(self.fn) in NAMED:
            if type(self.fn) is types.FunctionType and self.source is not None:
                return tx.lazily(getattr(self.fn, name), AttrSource(self.source, name))
            return ConstantVariable(getattr(self.fn, name), guards=self.guards)
        return super().getattr(tx, name)

    def call_function(
        self, tx: Tracing, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
    ) -> VariableTracker:
        return tx.call(self, args, kwargs)


NAMED = (
    types.FunctionType,
    types.BuiltinFunctionType,
    types.MethodDescriptorType,
    types.WrapperDescriptorType,
    types.MethodWrapperType,
)
BUILTINS["sorted"] = BuiltinVariable(sorted, None)
WITHOUT_SOURCE[type] = lambda cls: BuiltinVariable(cls, None)


class TorchFunctionVariable(BuiltinVariable):
    """A torch function that a graph may call."""

    __slots__ = ()


class BoundMethodVariable(VariableTracker):
    """`value.name` where value is a list, tuple or constant: rebuilt by loading the attribute again."""

    __slots__ = ("owner", "name")

    def __init__(self, owner: VariableTracker, name: str) -> None:
        super().__init__(None, VariableTracker.propagate(owner))
        self.owner = owner
        self.name = name

    def python_type(self) -> type:
        return types.BuiltinMethodType

    def children(self) -> tuple[VariableTracker, ...]:
        return (self.owner,)

    def call_function(
        self, tx: Tracing, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
    ) -> VariableTracker:
        return self.owner.call_method(tx, self.name, args, kwargs)

    def reconstruct(self, emit: Emitting) -> E.Expr:
        return E.Attr(emit.value(self.owner), self.name)


class OptimizedVariable(VariableTracker):
    """A function that was optimized by itself: calling it is calling what it wraps. Always rebuilt from its source."""

    __slots__ = ("inner",)
    mutable = True
    source: Source

    def __init__(self, inner: VariableTracker, source: Source, guards: Provenance) -> None:
        super().__init__(source, guards)
        self.inner = inner

    def python_type(self) -> type:
        return OptimizedFunction

    def slot_truth(self, tx: Tracing) -> bool:
        return True

    def getattr(self, tx: Tracing, name: str) -> VariableTracker:
        return self.inner if name == "__wrapped__" else super().getattr(tx, name)

    def call_function(
        self, tx: Tracing, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
    ) -> VariableTracker:
        return tx.call(self.inner, args, kwargs)

    def reconstruct(self, emit: Emitting) -> E.Expr:
        return emit.load(self.source)


@wraps(types.FunctionType)
def wrap_function(tx: Tracing, value: types.FunctionType, source: Source) -> VariableTracker:
    """A torch function written in Python is one node, guarded by identity; a user's is inlined, guarded by its code
    (decision 8); what may not be inlined is known by identity only, so that a break can name it."""
    made: VariableTracker | None = marked(tx, value, source)
    if made is not None:
        return made
    if tx.torch_kind(value) is not None:
        made = TorchFunctionVariable(value, source)
        made.make_guards(tx, GuardBuilder.ID_MATCH)
    elif tx.may_inline(value):
        made = UserFunctionVariable(value, source)
        made.make_guards(tx, GuardBuilder.TYPE_MATCH, GuardBuilder.FUNCTION_MATCH)
    elif value.__code__.co_qualname in TAGGING and value.__module__ == "torch._dynamo.mutation_guard":
        made = BuiltinVariable(value, source)
        made.make_guards(tx, GuardBuilder.ID_MATCH)
        (cell,) = value.__closure__ or ()
        made = tx.wrap(cell.cell_contents, CellSource(source, 0)).realize(tx)
    else:
        made = BuiltinVariable(value, source)
        made.make_guards(tx, GuardBuilder.ID_MATCH)
    return made


#: methods that torch.compile, once it has run, puts before those of nn.Module: they do the same, and number the instance for its own use
TAGGING = tuple(f"install_generation_tagging_init.<locals>.patched_{name}" for name in ("init", "setstate"))

#: what functions that were made with pybind11 are bound to
PYBIND_RECORD = type(torch._C._accelerator_getAccelerator.__self__)


@wraps(types.BuiltinFunctionType)
def wrap_builtin(tx: Tracing, value: types.BuiltinFunctionType, source: Source) -> VariableTracker:
    """A function of an extension module; a builtin method bound to a user's object is opaque."""
    if tx.torch_kind(value) is not None:
        made: VariableTracker = TorchFunctionVariable(value, source)
    elif value.__self__ is None or type(value.__self__) in (types.ModuleType, PYBIND_RECORD):
        made = BuiltinVariable(value, source)
    elif value is object.__new__ or value is BaseException.__new__:
        made = BuiltinVariable(value, source)
    else:
        return wrap_opaque(tx, value, source)
    made.make_guards(tx, GuardBuilder.BUILTIN_MATCH)
    return made


@wraps(types.MethodDescriptorType, types.WrapperDescriptorType)
def wrap_descriptor(tx: Tracing, value: Any, source: Source) -> VariableTracker:
    """`torch.Tensor.add` and its like, taken from the type."""
    made = (TorchFunctionVariable if tx.torch_kind(value) is not None else BuiltinVariable)(value, source)
    made.make_guards(tx, GuardBuilder.BUILTIN_MATCH)
    return made


@wraps(OptimizedFunction)
def wrap_optimized(tx: Tracing, value: Any, source: Source) -> VariableTracker:
    """Decision 30: an optimized function met while tracing is unwrapped and inlined; a disabled one breaks the graph."""
    opaque = wrap_opaque(tx, value, source)
    wrapped = AttrSource(source, "__wrapped__")
    if value.ctx is None:
        made = DisabledVariable(value.__wrapped__, source)
        made.make_guards(tx, GuardBuilder.ID_MATCH)
        return made
    return OptimizedVariable(tx.lazily(value.__wrapped__, wrapped), source, opaque.guards)
