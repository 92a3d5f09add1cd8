"""The error against a run in fp64: outputs, gradients, inputs and buffers that the program changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from ..workloads import Case
from .subject import Subject, forget, optimized

ATOL = 1e-6
Observed = dict[str, list[torch.Tensor]]


def accuracy(subject: Subject) -> dict[str, Any] | None:
    """At most twice eager's own error plus 1e-6, for each kind of value. None where a case has no fp64 form.

    The three runs begin with the same values: every case is built anew and seeds its generator itself.
    """
    if not subject.workload.case().accuracy:
        return None
    exact = observed(subject.workload.case(), lambda case: case.fn, torch.float64)
    eager = observed(subject.workload.case(), lambda case: case.fn)
    forget()
    ours = observed(subject.workload.case(), optimized)
    figures: dict[str, Any] = {"ok": True, "error": 0.0, "eager_error": 0.0, "kinds": {}}
    for kind, values in exact.items():
        error, own = largest(values, ours[kind]), largest(values, eager[kind])
        if values:
            figures["kinds"][kind] = {"values": len(values), "error": error, "eager_error": own}
        figures["ok"] &= error <= 2 * own + ATOL
        if error >= figures["error"]:
            figures["error"], figures["eager_error"] = error, own
    return figures


def observed(case: Case, made: Callable[[Case], Any], dtype: torch.dtype | None = None) -> Observed:
    """What one call leaves behind, by kind. dtype: of all floating-point values, if not their own.

    A training step is run as it is. Else floating-point arguments and parameters ask for gradients, which come from the sum of the
    outputs; arguments are no leaves, so that a program may change them in place.
    """
    if isinstance(case.fn, nn.Module) and dtype is not None:
        case.fn.to(dtype)
    modules = case.fn if isinstance(case.fn, nn.Module) else nn.Module()
    fn = made(case)
    if case.step is not None:
        case.step(lambda *args: fn(*(cast(arg, dtype) for arg in args)))()
        return outcome([], modules, [], [])
    leaves: list[torch.Tensor] = []
    args = tuple(with_gradient(cast(arg, dtype), leaves) for arg in case.args)
    kwargs = {name: with_gradient(cast(value, dtype), leaves) for name, value in case.kwargs.items()}
    outputs = tensors(fn(*args, **kwargs))
    total = sum(value.sum() for value in outputs if value.requires_grad)
    if isinstance(total, torch.Tensor):
        total.backward()
    return outcome(outputs, modules, leaves, tensors([args, kwargs]))


def outcome(
    outputs: list[torch.Tensor], module: nn.Module, leaves: list[torch.Tensor], inputs: list[torch.Tensor]
) -> Observed:
    parameters = list(module.parameters())
    gradients = [value.grad for value in (*leaves, *parameters) if value.grad is not None]
    kinds = {
        "outputs": outputs,
        "gradients": gradients,
        "inputs": inputs,
        "parameters": parameters,
        "buffers": list(module.buffers()),
    }
    return {kind: [value.detach() for value in values] for kind, values in kinds.items()}


def cast(value: Any, dtype: torch.dtype | None) -> Any:
    """The argument in another precision: tensors in nested lists, tuples and dicts."""
    if dtype is None:
        return value
    if isinstance(value, torch.Tensor):
        return value.to(dtype) if value.is_floating_point() else value
    if type(value) in (list, tuple):
        return type(value)(cast(item, dtype) for item in value)
    if type(value) is dict:
        return {name: cast(item, dtype) for name, item in value.items()}
    return value


def with_gradient(value: Any, leaves: list[torch.Tensor]) -> Any:
    if isinstance(value, torch.Tensor) and value.is_floating_point():
        leaf = value.detach().clone().requires_grad_()
        leaves.append(leaf)
        return leaf.clone()
    return value


def tensors(value: Any) -> list[torch.Tensor]:
    """The tensors in nested containers and model outputs."""
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (tuple, list)):
        return [tensor for item in value for tensor in tensors(item)]
    return []


def largest(exact: list[torch.Tensor], got: list[torch.Tensor]) -> float:
    """The largest difference. Raises AssertionError when the two are not of the same shapes."""
    if [value.shape for value in exact] != [value.shape for value in got]:
        raise AssertionError(f"{len(got)} tensors or other shapes instead of {len(exact)}")
    return max(
        (float((a.double() - b.double()).abs().max()) for a, b in zip(exact, got, strict=True) if a.numel()),
        default=0.0,
    )
