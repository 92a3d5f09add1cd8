"""`OptimizedModule`: what `optimize(backend)(module)` gives. All state is the original module's; only calls are captured."""

from __future__ import annotations

import copy
import inspect
import types
from collections.abc import Callable, Iterator
from typing import Any

import torch

from .cache import OptimizeContext, OptimizedFunction
from .pycode.module_call import is_module_call, module_call_code


def forward_of(module: torch.nn.Module) -> types.FunctionType | None:
    """The function in which the class's `forward` is written, decorators taken off; None when it is not written in Python."""
    found = inspect.getattr_static(type(module), "forward", None)
    found = inspect.unwrap(found) if isinstance(found, types.FunctionType) else None
    return found if isinstance(found, types.FunctionType) else None


def call_function(module: torch.nn.Module) -> Callable[..., Any]:
    """A function that calls its first argument, with a code object that belongs to the module's `forward`."""
    forward = forward_of(module)
    if forward is None:
        return torch.nn.Module.__call__
    return types.FunctionType(module_call_code(forward.__code__), forward.__globals__)


class _BoundCall:
    """`__call__` as an attribute that is looked up, not as a function: no frame of ours stands between caller and module."""

    def __get__(self, module: Any, cls: type | None = None) -> Any:
        return self if module is None else types.MethodType(module._optimized, module._orig_mod)

    def __call__(self, module: OptimizedModule, /, *args: Any, **kwargs: Any) -> Any:
        """`OptimizedModule.__call__(module, ...)`."""
        return module._optimized(module._orig_mod, *args, **kwargs)


class OptimizedModule(torch.nn.Module):
    """A module whose calls are captured. Parameters, buffers, submodules, hooks, modes and every other attribute are those of
    `_orig_mod`, which can still be used by itself; keys of `state_dict` are the same.

    Methods of nn.Module that return the module return this one, so that `model.to(device).eval()` stays optimized.
    """

    _orig_mod: torch.nn.Module
    _optimized: Any

    def __init__(self, module: torch.nn.Module, ctx: OptimizeContext) -> None:
        # Not Module.__init__: there is no state of its own.
        object.__setattr__(self, "_orig_mod", module)
        object.__setattr__(self, "_ctx", ctx)
        fn = call_function(module)
        stands_in = is_module_call(fn.__code__)
        object.__setattr__(self, "_optimized", OptimizedFunction(fn, ctx, hides_frame=stands_in))

    __call__ = _BoundCall()  # type: ignore[assignment]

    @property
    def forward(self) -> Any:  # type: ignore[override]
        """The original's `forward`, captured, without hooks."""
        return OptimizedFunction(self._orig_mod.forward, self._ctx)

    # --- attributes ---------------------------------------------------------------------------------------------------
    def __getattr__(self, name: str) -> Any:
        if name in ("_orig_mod", "_ctx", "_optimized"):  # not made yet: copy and pickle ask for attributes
            raise AttributeError(name)
        return getattr(self._orig_mod, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._orig_mod, name, value)

    def __delattr__(self, name: str) -> None:
        delattr(self._orig_mod, name)

    def __dir__(self) -> list[str]:
        return sorted({*dir(self._orig_mod), "_orig_mod"})

    def __repr__(self) -> str:
        return f"OptimizedModule({self._orig_mod!r})"

    # --- containers ---------------------------------------------------------------------------------------------------
    def __bool__(self) -> bool:
        return bool(self._orig_mod)

    def __len__(self) -> int:
        return len(self._orig_mod)  # type: ignore[arg-type]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._orig_mod)  # type: ignore[call-overload, no-any-return]

    def __getitem__(self, key: Any) -> Any:
        return self._orig_mod[key]  # type: ignore[index]

    def __setitem__(self, key: Any, value: Any) -> None:
        self._orig_mod[key] = value  # type: ignore[index]

    def __delitem__(self, key: Any) -> None:
        del self._orig_mod[key]  # type: ignore[attr-defined]

    def __contains__(self, item: Any) -> bool:
        return item in self._orig_mod  # type: ignore[operator]

    # --- copies -------------------------------------------------------------------------------------------------------
    def __deepcopy__(self, memo: dict[int, Any]) -> OptimizedModule:
        return OptimizedModule(copy.deepcopy(self._orig_mod, memo), self._ctx)

    def __copy__(self) -> OptimizedModule:
        return OptimizedModule(copy.copy(self._orig_mod), self._ctx)

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        return OptimizedModule, (self._orig_mod, self._ctx)


def _passed_on(name: str) -> Callable[..., Any]:
    def method(self: OptimizedModule, /, *args: Any, **kwargs: Any) -> Any:
        result = getattr(self._orig_mod, name)(*args, **kwargs)
        return self if result is self._orig_mod else result

    method.__name__ = name
    method.__qualname__ = f"OptimizedModule.{name}"
    method.__doc__ = f"`_orig_mod.{name}`."
    return method


def _reader(name: str) -> Callable[[OptimizedModule], Any]:
    return lambda self: getattr(self._orig_mod, name)


def _pass_on() -> None:
    """What nn.Module has, the original has too, perhaps with a meaning of its own."""
    for name, value in vars(torch.nn.Module).items():
        if name.startswith("__") or name in vars(OptimizedModule):
            continue
        method = isinstance(value, types.FunctionType)
        setattr(OptimizedModule, name, _passed_on(name) if method else property(_reader(name)))


_pass_on()
