"""What the supported CPythons disagree on. `CURRENT` is the row of the running one; nothing else in Python
checks the version."""

from __future__ import annotations

import sys
from importlib import import_module

from .base import Version

SUPPORTED = {(3, 11): "py311", (3, 12): "py312", (3, 13): "py313", (3, 14): "py314"}


def _current() -> Version:
    try:
        name = SUPPORTED[sys.version_info[:2]]
    except KeyError:
        known = ", ".join(f"{major}.{minor}" for major, minor in SUPPORTED)
        raise ImportError(
            f"minidynamo knows the bytecode of CPython {known}; this is {sys.version.split()[0]}"
        ) from None
    version: Version = import_module(f".{name}", __name__).VERSION
    return version


CURRENT = _current()
