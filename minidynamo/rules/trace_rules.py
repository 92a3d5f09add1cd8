"""What may be compiled as a root frame, and what may be inlined: two tables (decision 31)."""

from __future__ import annotations

import os
import sysconfig
import types
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from ..reasons import SKIP_GENERATOR, SKIP_LIBRARY, SKIP_MODULE_CODE, Why, why
from . import torch_functions

OPTIMIZED, NEWLOCALS, GENERATOR, GENERATOR_LIKE = 0x01, 0x02, 0x20, 0x20 | 0x80 | 0x200
_STDLIB = tuple({sysconfig.get_path("stdlib") + os.sep, sysconfig.get_path("platstdlib") + os.sep})
_INSTALLED = tuple({sysconfig.get_path("purelib") + os.sep, sysconfig.get_path("platlib") + os.sep})
_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_POLYFILLS = os.path.join(_PACKAGE, "polyfills") + os.sep
_TORCH = os.path.dirname(os.path.abspath(torch.__file__)) + os.sep


@dataclass(frozen=True, slots=True)
class Library:
    """A row: code whose file name satisfies `holds` belongs to `name`."""

    name: str
    holds: Callable[[str], bool]


LIBRARIES = (
    Library("minidynamo", lambda file: file.startswith(_PACKAGE) and not file.startswith(_POLYFILLS)),
    Library("torch", lambda file: file.startswith(_TORCH)),
    Library("importlib and other frozen modules", lambda file: file.startswith("<frozen ")),
    Library(
        "the standard library", lambda file: file.startswith(_STDLIB) and not file.startswith(_INSTALLED)
    ),
)


def library_of(code: types.CodeType) -> str | None:
    """The library that `code` belongs to, or None for a program's own code and installed packages."""
    return next((row.name for row in LIBRARIES if row.holds(code.co_filename)), None)


def frame_policy(code: types.CodeType) -> Why | None:
    """Why a frame of `code` may not be compiled as a root, or None when it may."""
    if code.co_flags & GENERATOR_LIKE:
        return why(SKIP_GENERATOR)
    if not code.co_flags & NEWLOCALS or not code.co_flags & OPTIMIZED:
        return why(SKIP_MODULE_CODE)
    library = library_of(code)
    return None if library is None else why(SKIP_LIBRARY, library=library)


def inline_policy(fn: Any) -> bool:
    """May a call of the Python function `fn` be executed symbolically?"""
    return library_of(fn.__code__) is None and torch_functions.classify(fn) is None
