"""Functions that a program calls inside captured code, and marks on functions and tensors. Outside of capture they are harmless.

torch's own marks hold too: `torch.compiler.disable`, `allow_in_graph`, `disallow_in_graph`, `assume_constant_result`, `graph_break`.
"""

from __future__ import annotations

import sys
import types
import warnings
import weakref
from collections.abc import Callable
from typing import Any, TypeVar

from .events import Where
from .exc import MinidynamoWarning, NotSupported

F = TypeVar("F", bound=Callable[..., Any])


def graph_break(msg: str = "") -> None:
    """End the graph here. Does nothing in plain Python. `msg`: taken as torch's takes it; for the reader."""


def is_compiling() -> bool:
    """True inside captured code (the trace sees a constant), False in plain Python."""
    return False


class Marked:
    """A set of objects by identity (equal code objects are not one function); it keeps none of them alive where it can."""

    def __init__(self) -> None:
        self._refs: dict[int, Any] = {}

    def add(self, value: Any) -> None:
        global _changes
        _changes += 1
        key = id(value)
        try:
            self._refs[key] = weakref.ref(value, lambda _: self._refs.pop(key, None))
        except TypeError:  # some descriptors of extension types, which live for ever
            self._refs[key] = value

    def discard(self, value: Any) -> None:
        self._refs.pop(id(value), None)

    def __contains__(self, value: Any) -> bool:
        return id(value) in self._refs


_changes = 0
_left_out = Marked()  # code of functions that `disable(fn, recursive=False)` marked
_allowed = Marked()
_disallowed = Marked()


def leave_out(code: types.CodeType) -> None:
    """A function with this code is neither captured nor traced as part of a caller."""
    _left_out.add(code)


def is_left_out(code: types.CodeType) -> bool:
    return code in _left_out


# --- what a graph may call ---------------------------------------------------------------------------------------------
CALLABLES = (types.FunctionType, types.BuiltinFunctionType, types.MethodDescriptorType)


def _marked(fn: Any, name: str, into: Marked, out_of: Marked) -> Any:
    if isinstance(fn, (list, tuple)):
        return [_marked(each, name, into, out_of) for each in fn]
    if not isinstance(fn, CALLABLES):
        raise TypeError(f"minidynamo.{name} takes a function, not {type(fn).__name__} ({fn!r})")
    out_of.discard(fn)
    into.add(fn)
    return fn


def allow_in_graph(fn: Any) -> Any:
    """Calls of `fn` become one node of the graph; what it does is not traced. A function, or a list of them; returns it.

    It must depend on its arguments only and return tensors: what else it reads is not guarded. Raises TypeError for anything
    that is not a function.
    """
    return _marked(fn, "allow_in_graph", _allowed, _disallowed)


def disallow_in_graph(fn: Any) -> Any:
    """Calls of `fn`, a torch function mostly, break the graph and run as plain Python. A function, or a list of them."""
    return _marked(fn, "disallow_in_graph", _disallowed, _allowed)


def in_graph(fn: Any) -> bool | None:
    """Whether a mark, ours or torch's, says that `fn` may be called in a graph (True) or may not (False); None: no mark."""
    key = id(fn)
    if key in _allowed._refs:
        return True
    if key in _disallowed._refs:
        return False
    theirs = sys.modules.get("torch._dynamo.trace_rules")
    if theirs is None:
        return None
    return _of_torch(theirs, key)


#: torch's marks, ids of functions: those that its users made (its own tables are about what its own tracer does).
_TORCHS = (("_disallowed_callable_ids", False), ("_allowed_callable_ids", True))


def changes() -> int:
    """A number that is another one when something has been marked, ours or torch's way."""
    theirs = sys.modules.get("torch._dynamo.trace_rules")
    added = [getattr(getattr(theirs, name, None), "function_ids", None) for name, _ in _TORCHS]
    return _changes + sum(len(ids) for ids in added if isinstance(ids, (set, frozenset, dict)))


