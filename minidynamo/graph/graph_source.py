"""The source of the function that torch.fx generates for a graph.

torch.fx registers it with `linecache`, where tracebacks and `inspect` find it, and never takes it out. Here it goes when the
code of the function goes.
"""

from __future__ import annotations

import linecache
import types
import weakref
from collections.abc import Callable
from typing import Any

import torch.fx.graph
import torch.fx.graph_module

_registered: dict[str, _Code] = {}  # by file name: equal codes are one key, and their references, too
_texts: dict[str, str] = getattr(getattr(torch.fx.graph_module, "_loader", None), "eval_cache", {})


class CodeGen(torch.fx.graph.CodeGen):
    """torch.fx's, which is asked for the signatures of its own methods no more: they take all that they may be given."""

    def _call_method_with_signature_check(self, method: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        return method(*args, **kwargs)


class _Code(weakref.ref[types.CodeType]):
    """A weak reference that remembers what the code's source is registered as."""

    __slots__ = ("filename",)
    filename: str


def _gone(ref: Any) -> None:
    _registered.pop(ref.filename, None)
    linecache.cache.pop(ref.filename, None)
    _texts.pop(ref.filename, None)


def unregister_with(code: types.CodeType) -> None:
    """Take the source of `code`, which torch.fx has just generated, out of `linecache` when `code` is gone. Its file name must
    be its own."""
    ref = _Code(code, _gone)
    ref.filename = code.co_filename
    _registered[ref.filename] = ref
