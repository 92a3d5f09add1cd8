"""The backend registry: names to backends, and what counts as one."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.fx

from ..exc import InvalidBackend

CompilerFn = Callable[[torch.fx.GraphModule, list[torch.Tensor]], Callable[..., Any]]


@dataclass(frozen=True, slots=True)
class Backend:
    """`compiler_fn(gm, example_inputs)` returns a callable that takes the graph inputs positionally and returns a tuple or
    list of the graph's outputs. `name` is for reports; equality and hash are those of `compiler_fn`'s identity."""

    name: str
    compiler_fn: CompilerFn


_REGISTRY: dict[str, Backend] = {}


def register_backend(compiler_fn: CompilerFn | None = None, *, name: str | None = None) -> Any:
    """Make `compiler_fn` known by a name (its own by default). Usable as a decorator, with or without arguments.

    Raises InvalidBackend for something that cannot be called, or a name that is taken by another backend.
    """
    if compiler_fn is None:
        return lambda fn: register_backend(fn, name=name)
    if not callable(compiler_fn):
        raise InvalidBackend(f"register_backend takes a callable, not {type(compiler_fn).__name__}")
    name = name or getattr(compiler_fn, "__name__", None)
    if not name:
        raise InvalidBackend("register_backend: the callable has no __name__; pass name=...")
    taken = _REGISTRY.get(name)
    if taken is not None and taken.compiler_fn is not compiler_fn:
        raise InvalidBackend(f"register_backend: the name {name!r} is taken by {taken.compiler_fn!r}")
    _REGISTRY[name] = Backend(name, compiler_fn)
    return compiler_fn


def list_backends() -> list[str]:
    """Names of the registered backends, sorted."""
    return sorted(_REGISTRY)


def lookup_backend(backend: str | CompilerFn) -> Backend:
    """The backend of a name or callable. Raises InvalidBackend with the nearest name otherwise."""
    if isinstance(backend, str):
        found = _REGISTRY.get(backend)
        if found is None:
            near = difflib.get_close_matches(backend, _REGISTRY, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"registered are {', '.join(list_backends())}"
            raise InvalidBackend(
                f"no backend named {backend!r}; {hint} (or pass a callable `(gm, example_inputs)`)"
            )
        return found
    if not callable(backend):
        raise InvalidBackend(
            f"backend must be a name or a callable, not {type(backend).__name__} ({backend!r})"
        )
    return Backend(getattr(backend, "__name__", type(backend).__name__), backend)
