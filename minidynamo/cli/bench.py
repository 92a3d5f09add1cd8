"""`minidynamo bench`: hands over to the harness, which lies beside the package in a checkout."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import minidynamo
from minidynamo.exc import MinidynamoError

CHECKOUT = Path(minidynamo.__file__).resolve().parents[1]


def run(argv: list[str]) -> int:
    """Exit code of `benchmarks.main.main`. Raises MinidynamoError in an installation without a checkout."""
    if not (CHECKOUT / "benchmarks" / "main.py").exists():
        raise MinidynamoError(
            "bench: this installation has no benchmarks; run it in a checkout of the source (pip install -e .)"
        )
    if str(CHECKOUT) not in sys.path:
        sys.path.insert(0, str(CHECKOUT))
    return int(importlib.import_module("benchmarks.main").main(argv))
