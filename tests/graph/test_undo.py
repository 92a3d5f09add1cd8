"""What a graph changed is put back when it raises."""

from __future__ import annotations

import pytest
import torch

import minidynamo
from minidynamo import compile_frame
from minidynamo.graph.undo import is_plain, put_back, saved
from minidynamo.translate import root

BASE = torch.arange(12.0).reshape(3, 4)
TENSORS = {
    "contiguous": lambda: BASE.clone(),
    "transposed": lambda: BASE.clone().t(),
    "with gaps": lambda: BASE.clone()[:, ::2],
    "no elements": lambda: torch.empty(0, 3),
    "a number": lambda: torch.tensor(3),
    "bool": lambda: torch.tensor([True, False]),
    "half": lambda: BASE.half(),
    "complex": lambda: BASE.to(torch.complex64),
    "a parameter": lambda: torch.nn.Parameter(BASE.clone()),
    "requires grad": lambda: BASE.clone().requires_grad_(),
    "channels last": lambda: torch.ones(1, 2, 3, 4).to(memory_format=torch.channels_last),
    "nan": lambda: torch.tensor([float("nan"), -0.0]),
}


def facts(tensor):
    version = None if tensor.is_inference() else tensor._version
    place = tensor.stride(), tensor.data_ptr(), tensor.requires_grad, version
    return place, [str(value) for value in tensor.detach().reshape(-1).tolist()]


@pytest.mark.parametrize("inference", [False, True], ids=["", "inference"])
@pytest.mark.parametrize("name", TENSORS)
def test_contents_and_version(name, inference):
    with torch.inference_mode(inference):
        tensor = TENSORS[name]()
    before = facts(tensor)
    kept = saved(tensor)
    with torch.inference_mode():
        tensor.zero_()
    put_back(*kept)
    assert facts(tensor) == before


def undoes(fn, *args):
    """Whether what the graphs of a call change is undone when they raise."""
    found = []

    def translate(*given, **options):
        capture = root.translate(*given, **options)
        found.append(capture.undoes)
        return capture

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compile_frame, "translate", translate)
        minidynamo.optimize("eager")(fn)(*args)
    return found


def writes(x):
    try:
        return x.add_(1)
    finally:
        pass


def reads(x):
    try:
        return x + 1
    finally:
        pass


def writes_its_own(x):
    try:
        return (x + 1).add_(1)
    finally:
        pass


def draws(x):
    try:
        return torch.rand(2) + x
    finally:
        pass


def uncovered(x):
    return x.add_(1)


@pytest.mark.parametrize(
    "fn, expected",
    [(writes, True), (reads, False), (writes_its_own, False), (draws, True), (uncovered, False)],
)
def test_only_what_lies_in_a_block_and_changes_something_is_undone(fn, expected):
    assert undoes(fn, torch.ones(2)) == [expected]


@pytest.mark.parametrize(
    "other",
    [
        torch.ones(2).to_sparse(),
        torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]),
        torch.Generator(),
        torch.ones(2).as_subclass(type("Mine", (torch.Tensor,), {})),
    ],
    ids=["sparse", "nested", "generator", "subclass"],
)
def test_what_is_no_plain_tensor(other):
    assert not is_plain(other) and is_plain(torch.ones(2))
