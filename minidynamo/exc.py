"""Errors. Every message says where, what, why and what to do."""

from __future__ import annotations

from typing import Any


class MinidynamoError(RuntimeError):
    """Base of everything that minidynamo raises by itself."""


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


class RecompileError(MinidynamoError):
    """A recompile happened although `config.error_on_recompile` forbids it."""


class MinidynamoWarning(UserWarning):
    """What minidynamo warns of: its own faults, the cache limit, graphs that fail where plain Python does not."""
