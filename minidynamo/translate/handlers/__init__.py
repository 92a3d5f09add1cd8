"""One handler per canonical instruction, in files by kind; importing the package fills the table."""

from . import (
    calls,
    containers,
    control,
    exceptions,
    functions,
    generators,
    imports,
    matching,
    names,
    operators,
    stack,
    with_,
)
from .table import HANDLERS, NOT_CAPTURED

__all__ = [
    "HANDLERS",
    "NOT_CAPTURED",
    "calls",
    "containers",
    "control",
    "exceptions",
    "functions",
    "generators",
    "imports",
    "matching",
    "names",
    "operators",
    "stack",
    "with_",
]
