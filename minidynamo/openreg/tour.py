"""The chain of one `torch.openreg.manual_seed(42)`, level by level, from a trace of the call itself."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import torch
from rich.console import Console
from rich.table import Table

from . import _C

LEVELS = {
    1: "user code",
    2: "Python API",
    3: "bridge",
    4: "core context",
    5: "hooks",
    6: "device",
}
NATIVE = "native/openreg"
HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Call:
    level: int
    depth: int  # how many traced calls are around it
    what: str
    where: str


def trace_call(action: Callable[[], Any]) -> list[Call]:
    """What ran in `action` of this package and of its native side, in order: Python by a profile function, C++ by the steps that
    it records. Level 4 is libtorch's and records nothing: it shows as the way from the bridge to a hook."""
    calls: list[Call] = []
    depth = 0

    def take_native_steps() -> None:
        reached: list[int] = []  # levels around
        for level, inner, file, line, name, device in _C._take_steps():
            del reached[inner:]
            core = sum(outer == 3 and below == 5 for outer, below in zip(reached, [*reached[1:], level]))
            if level == 5 and reached and reached[-1] == 3:
                via = (
                    "Context::lazyInitDevice"
                    if name == "init"
                    else f"Context::defaultGenerator(openreg:{device})"
                )
                calls.append(Call(4, depth + inner, f"at::{via}", "libtorch, ATen/Context.h"))
            reached.append(level)
            shown = name if device is None else f"{name}({device})"
            calls.append(Call(level, depth + inner + core, shown, f"{NATIVE}/{Path(file).name}:{line}"))

    def profile(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal depth
        take_native_steps()
        own = Path(frame.f_code.co_filename).parent == HERE and frame.f_code is not trace_call.__code__
        if own and Path(frame.f_code.co_filename) != Path(__file__):
            if event == "call":
                where = (
                    f"minidynamo/openreg/{Path(frame.f_code.co_filename).name}:{frame.f_code.co_firstlineno}"
                )
                calls.append(Call(2, depth, frame.f_code.co_name, where))
                depth += 1
            elif event == "return":
                depth -= 1

    _C._take_steps()
    _C._record_steps(True)
    sys.setprofile(profile)
    try:
        action()
    finally:
        sys.setprofile(None)
        _C._record_steps(False)
    take_native_steps()
    return calls


def chain_table(text: str, action: Callable[[], Any]) -> Table:
    table = Table("level", "", "what runs", "where", title=f"{text}, from user code down to the device")
    table.add_row("1", LEVELS[1], text, "your program")
    for call in trace_call(action):
        table.add_row(
            str(call.level), LEVELS[call.level], f"{'  ' * (call.depth + 1)}{call.what}", call.where
        )
    return table


def device_table() -> Table:
    """Devices, their memory in bytes, and their generators."""
    names = ("device", "name", "used", "peak", "blocks", "total", "generator", "seed", "next number")
    table = Table(*names, title="devices")
    for index in range(torch.openreg.device_count()):
        stats = torch.openreg.memory_stats(index)
        generator = torch.openreg.default_generators()[index]
        state = generator.get_state()
        number = torch.randn(1, device=f"openreg:{index}").item()
        generator.set_state(state)
        table.add_row(
            f"openreg:{index}{' (current)' if index == torch.openreg.current_device() else ''}",
            torch.openreg.get_device_name(index),
            str(stats["allocated_bytes.all.current"]),
            str(stats["allocated_bytes.all.peak"]),
            str(stats["allocation.all.current"]),
            str(torch.openreg.mem_get_info(index)[1]),
            str(generator.device),
            str(generator.initial_seed()),
            f"{number:.4f}",
        )
    return table


def main(console: Console | None = None) -> int:
    """Print the tour; 0, or 1 with one line when there is no device."""
    console = console or Console(width=None if sys.stdout.isatty() else 110)
    if not torch.openreg.is_available():
        console.print("there is no openreg device (OPENREG_DEVICE_COUNT=0)")
        return 1
    console.print(chain_table("torch.openreg.manual_seed(42)", lambda: torch.openreg.manual_seed(42)))
    first = torch.randn(3, device="openreg")
    torch.openreg.manual_seed(42)
    again = torch.randn(3, device="openreg")
    on_cpu = torch.randn(3, generator=torch.Generator().manual_seed(42))
    equal = (
        "equal" if torch.equal(first.cpu(), again.cpu()) and torch.equal(first.cpu(), on_cpu) else "NOT EQUAL"
    )
    numbers = ", ".join(f"{number:.4f}" for number in first.tolist())
    console.print(
        f"torch.randn(3, device='openreg'): {numbers}; once more and on the CPU: {equal}", highlight=False
    )
    console.print(device_table())
    return 0