def _of_torch(theirs: Any, key: int) -> bool | None:
    for name, answer in _TORCHS:
        added = getattr(getattr(theirs, name, None), "function_ids", None)
        if added and isinstance(added, (set, frozenset, dict)) and key in added:
            return answer
    return None


CONSTANT_MARK = "_dynamo_marked_constant"  # torch's attribute: one mark for both


def assume_constant_result(fn: F) -> F:
    """The result of `fn` is a constant: it is called once per compilation, and never checked. Returns `fn`.

    Its arguments must be constants, its result too: numbers, strings, dtypes and the like, or tuples of them.
    """
    if not isinstance(fn, types.FunctionType):
        raise TypeError(f"minidynamo.assume_constant_result takes a function, not {type(fn).__name__}")
    setattr(fn, CONSTANT_MARK, True)
    return fn


# --- sizes -------------------------------------------------------------------------------------------------------------
DYNAMIC_MARK = "_dynamo_dynamic_indices"  # torch's attribute of tensors that `mark_dynamic` got
STATIC = (
    "mark_dynamic has no effect: minidynamo compiles static shapes, so each new size compiles again "
    "(up to config.cache_size_limit); pad or bucket sizes to keep their number small"
)
_told: list[str] = []


def tell_static(where: Where | None = None) -> None:
    """Warn, once per process, that a mark for dynamic sizes has no effect: at `where`, or at the caller of our caller."""
    if _told:
        return
    _told.append(STATIC)
    if where is None:
        warnings.warn(STATIC, MinidynamoWarning, stacklevel=3)
    else:
        warnings.warn_explicit(STATIC, MinidynamoWarning, where.filename, where.line)


def mark_dynamic(t: Any, index: Any, *, hint_override: Any = None, min: Any = None, max: Any = None) -> None:
    """Ask for graphs in which that size of the tensor is not fixed. Shapes are static today: said in one warning, once."""
    _check_indices("mark_dynamic", t, index)
    tell_static()


def maybe_mark_dynamic(t: Any, index: Any) -> None:
    """Like `mark_dynamic`, where a static size is an allowed answer: it is the one that is given."""
    _check_indices("maybe_mark_dynamic", t, index)


def mark_static(t: Any, index: Any = None) -> None:
    """That size of the tensor, or all, is part of what a graph is compiled for. It always is."""
    if index is not None:
        _check_indices("mark_static", t, index)


def _check_indices(name: str, t: Any, index: Any) -> None:
    """Raises TypeError for what is no tensor or no index, IndexError for a dimension that it has not."""
    ndim = getattr(t, "ndim", None)
    if not isinstance(ndim, int):
        raise TypeError(f"minidynamo.{name} takes a tensor, not {type(t).__name__}")
    for each in index if isinstance(index, (list, tuple)) else (index,):
        if type(each) is not int:
            raise TypeError(f"minidynamo.{name} takes an int or a list of them, not {type(each).__name__}")
        if not -ndim <= each < ndim:
            raise IndexError(f"minidynamo.{name}: no dimension {each} in a tensor of {ndim}")


# --- what is not there -------------------------------------------------------------------------------------------------
ABSENT: dict[str, str] = {
    "mark_unbacked": "shapes are static, and each size is known while capturing",
    "nonstrict_trace": "use minidynamo.allow_in_graph",
    "export": "use torch.export.export",
    "precompile": "call the function once with the inputs of production; torch's graph caches serve the next process",
}


def _absent(name: str, instead: str) -> Callable[..., Any]:
    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise NotSupported(f"minidynamo.{name} is not supported: {instead}")

    refuse.__name__ = refuse.__qualname__ = name
    refuse.__doc__ = f"Not supported: {instead}. Raises NotSupported."
    return refuse


mark_unbacked, nonstrict_trace, export, precompile = (_absent(*row) for row in ABSENT.items())
