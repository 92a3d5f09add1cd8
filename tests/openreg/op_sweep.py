"""torch's op database on the device against the CPU: results, and gradients where the operator has them."""

from __future__ import annotations

import itertools
from typing import Any

import torch
import torch.utils._pytree as pytree

SAMPLES = 4
# Operators whose results are not defined by their inputs: what memory holds.
UNDEFINED = {
    "empty",
    "empty_like",
    "empty_permuted",
    "empty_strided",
    "new_empty",
    "new_empty_strided",
    "resize_",
}


def operators() -> list[Any]:
    """The operators of the database that take float32 on the CPU, sorted."""
    from torch.testing._internal.common_methods_invocations import op_db

    return sorted((op for op in op_db if torch.float32 in op.supported_dtypes("cpu")), key=full_name)


def full_name(op: Any) -> str:
    return f"{op.name}.{op.variant_test_name}" if op.variant_test_name else op.name


def is_dense(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.layout == torch.strided


def to_device(tree: Any, device: str) -> Any:
    def move(value: Any) -> Any:
        if is_dense(value):
            return value.detach().to(device).requires_grad_(value.requires_grad)
        if value in ("cpu", torch.device("cpu")) and isinstance(value, (str, torch.device)):
            return torch.device(device)
        return value

    return pytree.tree_map(move, tree)


def scalar(outputs: list[torch.Tensor]) -> list[torch.Tensor]:
    return [x.abs().sum() if x.is_complex() else x.sum() for x in outputs]


def tensors(tree: Any, *, differentiable: bool) -> list[torch.Tensor]:
    leaves = [x for x in pytree.tree_leaves(tree) if is_dense(x)]
    return [x for x in leaves if x.requires_grad] if differentiable else leaves


def difference(op: Any, device: str = "openreg") -> tuple[int, str]:
    """(samples compared, first difference or ""). Samples that the CPU itself refuses are not counted."""
    count = 0
    grads = op.supports_autograd
    for sample in itertools.islice(op.sample_inputs("cpu", torch.float32, requires_grad=grads), SAMPLES):
        arguments = ((sample.input, *sample.args), sample.kwargs)
        moved = to_device(arguments, device)
        torch.manual_seed(0)
        try:
            expected = op(*arguments[0], **arguments[1])
        except Exception:  # an operator that needs other hardware or a library says so in many ways
            continue
        torch.manual_seed(0)
        try:
            got = op(*moved[0], **moved[1])
            compare_values(op, expected, got, device)
            if grads:
                compare_gradients(arguments, expected, moved, got)
        except (RuntimeError, NotImplementedError, AssertionError, TypeError, ValueError) as error:
            lines = str(error).strip().splitlines()
            return count, f"{type(error).__name__}: {lines[0] if lines else ''}"
        count += 1
    return count, ""


def compare_values(op: Any, expected: Any, got: Any, device: str) -> None:
    left, right = pytree.tree_leaves(expected), pytree.tree_leaves(got)
    assert len(left) == len(right)
    for x, y in zip(left, right):
        if not is_dense(x) or op.name in UNDEFINED:
            continue
        assert y.device.type == device, f"the result is on {y.device}"
        torch.testing.assert_close(y.detach().cpu(), x.detach(), equal_nan=True, rtol=1e-4, atol=1e-4)


def compare_gradients(arguments: Any, expected: Any, moved: Any, got: Any) -> None:
    outputs, device_outputs = (tensors(tree, differentiable=True) for tree in (expected, got))
    inputs, device_inputs = (tensors(tree, differentiable=True) for tree in (arguments, moved))
    if not outputs or not inputs:
        return
    assert len(outputs) == len(device_outputs)
    try:
        wanted = torch.autograd.grad(scalar(outputs), inputs, allow_unused=True)
    except (RuntimeError, NotImplementedError):
        return
    for x, y in zip(wanted, torch.autograd.grad(scalar(device_outputs), device_inputs, allow_unused=True)):
        if x is not None and x.layout == torch.strided:
            torch.testing.assert_close(y.cpu(), x, equal_nan=True, rtol=1e-3, atol=1e-3)
