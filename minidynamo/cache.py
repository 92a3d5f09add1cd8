"""Python's view of the native cache: the names of the extension module."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

try:
    from ._C import (
        NO_COMPILE,
        RERUN,
        SKIP,
        SKIP_SUBTREE,
        CacheEntry,
        CompileKey,
        EntryHandle,
        GuardProgram,
        OptimizeContext,
        OptimizedFunction,
        ResumeFunction,
        Validity,
        cache_entries,
        force_eager,
        get_mark,
        instance_dict,
        is_subtype,
        mark_code,
        reset_all,
        reset_code,
        set_convert_frame,
        set_rerun_callback,
        stats,
        swap_active,
        type_lookup,
    )
except ImportError as error:
    raise ImportError(
        f"minidynamo's native extension cannot be loaded ({error}). Build it with `make build` or `pip install -e .` "
        "in the project's folder; `python -m minidynamo doctor` says what is missing."
    ) from error

if TYPE_CHECKING:

    class Keyed:
        """What subclasses see of it."""

        _compared: ClassVar[tuple[str, ...]]
        _memo: Any

else:
    from ._C import Keyed

__all__ = [
    "NO_COMPILE",
    "RERUN",
    "SKIP",
    "SKIP_SUBTREE",
    "CacheEntry",
    "CompileKey",
    "EntryHandle",
    "GuardProgram",
    "Keyed",
    "OptimizeContext",
    "OptimizedFunction",
    "ResumeFunction",
    "Validity",
    "cache_entries",
    "force_eager",
    "get_mark",
    "instance_dict",
    "is_subtype",
    "mark_code",
    "reset_all",
    "reset_code",
    "set_convert_frame",
    "set_rerun_callback",
    "stats",
    "swap_active",
    "type_lookup",
]
