"""What emitted code loads again at its beginning may be gone: a global, an attribute, the content of a cell."""

from __future__ import annotations

import types
from typing import Any

from ..cache import RERUN


class FailedLoad:
    """A constant of emitted code, called when a load failed: plain Python is to run the frame. Tells that from a graph that failed."""

    __slots__ = ("happened",)

    def __init__(self) -> None:
        self.happened = False

    def __repr__(self) -> str:
        return "RERUN"

    def __call__(self) -> Any:
        self.happened = True
        return RERUN


def load_failed(code: types.CodeType) -> bool:
    """Whether a load of this emitted code failed since the last question."""
    for constant in code.co_consts:
        if type(constant) is FailedLoad and constant.happened:
            constant.happened = False
            return True
    return False
