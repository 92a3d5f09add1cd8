"""Devices without an index: an operator that is given one works on the current device of its type, which is part of the state of
the thread. Metadata is computed for the device that is meant, and who uses it guards the current device."""

from __future__ import annotations

from typing import Any

import torch

from minidynamo.guards.state_reads import UNNUMBERED, current_device, is_one_device

from .fake import rebuild
from .meta_value import TensorMeta, named
from .symbolic import SymbolicMeta


def resolved(args: Any, kinds: set[str]) -> Any:
    """Arguments with the current index in every device of an accelerator that has none; their types are added to `kinds`."""

    def resolve(value: Any) -> Any:
        device = named(value)
        if device is None or is_one_device(device):
            return value
        index = current_device(device.type)
        if index < 0:
            return value
        kinds.add(device.type)
        return torch.device(device.type, index)

    return rebuild(args, resolve)


def unnamed(target: Any, args: Any, result: Any) -> set[str]:
    """Types of accelerators whose current device decides about a result though no argument says so: a default device without index,
    `x.cuda()`, `x.type("torch.cuda.FloatTensor")`. args: as `resolved` gives them."""
    accelerator = torch.accelerator.current_accelerator()
    known: set[Any] = set()
    kinds: set[str] = set()
    name = target if isinstance(target, str) else getattr(target, "__name__", "")

    def note(value: Any) -> Any:
        if type(value) is TensorMeta:
            known.add(value.device)
        elif type(value) is SymbolicMeta:
            known.add(value.samples[0].device)
        else:
            known.add(named(value))
        if accelerator is not None and type(value) is str and f".{accelerator.type}." in value:
            kinds.add(accelerator.type)
        return value

    def look(value: Any) -> Any:
        if type(value) is TensorMeta and value.device.type not in UNNUMBERED and value.device not in known:
            kinds.add(value.device.type)
        return value

    rebuild(args, note)
    rebuild(result, look)
    if accelerator is not None and name == accelerator.type:
        kinds.add(name)
    return kinds
