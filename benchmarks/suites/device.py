"""The simulated accelerator. Importing it makes it the process's accelerator: the runner gives the suite a process of its own."""

from __future__ import annotations

from functools import partial

import torch

from benchmarks.workloads import Case, add, workload


def chain(x):
    for _ in range(8):
        x = torch.relu(x * 2 - 1)
    return x


@workload("device", needs="minidynamo.openreg", cold=False)
def pointwise_chain_on_the_device() -> Case:
    import minidynamo.openreg  # noqa: F401

    return Case(chain, (torch.ones(256, device="openreg"),), peer=False, accuracy=False)


def fused(size: int) -> Case:
    """The chain of `size` elements, compiled for the device: `eager` runs its 24 operators one by one."""
    import minidynamo.openreg.fuse  # noqa: F401

    x = torch.ones(size, device="openreg")
    return Case(chain, (x,), backend="openreg_fuse", peer=False, accuracy=False)


for _size in (256, 65536):
    add("device", f"fused chain of {_size}", partial(fused, _size), needs="minidynamo.openreg", cold=False)


@workload("device", needs="minidynamo.openreg", cold=False)
def linear_layers_on_the_device() -> Case:
    import minidynamo.openreg  # noqa: F401

    model = torch.nn.Sequential(*(torch.nn.Linear(8, 8) for _ in range(4)))
    return Case(model.to("openreg"), (torch.ones(2, 8, device="openreg"),), peer=False, accuracy=False)
