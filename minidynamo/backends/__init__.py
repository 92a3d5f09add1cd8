"""Backends: what compiles a captured graph. `registry` finds them; each has a file."""

from . import aot, debug, eager, inductor
from .registry import Backend, list_backends, lookup_backend, register_backend

__all__ = [
    "Backend",
    "aot",
    "debug",
    "eager",
    "inductor",
    "list_backends",
    "lookup_backend",
    "register_backend",
]
