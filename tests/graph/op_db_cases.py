"""Calls of torch's operator database (`common_methods_invocations.op_db`): one program for each entry, variant and sample."""

from __future__ import annotations

import itertools
import linecache
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch


def database() -> Any:
    """The entries. The helper that some wrap around random operators in order to seed them is taken off: `run` seeds."""
    from torch.testing._internal import common_methods_invocations as source

    source.wrapper_set_seed = _unwrapped
    return source.op_db


def _unwrapped(op: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    return op(*args, **kwargs)


VARIANTS = ("function", "method", "inplace", "operator", "inplace_operator")
_OTHER_DTYPES = (torch.int64, torch.complex64, torch.bool, torch.float64)
_numbers = itertools.count()


@dataclass(frozen=True)
class Case:
    """One variant of an entry. `name` is `entry/variant`."""

    op: Any
    variant: str

    @property
    def name(self) -> str:
        return f"{self.op.full_name}/{self.variant}"


@dataclass
class Call:
    """One sample: what is passed to the program, and the program's text."""

    label: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    text: str


def cases(database: Any) -> Iterator[Case]:
    """Every entry with every variant that it has."""
    for op in database:
        for variant in VARIANTS:
            if variant == "function" or getattr(op, f"{variant}_variant") is not None:
                yield Case(op, variant)


def _target(case: Case) -> Any:
    return case.op.op if case.variant == "function" else getattr(case.op, f"{case.variant}_variant")


def _text(case: Case, sample: Any) -> str:
    names = ["x", *(f"a{i}" for i in range(len(sample.args)))]
    keywords = [f"{name}={name}_" for name in sample.kwargs]
    parameters = ", ".join([*names, *(f"{name}_" for name in sample.kwargs)])
    if isinstance(_target(case), type(torch.Tensor.add)):
        call = f"x.{_target(case).__name__}({', '.join([*names[1:], *keywords])})"
    else:
        call = f"op({', '.join([*names, *keywords])})"
    return f"def f({parameters}):\n    return {call}\n"


def calls(case: Case, floats: int = 3) -> Iterator[Call]:
    """The first samples in float32 (the very first also with a gradient where there is one), and one in another dtype."""
    op = case.op
    dtypes = set(op.dtypes)
    if not dtypes:  # not for the CPU
        return
    main = torch.float32 if torch.float32 in dtypes else sorted(dtypes, key=str)[0]
    wanted = [(main, False, floats)]
    if op.supports_autograd and not case.variant.startswith("inplace") and main.is_floating_point:
        wanted.append((main, True, 1))
    other = next((dtype for dtype in _OTHER_DTYPES if dtype in dtypes and dtype is not main), None)
    if other is not None:
        wanted.append((other, False, 1))
    for dtype, grad, count in wanted:
        torch.manual_seed(0)
        for index, sample in enumerate(itertools.islice(op.sample_inputs("cpu", dtype, grad), count)):
            if case.variant.endswith("operator") and (sample.args[1:] or sample.kwargs):
                continue
            label = f"{str(dtype).removeprefix('torch.')}{' grad' if grad else ''} {index}"
            yield Call(label, (sample.input, *sample.args), sample.kwargs, _text(case, sample))


def program(case: Case, call: Call) -> Callable[..., Any]:
    """A new function of the call's text, with a code object of its own."""
    filename = f"<op_db {case.name} {next(_numbers)}>"
    linecache.cache[filename] = (len(call.text), None, call.text.splitlines(keepends=True), filename)
    names = {"torch": torch, "op": _target(case), "__name__": "program"}
    exec(compile(call.text, filename, "exec"), names)
    return names["f"]


# --- what a call does ---------------------------------------------------------------------------------------


def copied(value: Any) -> Any:
    """Arguments for one run: tensors are copied with their strides and gradients."""
    if isinstance(value, torch.Tensor):
        with torch.no_grad():
            copy = value.detach().clone(memory_format=torch.preserve_format)
            if value.layout is torch.strided and copy.stride() != value.stride():
                copy = _with_strides(value.detach())
        if value.requires_grad:
            copy.requires_grad_()
        return (
            torch.nn.Parameter(copy, value.requires_grad) if isinstance(value, torch.nn.Parameter) else copy
        )
    if type(value) in (list, tuple):
        return type(value)(map(copied, value))
    if type(value) is dict:
        return {key: copied(item) for key, item in value.items()}
    return value


def _with_strides(value: torch.Tensor) -> torch.Tensor:
    size = value.untyped_storage().nbytes() // value.element_size()
    flat = torch.empty(size, dtype=value.dtype, device=value.device)
    flat.copy_(value.as_strided((size,), (1,), 0))
    return flat.as_strided(value.shape, value.stride(), value.storage_offset())


def described(value: Any, data: bool = True) -> Any:
    """What can be seen of a value, comparable by `same`."""
    if isinstance(value, torch.Tensor):
        strided = value.layout is torch.strided
        meta = (
            type(value).__name__,
            tuple(value.shape),
            value.stride() if strided else None,
            value.dtype,
            value.device,
            value.layout,
            value.requires_grad,
            value.is_leaf,
            value.is_conj(),
            value.is_neg(),
        )
        return ("tensor", meta, value.detach() if data else None)
    if isinstance(value, (list, tuple)):
        return (type(value).__name__, [described(item, data) for item in value])
    if isinstance(value, dict):
        return ("dict", [(key, described(item, data)) for key, item in value.items()])
    return (type(value).__name__, repr(value))


def same(left: Any, right: Any) -> bool:
    """Whether two descriptions are equal, tensors by their bits."""
    if isinstance(left, torch.Tensor):
        if left.layout is not torch.strided:
            left, right = left.to_dense(), right.to_dense()
        if left.is_complex():
            left, right = torch.view_as_real(left.resolve_conj()), torch.view_as_real(right.resolve_conj())
        return torch.equal(left, right) or torch.allclose(left, right, rtol=0, atol=0, equal_nan=True)
    if isinstance(left, (list, tuple)):
        return type(left) is type(right) and len(left) == len(right) and all(map(same, left, right))
    return bool(left == right)


def is_undefined(case: Case) -> bool:
    """Whether the data of the result is whatever the memory held."""
    return "empty" in case.op.name or case.op.name in ("resize_", "resize_as_")


class Failed(Exception):
    """What eager raises."""


def run(fn: Callable[..., Any], case: Case, call: Call) -> Any:
    """Description of the result and of the arguments afterwards."""
    args, kwargs = copied(call.args), copied(call.kwargs)
    torch.manual_seed(0)
    result = fn(*args, **{f"{name}_": value for name, value in kwargs.items()})
    data = not is_undefined(case)
    return described((result, args, kwargs), data)
