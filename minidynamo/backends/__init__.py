"""Backends: what compiles a captured graph. `registry` finds them; each has a file."""

from . import debug, eager
from .registry import Backend, list_backends, lookup_backend, register_backend

__all__ = ["Backend", "debug", "eager", "list_backends", "lookup_backend", "register_backend"]
