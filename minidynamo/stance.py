"""`set_stance`: what happens to calls of optimized functions from now on, in the whole process.

| stance | |
|---|---|
| default | entries are used, and made where none fits |
| force_eager | plain Python; entries that exist are left alone |
| eager_on_recompile | entries are used; a call that fits none runs as plain Python |
| fail_on_recompile | entries are used; a call that fits none raises RecompileError with the cause |
| eager_then_compile | the first call of a function runs as plain Python, the next one compiles |

The stance that a program has set with `torch.compiler.set_stance` holds where no entry fits, unless this one is not the default.
"""

from __future__ import annotations

import difflib
import functools
import inspect
import sys
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from .cache import force_eager

P = ParamSpec("P")
R = TypeVar("R")

STANCES = ("default", "force_eager", "eager_on_recompile", "fail_on_recompile", "eager_then_compile")
OF_TORCH = {"aot_eager_then_compile": "eager_then_compile"}  # the nearest that there is
GENERATES = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
_current = "default"


def _set(stance: str) -> str:
    """Make `stance` the process's own. Returns the one before."""
    global _current
    before, _current = _current, stance
    force_eager(stance == "force_eager")
    return before


def at_miss() -> str:
    """The stance for a frame that no entry fits."""
    if _current != "default":
        return _current
    theirs = getattr(sys.modules.get("torch._dynamo.eval_frame"), "_stance", None)
    name = getattr(theirs, "stance", "default")
    name = OF_TORCH.get(name, name)
    return name if name in STANCES else "default"


class set_stance:
    """`set_stance(name)` holds until the next; `with set_stance(name):` for the block; `@set_stance(name)` in each call of the function.

    Raises ValueError for an unknown stance (with the nearest name) and for arguments of torch's that are not supported.
    """

    def __init__(
        self, stance: str = "default", *, skip_guard_eval_unsafe: bool = False, force_backend: Any = None
    ) -> None:
        stance = OF_TORCH.get(stance, stance)
        if stance not in STANCES:
            near = difflib.get_close_matches(stance, STANCES, n=1) if isinstance(stance, str) else []
            hint = f"did you mean {near[0]!r}?" if near else f"stances are {', '.join(STANCES)}"
            raise ValueError(f"minidynamo.set_stance: no stance {stance!r}; {hint}")
        if skip_guard_eval_unsafe:
            raise ValueError(
                "minidynamo.set_stance: skip_guard_eval_unsafe is not supported: guards are always checked"
            )
        if force_backend is not None:
            raise ValueError(
                "minidynamo.set_stance: force_backend is not supported; set minidynamo.config.backend before optimizing"
            )
        self.stance = stance
        self._outer: str | None = _set(stance)  # until it is used as a decorator or a manager
        self._before: list[str] = []

    def _outside(self) -> str:
        """The stance that is to come back."""
        outer, self._outer = self._outer, None
        return _current if outer is None else outer

    def __call__(self, fn: Callable[P, R]) -> Callable[P, R]:
        """A function that calls `fn` under the stance; that of the process is as it was before `set_stance`."""
        if not callable(fn):
            raise TypeError(f"minidynamo.set_stance decorates functions, not {type(fn).__name__}")
        code = getattr(inspect.unwrap(fn), "__code__", None)
        if code is not None and code.co_flags & GENERATES:
            raise TypeError(
                f"minidynamo.set_stance: {fn.__name__} is a generator or coroutine, which runs after its call; "
                "use `with set_stance(...):` inside it"
            )
        _set(self._outside())
        stance = self.stance

        @functools.wraps(fn)
        def under_stance(*args: P.args, **kwargs: P.kwargs) -> R:
            before = _set(stance)
            try:
                return fn(*args, **kwargs)
            finally:
                _set(before)

        return under_stance

    def __enter__(self) -> None:
        self._before.append(self._outside())
        _set(self.stance)

    def __exit__(self, *exc: object) -> None:
        _set(self._before.pop())

    def __repr__(self) -> str:
        return f"set_stance({self.stance!r})"
