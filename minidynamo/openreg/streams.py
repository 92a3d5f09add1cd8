"""Streams and events. Work is in order and done when the call returns, so waiting never takes long; identities are real."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import torch

from .devices import DeviceLike, device, device_index
from .lazy import init

Stream = torch.Stream
Event = torch.Event


def current_stream(device: DeviceLike = None) -> torch.Stream:
    """The stream on which this thread's work for a device goes."""
    init()
    return torch.accelerator.current_stream(device_index(device))


def default_stream(device: DeviceLike = None) -> torch.Stream:
    """The stream that is current unless another one is set."""
    init()
    index = device_index(device)
    device_type = torch.accelerator.current_stream(index).device_type
    return torch.Stream(stream_id=0, device_index=index, device_type=device_type)


def set_stream(stream: torch.Stream) -> None:
    """Make `stream` current, and its device too."""
    torch.accelerator.set_stream(stream)


def stream(stream: torch.Stream | None) -> AbstractContextManager[Any]:
    """Context manager: `stream` and its device are current inside. None changes nothing."""
    return device(None) if stream is None else stream
