"""Backend "inductor": torch's compiler. It is imported when it is first used, or configured."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, get_origin

import torch
import torch.fx

from ..exc import InvalidBackend
from .registry import CompilerFn, nearest, register_backend


def configure(mode: str | None, options: dict[str, Any] | None) -> CompilerFn:
    """Inductor with the options that a mode stands for, or with `options` (names of torch._inductor.config; `-` is `_`).

    Raises InvalidBackend for a mode or option that there is not, and for a value of another type.
    """
    return partial(inductor, patches=checked(_of_mode(mode) if mode is not None else options or {}))


def _of_mode(mode: str) -> dict[str, Any]:
    from torch._inductor import list_mode_options

    modes = list_mode_options()
    if mode not in modes:
        raise InvalidBackend(f"backend 'inductor' has no mode {mode!r}; {nearest(mode, modes)}")
    found: dict[str, Any] = modes[mode]
    return found


def checked(options: dict[str, Any]) -> dict[str, Any]:
    """The options by their names in inductor's configuration. Raises InvalidBackend."""
    from torch._inductor import config

    known = config.get_config_copy()
    found = {}
    for name, value in options.items():
        key = name.replace("-", "_") if isinstance(name, str) else name
        if key not in known:
            raise InvalidBackend(f"backend 'inductor' has no option {name!r}; {_suggestion(key, known)}")
        kind = config.get_type(key)  # type: ignore[attr-defined]
        if get_origin(kind) is None and not isinstance(value, kind):
            raise InvalidBackend(
                f"option {name!r} of backend 'inductor' takes {type(known[key]).__name__}, not "
                f"{type(value).__name__} ({value!r})"
            )
        found[key] = value
    return found


def _suggestion(name: object, known: dict[str, Any]) -> str:
    text = nearest(name, known)
    return text if text.startswith("did") else "torch._inductor.list_options() has their names"


@register_backend(configure=configure)
def inductor(
    gm: torch.fx.GraphModule, example_inputs: list[torch.Tensor], patches: dict[str, Any] | None = None
) -> Callable[..., Any]:
    """Kernels for the graph and for its backward pass: C++ on the CPU (a C++ compiler is needed), Triton on GPUs.

    patches: options that differ from inductor's configuration
    """
    from torch._inductor.compile_fx import compile_fx

    compiled: Callable[..., Any] = compile_fx(gm, example_inputs, config_patches=patches or None)
    return compiled
