"""Direct entries: C calls the graph and builds the result from a recipe; the entry's code does not run."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

OUTPUT = ("output", 0)


@dataclass
class Direct(sys.modules["conftest"].Guarded if "conftest" in sys.modules else object):  # replaced below
    direct: Any = None
