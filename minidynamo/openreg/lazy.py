"""Starting the devices at their first use, so that importing the package leaves the process free to fork."""

from __future__ import annotations

import threading
from collections.abc import Callable

from . import _C

_lock = threading.RLock()
_started = False
_waiting: dict[str, Callable[[], None]] = {}


def _is_in_bad_fork() -> bool:
    """True in a child that was forked after its parent had started the devices."""
    return _C._isInBadFork()


def is_initialized() -> bool:
    """True when the devices of this process have been started."""
    return _started and not _is_in_bad_fork()


def init() -> None:
    """Start the devices, if that has not happened yet. Using a device does it by itself.

    Raises RuntimeError in a child forked after the parent had started them.
    """
    global _started
    if is_initialized():
        return
    with _lock:
        if is_initialized():
            return
        if _is_in_bad_fork():
            raise RuntimeError(
                "Cannot re-initialize OpenReg in forked subprocess. To use OpenReg with multiprocessing, you must use the "
                "'spawn' start method"
            )
        _C._init()
        _started = True
        while _waiting:
            _waiting.pop(next(iter(_waiting)))()


_lazy_init = init  # the name that torch calls


def when_initialized(kind: str, action: Callable[[], None]) -> None:
    """Run `action` now, or when the devices start; of one `kind` only the last waits."""
    with _lock:
        if is_initialized():
            action()
        else:
            _waiting.pop(kind, None)
            _waiting[kind] = action
