"""minidynamo: a frame interceptor for PyTorch programs. The public names load on first use."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from .markers import graph_break as graph_break
from .markers import is_compiling as is_compiling

if TYPE_CHECKING:
    from . import config as config
    from . import exc as exc
    from . import testing as testing
    from .backends.registry import list_backends as list_backends
    from .backends.registry import lookup_backend as lookup_backend
    from .backends.registry import register_backend as register_backend
    from .debug.report import report as report
    from .eval_frame import cache_entries as cache_entries
    from .eval_frame import compile as compile
    from .eval_frame import compiled_frames as compiled_frames
    from .eval_frame import disable as disable
    from .eval_frame import explain as explain
    from .eval_frame import optimize as optimize
    from .eval_frame import reset as reset
    from .logs import set_logs as set_logs
    from .recording.session import expect as expect
    from .recording.session import no_recompiles as no_recompiles
    from .recording.session import record as record

__version__ = "0.1.0"

# Public name -> the module that has it (None: the name is a module itself).
_HOMES: dict[str, str | None] = {
    **dict.fromkeys(
        ("optimize", "compile", "disable", "reset", "explain", "cache_entries", "compiled_frames"),
        "eval_frame",
    ),
    **dict.fromkeys(("register_backend", "lookup_backend", "list_backends"), "backends"),
    **dict.fromkeys(("record", "expect", "no_recompiles"), "recording.session"),
    "set_logs": "logs",
    "report": "debug.report",
    **dict.fromkeys(("config", "exc", "testing", "events", "reasons"), None),
}
__all__ = sorted([*_HOMES, "graph_break", "is_compiling"])


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'minidynamo' has no attribute {name!r}")
    home = _HOMES[name]
    value = importlib.import_module(f".{home or name}", __name__)
    if home is not None:
        value = getattr(value, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
