"""VariableTrackers, one concept per file. Importing the package fills the table of wrappers."""

from . import (
    classes,
    constant,
    dicts,
    enums,
    functions,
    grad_mode,
    methods,
    modules,
    namedtuples,
    nn_module,
    opaque,
    outside_exceptions,
    partials,
    sequences,
    sets,
    tensor,
    user_objects,
)
from .registry import wrapper_for

__all__ = [
    "classes",
    "constant",
    "dicts",
    "enums",
    "functions",
    "grad_mode",
    "methods",
    "modules",
    "namedtuples",
    "nn_module",
    "opaque",
    "outside_exceptions",
    "partials",
    "sequences",
    "sets",
    "tensor",
    "user_objects",
    "wrapper_for",
]
