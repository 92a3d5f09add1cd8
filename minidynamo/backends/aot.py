"""Backend "aot_eager": forward and backward through AOTAutograd, both run operator by operator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.fx

from ..cache import OptimizedFunction
from .registry import register_backend


@register_backend
def aot_eager(gm: torch.fx.GraphModule, example_inputs: list[torch.Tensor]) -> Callable[..., Any]:
    """The functional graphs that AOTAutograd makes of `gm`, as they are. It shows what a compiler below AOTAutograd gets."""
    from torch._functorch.aot_autograd import aot_module_simplified
    from torch._functorch.partitioners import min_cut_rematerialization_partition

    compiled: Callable[..., Any] = aot_module_simplified(
        gm,
        example_inputs,
        fw_compiler=as_it_is,
        bw_compiler=as_it_is,
        partition_fn=min_cut_rematerialization_partition,
        keep_inference_input_mutations=True,
    )
    return compiled


def as_it_is(gm: torch.fx.GraphModule, example_inputs: list[Any]) -> Callable[..., Any]:
    """AOTAutograd's calling convention: one list of inputs, which the callee may empty. What runs inside is not captured
    again, wherever the program calls backward()."""
    run = OptimizedFunction(gm.forward, None)

    def boxed(inputs: list[Any]) -> Any:
        given = list(inputs)
        inputs.clear()
        return run(*given)

    boxed._boxed_call = True  # type: ignore[attr-defined]
    return boxed
