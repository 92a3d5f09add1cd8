"""From a function to its compiled frames: the entries of its code, each followed by those of its resume
functions."""

from __future__ import annotations

import types
from collections.abc import Iterator
from typing import Any

import torch

from ..cache import CacheEntry, OptimizedFunction, cache_entries
from ..optimized_module import OptimizedModule

# What stands for a function -> the attribute that leads on to it. A module stands for its class's `forward`.
_STEPS = ("__func__", "__code__")


def code_of(fn: Any) -> types.CodeType:
    """The code object behind a function, method, module or optimized object. Raises TypeError for anything
    else. A module whose `forward` breaks the graph is captured in its `forward`, others in the call (decision 24)."""
    found = fn
    while not isinstance(found, types.CodeType):
        if isinstance(found, OptimizedFunction):
            found = found.__wrapped__
        elif isinstance(found, OptimizedModule):
            call = code_of(found._optimized)
            found = call if cache_entries(call) else found._orig_mod
        elif isinstance(found, torch.nn.Module):
            found = type(found).forward
        else:
            found = next((v for name in _STEPS if (v := getattr(found, name, None)) is not None), None)
        if found is None:
            raise TypeError(f"a function or code object is needed, not {type(fn).__name__}")
    return found


def compiled_frames(fn: Any) -> Iterator[tuple[int, CacheEntry]]:
    """(depth, entry) of every live entry of `fn`, in the order in which they are tried; an entry's resume
    functions follow it one level deeper. Each entry comes once."""
    return _walk(code_of(fn), 0, set())


def _walk(code: types.CodeType, depth: int, met: set[int]) -> Iterator[tuple[int, CacheEntry]]:
    for entry in cache_entries(code):
        if id(entry) in met:
            continue
        met.add(id(entry))
        yield depth, entry
        for resume in entry.guarded.resumes:
            yield from _walk(resume, depth + 1, met)


def begins_at(code: types.CodeType) -> int:
    """The user's line at which `code` begins: where a resume function goes on, the `def` line of any
    other."""
    from ..pycode.resume import is_resume_code

    if not is_resume_code(code):
        return code.co_firstlineno
    return next((line for _, _, line in code.co_lines() if line is not None), code.co_firstlineno)
