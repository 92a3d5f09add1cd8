"""The backend registry: names to backends, and what counts as one.

A name is looked up among minidynamo's own backends, then in torch's registry, then among the entry points of the
group `torch_dynamo_backends`. torch's registry is imported only for a name that is not ours.
"""

from __future__ import annotations

import dataclasses
import difflib
import inspect
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.fx

from ..exc import InvalidBackend
from . import others

CompilerFn = Callable[[torch.fx.GraphModule, list[torch.Tensor]], Callable[..., Any]]
Options = dict[str, Any]
#: (mode, options) -> the backend bound to them; raises InvalidBackend for what it does not know.
Configure = Callable[[str | None, Options | None], CompilerFn]


@dataclass(frozen=True, slots=True)
class Backend:
    """`compiler_fn(gm, example_inputs)` returns a callable that takes the graph inputs positionally and returns a tuple or
    list of the graph's outputs. `name` is for reports.

    needs_meta: it gets everything that torch's own compilers read (`contract.py`); False for one that runs the graph as it
    is, operator by operator
    configure: binds `mode` and `options`; without it they are handed to `compiler_fn` by name, if it takes them
    """

    name: str
    compiler_fn: CompilerFn
    needs_meta: bool = True
    tags: tuple[str, ...] = ()
    configure: Configure | None = None


_REGISTRY: dict[str, Backend] = {}


def register_backend(
    compiler_fn: CompilerFn | None = None,
    name: str | None = None,
    tags: Sequence[str] = (),
    *,
    needs_meta: bool = True,
    configure: Configure | None = None,
) -> Any:
    """Make `compiler_fn` known by a name (its own by default). Usable as a decorator, with or without arguments.

    tags: "debug" and "experimental" keep it out of `list_backends()`
    needs_meta, configure: see `Backend`

    Raises InvalidBackend for something that cannot be called, or a name that is taken by another backend.
    """
    if compiler_fn is None:
        return lambda fn: register_backend(fn, name, tags, needs_meta=needs_meta, configure=configure)
    if not callable(compiler_fn):
        raise InvalidBackend(f"register_backend takes a callable, not {type(compiler_fn).__name__}")
    name = name or getattr(compiler_fn, "__name__", None)
    if not name:
        raise InvalidBackend("register_backend: the callable has no __name__; pass name=...")
    taken = _REGISTRY.get(name)
    if taken is not None and taken.compiler_fn is not compiler_fn:
        raise InvalidBackend(f"register_backend: the name {name!r} is taken by {taken.compiler_fn!r}")
    _REGISTRY[name] = Backend(name, compiler_fn, needs_meta, tuple(tags), configure)
    return compiler_fn


def list_backends(exclude_tags: Collection[str] | None = ("debug", "experimental")) -> list[str]:
    """Every name that `optimize(name)` takes, sorted: own backends, torch's, entry points; not those with an excluded tag."""
    left_out = set(exclude_tags or ())
    own = [name for name, backend in _REGISTRY.items() if not left_out & set(backend.tags)]
    return sorted({*own, *others.torch_names(tuple(left_out)), *others.entry_point_names()})


def own_backends() -> list[Backend]:
    """The backends that are registered here, by name."""
    return [_REGISTRY[name] for name in sorted(_REGISTRY)]


def lookup_backend(backend: str | CompilerFn) -> Backend:
    """The backend of a name or callable. Raises InvalidBackend with the nearest name otherwise."""
    if isinstance(backend, Backend):
        return backend
    if isinstance(backend, str):
        return _REGISTRY.get(backend) or _elsewhere(backend)
    if isinstance(backend, type) or not callable(backend):
        kind = f"the class {backend.__name__}" if isinstance(backend, type) else type(backend).__name__
        raise InvalidBackend(f"backend must be a name or a callable, not {kind} ({backend!r})")
    return _own(backend) or Backend(
        getattr(backend, "__name__", type(backend).__name__),
        backend,
        needs_meta=getattr(backend, "needs_meta", True),
    )


def _own(compiler_fn: CompilerFn) -> Backend | None:
    """The registered backend of a function that is passed itself: it has the same properties."""
    return next((known for known in _REGISTRY.values() if known.compiler_fn is compiler_fn), None)


def _elsewhere(name: str) -> Backend:
    """A backend of torch or of an installed package."""
    found = others.of_torch(name) or others.of_entry_point(name)
    if found is None:
        known = sorted({*_REGISTRY, *others.torch_names(()), *others.entry_point_names()})
        raise InvalidBackend(
            f"no backend named {name!r}; {nearest(name, known)} (or pass a callable `(gm, example_inputs)`)"
        )
    if not callable(found):
        raise InvalidBackend(f"the backend named {name!r} is no callable but {type(found).__name__}")
    return Backend(name, found)


def nearest(name: object, known: Collection[str]) -> str:
    """`did you mean 'x'?`, or the list of what there is."""
    near = difflib.get_close_matches(str(name), list(known), n=1)
    return f"did you mean {near[0]!r}?" if near else f"known are {', '.join(known)}"


def with_options(
    backend: Backend, mode: str | None, options: Options | None
) -> tuple[Backend, dict[str, Any]]:
    """Bind `mode` and `options` to a backend that takes them; also what was given, which is part of the CompileKey.

    Raises InvalidBackend for both at once, for a backend that takes none, and for values that it does not know.
    """
    if mode is not None and not isinstance(mode, str):
        raise InvalidBackend(f"mode takes a str, not {type(mode).__name__} ({mode!r})")
    if options is not None and not isinstance(options, dict):
        raise InvalidBackend(f"options takes a dict, not {type(options).__name__} ({options!r})")
    mode, options = None if mode == "default" else mode, options or None
    if mode is not None and options is not None:
        raise InvalidBackend(
            f"mode={mode!r} and options={options!r} were both given; a mode is a set of options: give one of them "
            "(`torch._inductor.list_mode_options(mode)` says which options a mode sets)"
        )
    given = {k: v for k, v in (("mode", mode), ("options", options)) if v is not None}
    if not given:
        return backend, {}
    if backend.configure is not None:
        return dataclasses.replace(backend, compiler_fn=backend.configure(mode, options)), given
    parameters = _parameters(backend.compiler_fn)
    for name, value in given.items():
        if name not in parameters and "**" not in parameters:
            raise InvalidBackend(f"backend {backend.name!r} takes no {name}= (got {value!r}); leave it out")
    compiler_fn = backend.compiler_fn
    return dataclasses.replace(
        backend, compiler_fn=lambda gm, inputs: compiler_fn(gm, inputs, **given)
    ), given  # type: ignore[call-arg]


def _parameters(compiler_fn: CompilerFn) -> set[str]:
    """Names that it takes; "**" for any."""
    try:
        parameters = inspect.signature(compiler_fn).parameters.values()
    except (TypeError, ValueError):
        return set()
    return {"**" if p.kind is inspect.Parameter.VAR_KEYWORD else p.name for p in parameters}
