"""MINIDYNAMO_VERIFY=1: a freshly compiled frame without effects is run beside plain Python, and the results compared."""

from __future__ import annotations

import types
from typing import Any

import torch

from .cache import RERUN
from .exc import InternalError
from .graph.wrappers import is_wrapper_class
from .guards.check_fn import flat_names
from .sources import FrameValues
from .static_access import instance_dict

VARARGS, VARKEYWORDS = 0x04, 0x08


def call_with(code: types.CodeType, values: FrameValues) -> Any:
    """Run `code` as a function on the values of a frame that has its signature."""
    fn = types.FunctionType(code, values.globals, closure=values.closure if code.co_freevars else None)
    names = iter(flat_names(code))
    args = [values.locals[next(names)] for _ in range(code.co_argcount)]
    kwargs = {name: values.locals[name] for name in (next(names) for _ in range(code.co_kwonlyargcount))}
    if code.co_flags & VARARGS:
        args += values.locals[next(names)]
    if code.co_flags & VARKEYWORDS:
        kwargs |= values.locals[next(names)]
    return fn(*args, **kwargs)


def compare_first_run(
    original: types.CodeType, made: types.CodeType, values: FrameValues, covered: bool
) -> None:
    """Raises InternalError naming the first difference. A frame that raises in plain Python must ask to be run again.

    covered: an exception of the graph may have a handler in the program

    Only for frames without effects and random numbers: both codes are run here, and once more by the program.
    """
    got = call_with(made, values)
    try:
        want = call_with(original, values)
    except Exception as error:
        if got is not RERUN:
            raise InternalError(
                f"plain Python raises {type(error).__name__}, captured code returns {describe(got)}"
            ) from error
        return
    if got is RERUN and covered:
        return
    if got is RERUN:
        raise InternalError(f"the graph raises, plain Python returns {describe(want)}")
    difference = differs(want, got, "the result")
    if difference is not None:
        raise InternalError(f"captured code and plain Python differ: {difference}")


def describe(value: Any) -> str:
    """Type, and shape for a tensor; never data."""
    with torch._C.DisableTorchFunctionSubclass():
        if isinstance(value, torch.Tensor) and not value.is_nested:
            return f"a {type(value).__name__} {value.dtype} {tuple(value.shape)}"
    return f"a {type(value).__name__}"


def differs(want: Any, got: Any, where: str) -> str | None:
    """The first difference in words, or None. Tensors compare by metadata and values, containers by items, the rest by type
    and identity or value where the type's own `==` runs no user code."""
    if type(want) is not type(got):
        return f"{where} is {describe(want)} in plain Python, {describe(got)} captured"
    if isinstance(want, torch.Tensor):
        with torch._C.DisableTorchFunctionSubclass():  # which is the program's
            return _tensors(want, got, where)
    if isinstance(want, (list, tuple)):
        if len(want) != len(got):
            return f"{where} has {len(want)} items in plain Python, {len(got)} captured"
        found = (differs(w, g, f"{where}[{i}]") for i, (w, g) in enumerate(zip(want, got)))
        return next((text for text in found if text is not None), None)
    if (
        type(want) in (int, str, bytes, bool)
        and want != got
        or type(want) is float
        and repr(want) != repr(got)
    ):
        return f"{where} is {want!r} in plain Python, {got!r} captured"
    return None


def _tensors(want: torch.Tensor, got: torch.Tensor, where: str) -> str | None:
    if want.is_nested != got.is_nested:
        return f"{where} is nested in one of plain Python and captured code"
    if want.is_nested:  # has no shape: its parts are compared
        return differs(list(want.detach().unbind()), list(got.detach().unbind()), f"unbind() of {where}")
    for name in ("dtype", "device", "shape", "requires_grad", "layout"):
        if getattr(want, name) != getattr(got, name):
            return (
                f"{name} of {where} is {getattr(want, name)} in plain Python, {getattr(got, name)} captured"
            )
    if want.layout is torch.strided and want.stride() != got.stride():
        return f"stride of {where} is {want.stride()} in plain Python, {got.stride()} captured"
    if is_wrapper_class(
        type(want)
    ):  # what it is made of says more than its operators, which are the program's
        mine, theirs = instance_dict(got) or {}, instance_dict(want) or {}
        if mine.keys() != theirs.keys():
            return f"{where} has attributes {sorted(theirs)} in plain Python, {sorted(mine)} captured"
        found = (differs(theirs[name], mine[name], f"{where}.{name}") for name in theirs)
        return next((text for text in found if text is not None), None)
    try:
        torch.testing.assert_close(got.detach(), want.detach(), equal_nan=True)
    except AssertionError as error:
        return f"{where}: {str(error).splitlines()[0]}"
    return None
