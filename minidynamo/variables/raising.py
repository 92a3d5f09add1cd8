"""What travels when the program raises while it is traced."""

from __future__ import annotations

from typing import Any


class ObservedException(Exception):
    """The program raises `exception`, a tracker, at the current instruction of the trace. Caught by the frame that has a
    handler."""

    def __init__(self, exception: Any) -> None:
        super().__init__(exception.type_name())
        self.exception = exception
