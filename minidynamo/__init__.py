"""minidynamo: a frame interceptor for PyTorch programs. The public names load on first use."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from .markers import allow_in_graph as allow_in_graph
from .markers import assume_constant_result as assume_constant_result
from .markers import disallow_in_graph as disallow_in_graph
from .markers import export as export
from .markers import graph_break as graph_break
from .markers import is_compiling as is_compiling
from .markers import mark_dynamic as mark_dynamic
from .markers import mark_static as mark_static
from .markers import mark_unbacked as mark_unbacked
from .markers import maybe_mark_dynamic as maybe_mark_dynamic
from .markers import nonstrict_trace as nonstrict_trace
from .markers import precompile as precompile

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
    from .stance import set_stance as set_stance

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
    "set_stance": "stance",
    "report": "debug.report",
    **dict.fromkeys(("config", "exc", "testing", "events", "reasons"), None),
}
_MARKERS = (
    *("graph_break", "is_compiling", "allow_in_graph", "disallow_in_graph", "assume_constant_result"),
    *(
        "mark_dynamic",
        "maybe_mark_dynamic",
        "mark_static",
        "mark_unbacked",
        "nonstrict_trace",
        "export",
        "precompile",
    ),
)
__all__ = sorted([*_HOMES, *_MARKERS])


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
