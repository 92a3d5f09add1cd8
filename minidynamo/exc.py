"""Errors. Every message says where, what, why and what to do."""

from __future__ import annotations

import sys
from typing import Any


class MinidynamoError(RuntimeError):
    """Base of everything that minidynamo raises by itself.

    Where the program has loaded torch._dynamo, an error is also one of the error of that name there: `except` clauses written
    for it hold.
    """

    def __new__(cls, *args: Any, **kwargs: Any) -> MinidynamoError:
        return super().__new__(_joined(cls), *args, **kwargs)

    def __reduce__(self) -> Any:
        parts: Any = RuntimeError.__reduce__(self)
        return (getattr(type(self), "_own", type(self)), *parts[1:])


class Unsupported(MinidynamoError):
    """Something in the user's program that cannot be captured; `reason` is the row that says why.

    Raised inside `translate` by `unimplemented`/`tx.unsupported`; reaches the user only under `nopython=True`.
    """

    def __init__(self, message: str, reason: object = None, where: Any = None) -> None:
        super().__init__(message)
        self.reason = reason
        self.where = where


class InternalError(MinidynamoError):
    """minidynamo's own fault. The frame runs as plain Python unless `nopython` or `config.internal_errors = "raise"`."""


class BackendCompilerFailed(MinidynamoError):
    """The backend raised while it compiled a graph; the backend's own exception is `__cause__`."""


class InvalidBackend(MinidynamoError):
    """No backend of that name, or something that is no backend. Raised when the function is decorated."""


class NotSupported(MinidynamoError, NotImplementedError):
    """Something that torch.compile's users know and that minidynamo has not; the message says what to do instead."""


class RecompileError(MinidynamoError):
    """A compilation was needed although `config.error_on_recompile` or the stance "fail_on_recompile" forbids it."""


_both: dict[tuple[type, type], Any] = {}


def _joined(cls: Any) -> Any:
    """`cls`, or a subclass of it and of torch's error of the same name."""
    theirs = getattr(sys.modules.get("torch._dynamo.exc"), cls.__name__, None)
    if not isinstance(theirs, type) or not issubclass(theirs, RuntimeError) or issubclass(cls, theirs):
        return cls
    made = _both.get((cls, theirs))
    if made is None:
        names = {"__module__": cls.__module__, "__qualname__": cls.__qualname__, "__doc__": cls.__doc__}
        own = {"__init__": cls.__init__, "__str__": cls.__str__, "_own": cls}
        made = _both[cls, theirs] = type(cls.__name__, (cls, theirs), names | own)
    return made


class MinidynamoWarning(UserWarning):
    """What minidynamo warns of: its own faults, the cache limit, graphs that fail where plain Python does not."""
