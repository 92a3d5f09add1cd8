"""`python -m minidynamo.openreg`: the tour."""

from __future__ import annotations

import sys

from .tour import main

if __name__ == "__main__":
    sys.exit(main())
