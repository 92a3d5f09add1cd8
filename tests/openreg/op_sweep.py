"""torch's op database on the device against the CPU: results, and gradients where the operator has them.

python -m tests.openreg.op_sweep            all operators: how many are equal, and what is with the others
python -m tests.openreg.op_sweep add sum    those whose name has one of these words in it
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator
from dataclasses import dataclass
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


class Mover:
    """Moves a sample to the device with whole storages, so that views stay views of the same memory."""

    def __init__(self, device: str) -> None:
        self.device = device
        self.storages: dict[tuple[int, torch.dtype], torch.Tensor] = {}

    def tensor(self, x: torch.Tensor) -> torch.Tensor:
        if x.is_conj() or x.is_neg() or x.untyped_storage().nbytes() % x.element_size():
            return x.detach().to(self.device).requires_grad_(x.requires_grad)
        key = x.untyped_storage().data_ptr(), x.dtype
        if key not in self.storages:
            count = x.untyped_storage().nbytes() // x.element_size()
            self.storages[key] = x.detach().as_strided((count,), (1,), 0).to(self.device)
        made = self.storages[key].as_strided(x.size(), x.stride(), x.storage_offset())
        return made.detach().requires_grad_(x.requires_grad)

    def value(self, value: Any, stays: bool) -> Any:
        if is_dense(value):
            return value if stays else self.tensor(value)
        if isinstance(value, (str, torch.device)) and value in ("cpu", torch.device("cpu")):
            return torch.device(self.device)
        return value


def arguments_of(sample: Any) -> Any:
    return (sample.input, *sample.args), sample.kwargs


def samples(op: Any, device: str) -> Iterator[tuple[Any, Any]]:
    """The first samples of an operator for the CPU, each as it is and moved to the device. What the database makes on the CPU for
    whatever device (indices to split at) stays there."""
    grads = op.supports_autograd
    on_cpu = itertools.islice(op.sample_inputs("cpu", torch.float32, requires_grad=grads), SAMPLES)
    try:
        made = op.sample_inputs(device, torch.float32, requires_grad=grads)
        there = [arguments_of(sample) for sample in itertools.islice(made, SAMPLES)]
    except (RuntimeError, NotImplementedError):  # it cannot be made there: a layout that the device has not
        there = []
    for sample, twin in itertools.zip_longest(on_cpu, there):
        leaves, form = pytree.tree_flatten(arguments_of(sample))
        placed, twin_form = pytree.tree_flatten(twin)
        stays = [is_dense(x) and x.is_cpu for x in placed] if form == twin_form else [False] * len(leaves)
        mover = Mover(device)
        moved = [mover.value(x, stay) for x, stay in zip(leaves, stays, strict=True)]
        yield arguments_of(sample), pytree.tree_unflatten(moved, form)


def scalar(outputs: list[torch.Tensor]) -> list[torch.Tensor]:
    return [x.abs().sum() if x.is_complex() else x.sum() for x in outputs]


def tensors(tree: Any, *, differentiable: bool) -> list[torch.Tensor]:
    leaves = [x for x in pytree.tree_leaves(tree) if is_dense(x)]
    return [x for x in leaves if x.requires_grad] if differentiable else leaves


@dataclass(slots=True)
class Found:
    """Of one operator: samples whose results are equal, samples that both refuse with the same words, the first difference or ""."""

    equal: int = 0
    refused: int = 0
    problem: str = ""


def difference(op: Any, device: str = "openreg") -> Found:
    """Compare the operator's samples, until one differs."""
    found = Found()
    for arguments, moved in samples(op, device):
        torch.manual_seed(0)
        expected, refusal = attempt(op, arguments)
        torch.manual_seed(0)
        got, its_refusal = attempt(op, moved)
        if refusal is not None and its_refusal is not None and words(refusal) == words(its_refusal):
            found.refused += 1
            continue
        try:
            if its_refusal is not None:
                raise its_refusal
            assert refusal is None, f"the CPU refuses: {words(refusal)}"
            compare_values(op, expected, got, device)
            if op.supports_autograd:
                compare_gradients(arguments, expected, moved, got)
        except Exception as error:
            found.problem = words(error)
            return found
        found.equal += 1
    return found


def attempt(op: Any, arguments: Any) -> tuple[Any, Exception | None]:
    """(result, None), or (None, what it raised)."""
    try:
        return op(*arguments[0], **arguments[1]), None
    except Exception as error:
        return None, error


def words(error: Exception | None) -> str:
    """Type and first line of the message."""
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0] if lines else ''}"


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


def sweep(chosen: dict[str, Any]) -> dict[str, Found]:
    return {name: difference(op) for name, op in chosen.items()}


def summary(results: dict[str, Found]) -> str:
    """What a sweep found, a line a kind, and a line for each operator that differs."""
    different = {name: found.problem for name, found in results.items() if found.problem}
    alike = [name for name, found in results.items() if not found.problem and not found.equal]
    equal = len(results) - len(different) - len(alike)
    lines = [
        f"{equal} of {len(results)} operators equal the CPU, forward and backward",
        f"{len(alike)} more are refused by both with the same error: {', '.join(alike) or 'none'}",
        f"{len(different)} differ",
        *(f"  {name}: {problem[:200]}" for name, problem in different.items()),
    ]
    return "\n".join(lines)


def main(words: list[str]) -> int:
    import minidynamo.openreg  # noqa: F401

    chosen = {full_name(op): op for op in operators()}
    results = sweep({name: op for name, op in chosen.items() if not words or any(w in name for w in words)})
    print(summary(results))
    return int(any(found.problem for found in results.values()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
