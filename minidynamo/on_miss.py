"""Where the native hook enters Python for a frame that no entry fits. Loaded at the first miss: it brings the compiler along."""

from __future__ import annotations

import types
from typing import Any

from . import config, logs
from .backends import calling
from .cache import OptimizeContext
from .compile_frame import FrameInput
from .convert_frame import convert
from .exc import BackendCompilerFailed, RecompileError, Unsupported
from .guards.check_fn import flat_names
from .sources import FrameValues
from .stance import at_miss


def on_miss(
    ctx: OptimizeContext,
    code: types.CodeType,
    args: tuple[Any, ...],
    globals_: dict[str, Any],
    builtins: dict[str, Any],
    closure: tuple[types.CellType, ...] | None,
) -> Any:
    """What the native hook calls: flat arguments in, an entry, a mark or None out (see `_C.set_convert_frame`)."""
    stance = at_miss()
    if config.disable or stance == "force_eager":
        return NotImplemented
    logs.follow_torch()
    values = FrameValues(dict(zip(flat_names(code), args)), globals_, builtins, closure, code.co_freevars)
    try:
        return convert(ctx.backend, ctx.nopython, FrameInput(code, values, stance), ctx)
    except (Unsupported, RecompileError, BackendCompilerFailed) as error:
        if config.verbose:
            raise
        return without_own_frames(error)


def without_own_frames(error: BaseException) -> BaseException:
    """What the user is to see: a traceback that begins in the program (the native hook raises `error`), and of its cause, an
    exception of the backend's, the frames from the backend on."""
    error.__traceback__ = None
    error.__suppress_context__ = True
    cause = error.__cause__
    while cause is not None and cause.__traceback__ is not None:
        names = cause.__traceback__.tb_frame.f_globals
        if names.get("__package__") != __package__ and names is not vars(calling):
            break
        cause.__traceback__ = cause.__traceback__.tb_next
    return error
