"""The simulated accelerator. Importing it makes it the process's accelerator: the runner gives the suite a process of its own."""

from __future__ import annotations

import torch

from benchmarks.workloads import Case, workload


@workload("device", needs="minidynamo.openreg", cold=False)
def pointwise_chain_on_the_device() -> Case:
    import minidynamo.openreg  # noqa: F401

    def chain(x):
        for _ in range(8):
            x = torch.relu(x * 2 - 1)
        return x

    return Case(chain, (torch.ones(256, device="openreg"),), peer=False, accuracy=False)


@workload("device", needs="minidynamo.openreg", cold=False)
def linear_layers_on_the_device() -> Case:
    import minidynamo.openreg  # noqa: F401

    model = torch.nn.Sequential(*(torch.nn.Linear(8, 8) for _ in range(4)))
    return Case(model.to("openreg"), (torch.ones(2, 8, device="openreg"),), peer=False, accuracy=False)
