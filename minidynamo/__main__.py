"""`python -m minidynamo` and the console script `minidynamo`."""

from __future__ import annotations

import sys

from minidynamo.cli.main import main

__all__ = ["main"]

if __name__ == "__main__":
    sys.exit(main())
