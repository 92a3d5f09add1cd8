"""Every method and attribute of tensors that needs no arguments, on tensors of many states: what metadata answers must not depend on
what is not guarded (a view, a leaf, an offset into memory)."""

from __future__ import annotations

import inspect

import pytest
import torch

from minidynamo import config
from tests.eager import check

STATES = (
    "T(4)",
    "T(8)[4:]",
    "T(4, requires_grad=True) * 1",
    "T(4, requires_grad=True)",
    "torch.nn.Parameter(T(4))",
    "T(4).add_(1)",
    "T(2, 4)[:, ::2]",
    "T(4).view(2, 2).t()",
    "torch.zeros(0)",
    "torch.tensor(3.0)",
    "T(4).long()",
    "T(4) > 2",
    "T(4) + 1j",
    "T(2, 3, 4)",
    "T(1, 2, 3, 4).to(memory_format=torch.channels_last)",
)
ADDRESSES = {"__hash__", "_cdata", "const_data_ptr", "data_ptr"}  # differ between any two tensors
NOT_RUN = {
    "backward": "frees what the next call needs",
    "__reduce_ex__": "names storages by their address",
    "__setstate__": "needs an argument",
    "share_memory_": "opens files",
    "_typed_storage": "objects without equality",
    "_neg_view": "makes tensors whose data cannot be printed",
    "_rev_view_func_unsafe": "the error's text depends on how the method was loaded",
    "apply_": "the error's text depends on how the method was loaded",
}
NAMES = [name for name in sorted(dir(torch.Tensor)) if name not in {*ADDRESSES, *NOT_RUN}]
FEW = (
    "shape dtype is_leaf is_contiguous storage_offset stride dim numel _is_view _version grad requires_grad T "
    "itemsize type element_size"
).split()


def compare(name: str) -> None:
    is_method = callable(getattr(torch.Tensor, name, None))
    source = f"def f(x):\n    return x + 0, x.{name}{'()' if is_method else ''}, x\n"
    with config.patch(cache_size_limit=100, verify=False):
        check(source, *[f"f({state})" for state in STATES])


def test_the_names_are_those_of_tensors():
    assert len(NAMES) > 700 and set(FEW) <= set(NAMES)
    assert inspect.getattr_static(torch.Tensor, "shape") is not None


@pytest.mark.parametrize("name", FEW)
@pytest.mark.filterwarnings("ignore")
def test_metadata_that_programs_ask_for(name):
    compare(name)


@pytest.mark.nightly
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.filterwarnings("ignore")
def test_every_method_and_attribute(name):
    compare(name)
