"""Names of parametrized tests that are the same in every process."""

from __future__ import annotations

import re
from typing import Any


def stable(value: Any) -> str:
    """The text of a parameter, without addresses."""
    return re.sub(r" at 0x[0-9a-f]+", "", str(value))
