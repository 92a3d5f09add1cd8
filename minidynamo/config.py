"""Typed options. `config.NAME = value` checks name and type; `with config.patch(NAME=value):` restores on exit.

The module object itself is the configuration: `from minidynamo import config; config.cache_size_limit = 16`.
"""

from __future__ import annotations

import contextlib
import difflib
import os
import sys
import types
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .exc import MinidynamoWarning


@dataclass(frozen=True, slots=True)
class Option:
    """One row of the table: default value, accepted types, accepted values (or None), meaning.

    `fixed`: the value is what minidynamo does and cannot be changed; the text says what holds instead.
    """

    default: Any
    types: tuple[type, ...]
    choices: tuple[Any, ...] | None
    doc: str
    fixed: str = ""


def _flag(name: str, default: bool = False) -> bool:
    return os.environ.get(name, "1" if default else "0").lower() not in ("", "0", "false", "no")


def _any_flag(*names: str) -> bool:
    return any(_flag(name) for name in names)


def _choice(name: str, default: str, choices: tuple[str, ...]) -> str:
    value = os.environ.get(name, default) or default
    if value not in choices:
        print(
            f"minidynamo: {name}={value!r} is not one of {', '.join(choices)}; using {default!r}",
            file=sys.stderr,
        )
        return default
    return value


STATIC = "shapes are static: a new size compiles again"
NUMBERS = "numbers are constants of a graph: a new value that was read compiles again"
OPTIONS: dict[str, Option] = {
    "cache_size_limit": Option(8, (int,), None, "compiled entries per function and optimized object"),
    "accumulated_recompile_limit": Option(
        256, (int,), None, "compiled entries per function, of all optimized objects together"
    ),
    "verbose": Option(
        _any_flag("TORCHDYNAMO_VERBOSE"),
        (bool,),
        None,
        "errors show minidynamo's own frames, and warnings of its own faults their traceback",
    ),
    "dynamic_shapes": Option(False, (bool,), None, "graphs for sizes that are not known", STATIC),
    "assume_static_by_default": Option(
        True, (bool,), None, "a size is static until it is seen to vary", STATIC
    ),
    "automatic_dynamic_shapes": Option(False, (bool,), None, "a size that varied is dynamic", STATIC),
    "specialize_int": Option(True, (bool,), None, "an int that was read is a constant of the graph", NUMBERS),
    "specialize_float": Option(
        True, (bool,), None, "a float that was read is a constant of the graph", NUMBERS
    ),
    "capture_scalar_outputs": Option(
        False, (bool,), None, "`.item()` is captured", "`.item()` breaks the graph (MD203)"
    ),
    "suppress_errors": Option(
        _any_flag("TORCHDYNAMO_SUPPRESS_ERRORS"),
        (bool,),
        None,
        "a backend that raises: run the frame as plain Python",
    ),
    "internal_errors": Option(
        "warn", (str,), ("warn", "raise"), "minidynamo's own errors: one warning and plain Python, or raise"
    ),
    "error_on_recompile": Option(
        False, (bool,), None, "raise RecompileError with the cause instead of recompiling"
    ),
    "guard_nn_modules": Option(True, (bool,), None, "guard what was read from nn.Modules"),
    "disable": Option(
        _any_flag("MINIDYNAMO_DISABLE", "TORCHDYNAMO_DISABLE", "TORCH_COMPILE_DISABLE"),
        (bool,),
        None,
        "decorated functions run as plain Python",
    ),
    "backend": Option("", (str,), None, "when set: the backend of everything that is optimized from now on"),
    "guards": Option(
        _choice("MINIDYNAMO_GUARDS", "native", ("native", "text", "both")),
        (str,),
        ("native", "text", "both"),
        "how guards are checked: the native program, the check_fn text, or both with agreement asserted",
    ),
    "verify": Option(
        _flag("MINIDYNAMO_VERIFY"), (bool,), None, "check emitted code, metadata rules and first results"
    ),
    "repro": Option(
        _flag("MINIDYNAMO_REPRO"), (bool,), None, "a backend that raises: write a script of its graph"
    ),
    "max_restarts": Option(
        64, (int,), None, "graph-break decisions in one frame before it runs as plain Python"
    ),
    "max_inline_depth": Option(32, (int,), None, "nesting of inlined calls"),
    "max_trace_steps": Option(200_000, (int,), None, "instructions executed symbolically in one frame"),
}
ALIASES = {
    "recompile_limit": "cache_size_limit",
    "accumulated_cache_size_limit": "accumulated_recompile_limit",
}


class _Config(types.ModuleType):
    """The module's own class: option names are checked on every write, and on reads of what is no option. The values are the module's
    attributes: options are read for every operator of a graph."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self.__dict__[_canonical(name)]

    def __setattr__(self, name: str, value: Any) -> None:
        if name.startswith("_") or name in self.__dict__ and name not in OPTIONS:
            super().__setattr__(name, value)
            return
        name = _canonical(name)
        super().__setattr__(name, _checked(name, value))

    def __dir__(self) -> list[str]:
        return sorted({*self.__dict__, *OPTIONS, *ALIASES})

    @contextlib.contextmanager
    def patch(self, changes: dict[str, Any] | None = None, /, **more: Any) -> Iterator[None]:
        """Set options for a `with` block (or a decorated function). Raises AttributeError or TypeError as assignment does."""
        values = {_canonical(k): v for k, v in {**(changes or {}), **more}.items()}
        checked = {k: _checked(k, v) for k, v in values.items()}
        before = {k: self.__dict__[k] for k in checked}
        self.__dict__.update(checked)
        try:
            yield
        finally:
            self.__dict__.update(before)


def _canonical(name: str) -> str:
    name = ALIASES.get(name, name)
    if name not in OPTIONS:
        near = difflib.get_close_matches(name, [*OPTIONS, *ALIASES], n=1)
        hint = f"; did you mean {near[0]!r}?" if near else f"; options are {', '.join(sorted(OPTIONS))}"
        raise AttributeError(f"minidynamo.config has no option {name!r}{hint}")
    return name


def _checked(name: str, value: Any) -> Any:
    option = OPTIONS[name]
    if type(value) not in option.types:
        wanted = " or ".join(t.__name__ for t in option.types)
        raise TypeError(f"minidynamo.config.{name} takes {wanted}, not {type(value).__name__} ({value!r})")
    if option.choices is not None and value not in option.choices:
        raise ValueError(
            f"minidynamo.config.{name} takes one of {', '.join(map(repr, option.choices))}, not {value!r}"
        )
    if option.fixed and value != option.default:
        warnings.warn(
            f"minidynamo.config.{name} = {value!r} is not supported and stays {option.default!r}: {option.fixed}",
            MinidynamoWarning,
            stacklevel=_levels_outside(),
        )
        return option.default
    return value


def _levels_outside() -> int:
    """`stacklevel` of the caller's caller, outside of this file and of contextlib."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_code.co_filename in (__file__, contextlib.__file__):
        frame, level = frame.f_back, level + 1
    return level


if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...


globals().update({name: option.default for name, option in OPTIONS.items()})
sys.modules[__name__].__class__ = _Config
