"""What may be compiled as a root frame, and what may be inlined: two tables (decision 31)."""

from __future__ import annotations

import contextlib
import functools
import os
import sysconfig
import types
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from ..markers import is_left_out
from ..pycode.module_call import is_module_call
from ..reasons import SKIP_DISABLED, SKIP_GENERATOR, SKIP_LIBRARY, SKIP_MODULE_CODE, Why, why
from . import torch_functions
from .builtins import RULES

OPTIMIZED, NEWLOCALS, GENERATOR, GENERATOR_LIKE = 0x01, 0x02, 0x20, 0x20 | 0x80 | 0x200
_STDLIB = tuple({sysconfig.get_path("stdlib") + os.sep, sysconfig.get_path("platstdlib") + os.sep})
_INSTALLED = tuple({sysconfig.get_path("purelib") + os.sep, sysconfig.get_path("platlib") + os.sep})
_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_TORCH = os.path.dirname(os.path.abspath(torch.__file__)) + os.sep
_LAYERS = os.path.join(_TORCH, "nn", "modules") + os.sep


@dataclass(frozen=True, slots=True)
class Library:
    """A row: code whose file name satisfies `holds` belongs to `name`."""

    name: str
    holds: Callable[[str], bool]


LIBRARIES = (
    Library("minidynamo", lambda file: file.startswith(_PACKAGE)),
    Library("torch", lambda file: file.startswith(_TORCH)),
    Library("importlib and other frozen modules", lambda file: file.startswith("<frozen ")),
    Library(
        "the standard library", lambda file: file.startswith(_STDLIB) and not file.startswith(_INSTALLED)
    ),
)


# Modules of the standard library whose Python code is inlined: it does nothing but compute.
STANDARD = (
    *("contextlib.py", "functools.py", "dataclasses.py", "copy.py", "enum.py", "numbers.py", "types.py"),
    *("typing.py", "collections" + os.sep + "__init__.py", "operator.py", "bisect.py", "heapq.py"),
)
FROZEN = ("_collections_abc", "abc")
# Python code of libraries that is inlined all the same: the layers of torch, but not the machinery under them; what
# torch.nn.functional has besides operators; a switch that attention asks.
INLINED = (
    *(root + name for root in _STDLIB for name in STANDARD),
    *(f"<frozen {name}>" for name in FROZEN),
    _LAYERS,
    os.path.join(_TORCH, "nn", "functional.py"),
    os.path.join(_TORCH, "backends", "mha", "__init__.py"),
    os.path.join(_TORCH, "nn", "utils", "parametrize.py"),
    os.path.join(_TORCH, "nn", "utils", "parametrizations.py"),
    os.path.join(_TORCH, "nn", "utils", "weight_norm.py"),
    os.path.join(_TORCH, "nn", "utils", "spectral_norm.py"),
    os.path.join(_TORCH, "nn", "utils", "convert_parameters.py"),
    os.path.join(_TORCH, "nn", "utils", "stateless.py"),
    os.path.join(_TORCH, "nn", "utils", "_named_member_accessor.py"),
    os.path.join(_TORCH, "_functorch", "functional_call.py"),
    os.path.join(_TORCH, "signal", "windows") + os.sep,
    os.path.join(_TORCH, "amp", "autocast_mode.py"),
    os.path.join(_TORCH, "accelerator", "__init__.py"),
    os.path.join(_TORCH, "accelerator", "_utils.py"),
    os.path.join(_PACKAGE, "openreg", "devices.py"),
    os.path.join(_PACKAGE, "openreg", "amp.py"),
    os.path.join(_TORCH, "autograd", "anomaly_mode.py"),
    os.path.join(_TORCH, "nn", "attention", "__init__.py"),
    os.path.join(_TORCH, "backends", "cuda", "__init__.py"),
    os.path.join(_TORCH, "testing", "_internal", "common_methods_invocations.py"),
    os.path.join(_TORCH, "testing", "_internal", "opinfo") + os.sep,
)
_OS = os._Environ.__getitem__.__code__.co_filename
INLINED_FUNCTIONS = (  # reads of environment variables, and what `@torch.no_grad()` makes of a function
    *((_OS, f"_Environ.{name}") for name in ("__getitem__", "__contains__", "__len__")),
    *((_OS, f"_createenviron.<locals>.{name}") for name in ("encode", "decode")),
    (os.path.join(_TORCH, "utils", "_contextlib.py"), "context_decorator.<locals>.decorate_context"),
    (os.path.join(_TORCH, "utils", "_device.py"), "device_decorator.<locals>.<lambda>"),
    (contextlib.__file__, "ContextDecorator.__call__.<locals>.inner"),
    (os.path.join(_TORCH, "distributed", "__init__.py"), "is_available"),
    *(
        (os.path.join(_TORCH, "distributed", "distributed_c10d.py"), name)
        for name in (
            *("is_initialized", "_WorldMeta.WORLD", "_World.default_pg", "get_rank", "get_world_size"),
            *("_rank_not_in_group", "_get_default_group", "_get_group_size"),
        )
    ),
)
NOT_INLINED = tuple(_LAYERS + name for name in ("lazy.py", "_functions.py"))


DISABLERS = ((os.path.join(_TORCH, "_dynamo", "eval_frame.py"), "DisableContext.__call__.<locals>._fn"),)


def nothing_below(code: types.CodeType) -> bool:
    """Whether frames that a skipped frame of `code` calls are not to be captured either: none is the user's, or the user
    says so with torch's `disable`."""
    return library_of(code) in SUBTREES or (code.co_filename, code.co_qualname) in DISABLERS


SUBTREES = ("minidynamo", "importlib and other frozen modules")


def library_of(code: types.CodeType) -> str | None:
    """The library that `code` belongs to, or None for a program's own code and installed packages."""
    return _library_of_file(code.co_filename)


@functools.cache
def _library_of_file(file: str) -> str | None:
    return next((row.name for row in LIBRARIES if row.holds(file)), None)


def frame_policy(code: types.CodeType) -> Why | None:
    """Why a frame of `code` may not be compiled as a root, or None when it may."""
    if code.co_flags & GENERATOR_LIKE:
        return why(SKIP_GENERATOR)
    if not code.co_flags & NEWLOCALS or not code.co_flags & OPTIMIZED:
        return why(SKIP_MODULE_CODE)
    if is_left_out(code):
        return why(SKIP_DISABLED)
    library = None if is_module_call(code) else library_of(code)
    return None if library is None else why(SKIP_LIBRARY, library=library)


def inline_policy(fn: Any) -> bool:
    """May a call of the Python function `fn` be executed symbolically? One that has a rule is called by it."""
    code: types.CodeType = fn.__code__
    file = code.co_filename
    if (file, code.co_qualname) in INLINED_FUNCTIONS:
        return True
    own = library_of(code) is None or file.startswith(INLINED) and not file.startswith(NOT_INLINED)
    return own and torch_functions.classify(fn) is None and fn not in RULES
