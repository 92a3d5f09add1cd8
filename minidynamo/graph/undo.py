"""A graph that raises in the middle has written into tensors and drawn random numbers. Where its frame is to be run again in plain
Python, so that the exception comes up where the program can handle it, that is put back first."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from .memory import any_may_be_input, inputs_of
from .output_graph import CapturedGraph, OutputGraph

Compiled = Callable[..., Any]


def can_undo(graph: OutputGraph) -> bool:
    """Whether `undoing` puts back all that the graph changes before it ends: the contents of plain tensors and the states of random
    generators. What autograd knows of a tensor cannot be put back."""
    if any_may_be_input(graph.linked):
        return False
    written = [graph.inputs[node] for node in inputs_of(graph.written)]
    if not all(is_plain(given.example) and not given.convert for given in written):
        return False
    return not graph.draws_random or has_all_states()


def is_plain(example: Any) -> bool:
    """A tensor whose contents `clone` and `copy_` take and put back."""
    return (
        type(example) in (torch.Tensor, torch.nn.Parameter)
        and example.layout is torch.strided
        and not example.is_nested
    )


def has_all_states() -> bool:
    """Whether the states of the accelerator's generators can be read and put back, if there is one."""
    accelerator = torch.accelerator.current_accelerator()
    return accelerator is None or hasattr(torch.get_device_module(accelerator.type), "set_rng_state_all")


def undoing(graph: CapturedGraph) -> Callable[[Compiled], Compiled]:
    """Makes of the compiled graph one that changes nothing when it raises. It costs a copy of each input that is written, and of the
    states of the generators if the graph draws random numbers. To be called before a backend changes the graph."""
    nodes = [node for node in graph.module.graph.nodes if node.op == "placeholder"]
    written = inputs_of(graph.written)
    places = [place for place, node in enumerate(nodes) if node in written]
    generators = [p for p, given in enumerate(graph.inputs) if isinstance(given.example, torch.Generator)]
    draws = graph.draws_random

    def run(compiled: Compiled, *inputs: Any) -> Any:
        contents = [saved(inputs[place]) for place in places]
        states = [(inputs[place], inputs[place].get_state()) for place in generators] if draws else []
        defaults = default_states() if draws else []
        try:
            return compiled(*inputs)
        except BaseException:
            for content in contents:
                put_back(*content)
            for generator, state in states:
                generator.set_state(state)
            for put, state in defaults:
                put(state)
            raise

    return lambda compiled: partial(run, compiled)


def saved(tensor: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, int | None]:
    """The tensor, a copy of it, and its version, which tells autograd whether it was changed."""
    version = None if tensor.is_inference() else tensor._version
    return tensor, tensor.detach().clone(), version


def put_back(tensor: torch.Tensor, content: torch.Tensor, version: int | None) -> None:
    with torch.inference_mode(), torch._C.DisableTorchFunction():
        tensor.copy_(content)
    if version is not None:
        torch._C._autograd._unsafe_set_version_counter((tensor,), (version,))  # type: ignore[attr-defined]


def default_states() -> list[tuple[Callable[[Any], Any], Any]]:
    """What puts back the states of all default generators, with what they are now."""
    states: list[tuple[Callable[[Any], Any], Any]] = [(torch.set_rng_state, torch.get_rng_state())]
    accelerator = torch.accelerator.current_accelerator()
    if accelerator is not None:
        module = torch.get_device_module(accelerator.type)
        states.append((module.set_rng_state_all, module.get_rng_state_all()))
    return states
