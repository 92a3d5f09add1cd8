"""Where the native hook enters Python for a frame that no entry fits. Loaded at the first miss: it brings the compiler along."""

from __future__ import annotations

import types
from typing import Any

from . import config
from .cache import OptimizeContext
from .compile_frame import FrameInput
from .convert_frame import convert
from .guards.check_fn import flat_names
from .sources import FrameValues


def on_miss(
    ctx: OptimizeContext,
    code: types.CodeType,
    args: tuple[Any, ...],
    globals_: dict[str, Any],
    builtins: dict[str, Any],
    closure: tuple[types.CellType, ...] | None,
) -> Any:
    """What the native hook calls: flat arguments in, an entry, a mark or None out (see `_C.set_convert_frame`)."""
    if config.disable:
        return NotImplemented
    values = FrameValues(dict(zip(flat_names(code), args)), globals_, builtins, closure, code.co_freevars)
    return convert(ctx.backend, ctx.nopython, FrameInput(code, values), ctx)
