"""VariableTrackers, one concept per file. Importing the package fills the table of wrappers."""

from . import constant, functions, modules, opaque, sequences, tensor
from .registry import wrapper_for

__all__ = ["constant", "functions", "modules", "opaque", "sequences", "tensor", "wrapper_for"]
