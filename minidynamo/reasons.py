"""Why a frame was compiled again (MD1xx), a graph broke (MD2xx) or a frame was not compiled (MD3xx): one row per reason.

A reason is data: `unsupported(REASON, name=...)` fills the template. `minidynamo explain MD201` prints a row.
"""

from __future__ import annotations

import linecache
from dataclasses import dataclass
from typing import Any

from .events import Where
from .exc import Unsupported


@dataclass(frozen=True, slots=True)
class Reason:
    """One row: `name` is the constant's name, `code` the MD code, `text` a format template, `hint` what to do."""

    name: str
    code: str
    text: str
    hint: str


@dataclass(frozen=True, slots=True)
class Why:
    """A reason with its template filled in."""

    reason: Reason
    text: str
    inner: Why | None = None  # for a break that was met inside an inlined call: what was met there
    escapes: bool = (
        False  # the program's own error, which no handler of the captured part sees: the caller gets it
    )

    @property
    def code(self) -> str:
        return self.reason.code

    @property
    def hint(self) -> str:
        return self.reason.hint if self.inner is None else self.inner.hint

    def is_own_error(self) -> bool:
        """Whether plain Python raises an error of the program's own here, out of the frame."""
        return self.escapes or self.inner is not None and self.inner.is_own_error()

    def may_pass(self) -> bool:
        """Whether it is an error of the program's own, which other values may not raise."""
        return self.reason is OPERATOR_FAILS or self.inner is not None and self.inner.may_pass()

    def __str__(self) -> str:
        return f"{self.text} [{self.code}]"


REASONS: dict[str, Reason] = {}


def _row(name: str, code: str, text: str, hint: str) -> Reason:
    if name in REASONS:
        raise ValueError(f"reason {name} is defined twice")
    REASONS[name] = reason = Reason(name, code, text, hint)
    return reason


def why(reason: Reason, **facts: Any) -> Why:
    """Fill `reason`'s template. Raises KeyError for a fact that the template names and the caller forgot."""
    return Why(reason, reason.text.format(**facts))


def unsupported_error(function: str, reason: Why, where: Where) -> Unsupported:
    """What `nopython=True` raises: where, the source line, what was met, what to do."""
    reason = reason.inner or reason
    skipped = reason.code.startswith("MD3")
    otherwise = "it would run as plain Python" if skipped else "it would run with a graph break here"
    line = linecache.getline(where.filename, where.line).strip()
    shown = f"\n    {line}" if line else ""
    inside = "" if where.function == function else f" (inside {where.function}, which {function} calls)"
    error = Unsupported(
        f"{where}{inside}: {reason.text} [{reason.code}]{shown}\n  to do: {reason.hint}\n"
        f"  {function} was asked to be one graph (nopython/fullgraph); without that {otherwise}",
        reason,
    )
    error.where = where
    return error


# --- MD1xx: recompilations ---------------------------------------------------------------------------------------
SIZE_CHANGED = _row(
    "SIZE_CHANGED",
    "MD101",
    "the size of a tensor changed",
    "keep the size constant: pad to the largest one, or leave out the last short batch (drop_last=True)",
)
STRIDE_CHANGED = _row(
    "STRIDE_CHANGED", "MD102", "the strides of a tensor changed", "pass it contiguous: x.contiguous()"
)
DTYPE_CHANGED = _row(
    "DTYPE_CHANGED",
    "MD103",
    "the dtype or device of a tensor changed",
    "cast it where it is passed: x.to(...)",
)
GRAD_CHANGED = _row(
    "GRAD_CHANGED",
    "MD104",
    "requires_grad of a tensor or the grad mode changed",
    "call it in one grad mode, with tensors that agree in requires_grad",
)
INT_CHANGED = _row(
    "INT_CHANGED",
    "MD105",
    "an int (or other constant) argument varies",
    "pass a tensor; two values that come back are harmless",
)
FLOAT_CHANGED = _row("FLOAT_CHANGED", "MD106", "a float argument varies", "pass a tensor")
STATE_CHANGED = _row(
    "STATE_CHANGED",
    "MD107",
    "a global, closure variable, default or attribute varies",
    "keep it in a tensor (a buffer, in a module), or pass it as an argument",
)
FUNCTION_CHANGED = _row(
    "FUNCTION_CHANGED",
    "MD108",
    "another function, or another object that is compared by identity, in each call",
    "make it once, outside of the loop",
)
TYPE_CHANGED = _row("TYPE_CHANGED", "MD109", "the type of a value changed", "convert it where it is passed")
STRUCTURE_CHANGED = _row(
    "STRUCTURE_CHANGED",
    "MD110",
    "the length, keys, elements or attributes of a container changed",
    "pass only what is used, or stack it into one tensor",
)
ALIASING_CHANGED = _row(
    "ALIASING_CHANGED",
    "MD111",
    "two places hold one object where they held two, or the other way round",
    "pass a copy: x.clone()",
)
TORCH_STATE_CHANGED = _row(
    "TORCH_STATE_CHANGED",
    "MD112",
    "autocast, the default dtype, determinism or another mode of torch changed",
    "call it in one mode",
)
# (MD115 is LIMIT_HIT, below.)
OPTIONS_CHANGED = _row(
    "OPTIONS_CHANGED",
    "MD116",
    "the same function is compiled for another backend or other options",
    "call optimize once, with one backend object, and keep the result",
)
OBJECT_DIED = _row(
    "OBJECT_DIED",
    "MD117",
    "an object that an entry relies on died",
    "keep the object alive: make it once, outside of the function that uses it",
)
# --- MD2xx: graph breaks -----------------------------------------------------------------------------------------
TENSOR_BRANCH = _row(
    "TENSOR_BRANCH",
    "MD201",
    "branch on a tensor's value",
    "use torch.where or torch.cond, or move the test outside",
)
TENSOR_DATA = _row(
    "TENSOR_DATA",
    "MD203",
    "{name} needs the tensor's data",
    "return the tensor and convert it outside, or keep the value in a tensor",
)
TENSOR_TRUTH = _row(
    "TENSOR_TRUTH",
    "MD204",
    "truth value of a tensor outside a branch",
    "use torch operators instead of and/or/not/bool",
)
TENSOR_STATE = _row(
    "TENSOR_STATE",
    "MD205",
    "{name} reads or changes state of the tensor object that a graph cannot hold",
    "move it outside of the captured function",
)
METADATA_MUTATION = _row(
    "METADATA_MUTATION",
    "MD206",
    "{name} changes the shape or layout of an existing tensor",
    "use the out-of-place form",
)
PRINT = _row("PRINT", "MD210", "call of print", "print outside of the captured function")
UNSUPPORTED_CALL = _row(
    "UNSUPPORTED_CALL",
    "MD220",
    "call of {name}, which is neither a tensor operation nor Python that can be inlined",
    "move the call outside, or write it with torch operators",
)
DISABLED_CALL = _row("DISABLED_CALL", "MD221", "call of {name}, marked with disable", "remove the mark")
EXPLICIT_BREAK = _row("EXPLICIT_BREAK", "MD222", "minidynamo.graph_break() was called", "remove the call")
GLOBAL_STATE_CALL = _row(
    "GLOBAL_STATE_CALL",
    "MD223",
    "{name} changes or reads global state",
    "call it outside of the captured function",
)
INLINE_BREAK = _row(
    "INLINE_BREAK",
    "MD224",
    "call of {name}, inside which: {inner}",
    "mend the inner cause, or call it outside",
)
INLINE_DEPTH = _row(
    "INLINE_DEPTH", "MD225", "more than {limit} nested calls", "raise config.max_inline_depth, or use a loop"
)
GENERATOR_CALL = _row(
    "GENERATOR_CALL",
    "MD226",
    "call of the generator or coroutine function {name}",
    "iterate it outside, or use a list",
)
CALL_ARGUMENTS = _row(
    "CALL_ARGUMENTS",
    "MD227",
    "call of {name} with arguments that cannot be followed: {detail}",
    "pass plain arguments",
)
OPAQUE_VALUE = _row(
    "OPAQUE_VALUE",
    "MD230",
    "{operation} on a value of type {type}, which is not followed",
    "move it outside of the captured function",
)
MISSING_OPCODE = _row(
    "MISSING_OPCODE", "MD231", "missing: {opname}", "this part of Python is not captured yet; move it outside"
)
TRY_REGION = _row(
    "TRY_REGION",
    "MD232",
    "a try or with block around operators of a graph that changes its inputs in a way that could not be put back if it raised",
    "the rest of this function runs as plain Python (functions it calls are still captured); move the block outside, or do not change "
    "tensors in place that autograd follows",
)
EXCEPTION = _row(
    "EXCEPTION",
    "MD238",
    "an exception is raised or looked at here",
    "plain Python raises it; the function is captured again from its handler on",
)
GENERATOR_LIVE = _row(
    "GENERATOR_LIVE",
    "MD239",
    "a generator made here is still running where the graph ends",
    "consume it before that, or use a list",
)
STORE = _row(
    "STORE", "MD233", "{operation}: a side effect on {what}", "return the value and store it outside"
)
OPERATOR_FAILS = _row(
    "OPERATOR_FAILS",
    "MD234",
    "{name} raises {error}",
    "this is the program's own error; plain Python raises it",
)
OPERATOR_UNKNOWN = _row(
    "OPERATOR_UNKNOWN",
    "MD235",
    "{name} cannot be run on metadata: {error}",
    "move it outside of the captured function",
)
TENSOR_SUBCLASS = _row(
    "TENSOR_SUBCLASS",
    "MD236",
    "{type} is a tensor of a kind that is not followed ({detail})",
    "convert it to a plain torch.Tensor outside",
)
USER_OBJECT_KEY = _row(
    "USER_OBJECT_KEY", "MD237", "comparison or hashing of {type} runs user code", "compare plain values"
)
SET_ORDER = _row(
    "SET_ORDER",
    "MD245",
    "the order of a {type} is asked for that changed, or was made from one that came from outside",
    "iterate over sorted(...), or keep a dict or list",
)
IMPORT = _row(
    "IMPORT",
    "MD246",
    "import of {name}, which is not imported yet or is looked up in a way of its own",
    "import it at the top of the module",
)
CLASS_BODY = _row(
    "CLASS_BODY",
    "MD248",
    "a class is made here",
    "define the class outside of the captured function",
)
CONTEXT_STATE = _row(
    "CONTEXT_STATE",
    "MD247",
    "the context manager {name} {what}",
    "make it where it is entered, and keep graph breaks out of its block",
)
# --- MD3xx: frames that are not compiled ---------------------------------------------------------------------------
SKIP_GENERATOR = _row(
    "SKIP_GENERATOR",
    "MD301",
    "generators, coroutines and async functions are not compiled",
    "decorate what they call",
)
SKIP_MODULE_CODE = _row("SKIP_MODULE_CODE", "MD302", "module or class body", "nothing: it runs once")
SKIP_LIBRARY = _row(
    "SKIP_LIBRARY", "MD303", "code of {library}", "nothing: library code is entered by inlining only"
)
SKIP_NO_TENSORS = _row(
    "SKIP_NO_TENSORS", "MD304", "no tensor operation was met", "nothing: plain Python is as fast"
)
SKIP_FOREIGN_FUNCTION = _row(
    "SKIP_FOREIGN_FUNCTION",
    "MD305",
    "{name}, made by a function of another module, outlives the captured part",
    "call it in the same function, or make it outside",
)
SKIP_FIRST = _row("SKIP_FIRST", "MD306", "nothing was captured before: {inner}", "mend that cause")
SKIP_RESTARTS = _row(
    "SKIP_RESTARTS", "MD307", "more than {limit} graph-break decisions", "split the function"
)
SKIP_STEPS = _row(
    "SKIP_STEPS", "MD308", "more than {limit} instructions in one trace", "move the long loop outside"
)
SKIP_STATE = _row("SKIP_STATE", "MD309", "{what} is active", "leave that context before calling the function")
SKIP_INTERNAL = _row(
    "SKIP_INTERNAL", "MD310", "internal error: {error}", "please report it; the frame ran as plain Python"
)
SKIP_ARGUMENT = _row("SKIP_ARGUMENT", "MD311", "{error}", "change the function's signature as it says")
SKIP_CYCLIC = _row(
    "SKIP_CYCLIC", "MD312", "a {type} that contains itself", "build it outside of the captured function"
)
SKIP_RESUME = _row("SKIP_RESUME", "MD313", "plain Python cannot go on at {opname}", "split the expression")
SKIP_REBUILD = _row(
    "SKIP_REBUILD",
    "MD316",
    "after the graph {what} would have to be made again",
    "keep it in a function of its own",
)
SKIP_LOOP = _row(
    "SKIP_LOOP",
    "MD314",
    "after a graph break the frame goes on inside a loop, compiled for a value that each round changes ({guard})",
    "mend the break, or pass that value as a tensor",
)
SKIP_MODULE_CALL = _row(
    "SKIP_MODULE_CALL",
    "MD317",
    "the call of the module is not one graph ({inner})",
    "nothing: its forward is captured by itself, up to the break and behind it",
)
SKIP_RESERVED = _row(
    "SKIP_RESERVED",
    "MD315",
    "the variable {name} has a name that is reserved (it begins with '___')",
    "rename it",
)
SKIP_DISABLED = _row(
    "SKIP_DISABLED",
    "MD318",
    "the function is marked with disable(recursive=False)",
    "nothing: what it calls is captured",
)
LIMIT_HIT = _row(
    "LIMIT_HIT",
    "MD115",
    "{option} ({limit}) reached; last failing guard: {guard}",
    "keep the value constant, pass it as a tensor, or raise that limit in minidynamo.config",
)
RERUN = _row(
    "RERUN",
    "MD320",
    "the graph raised {error} but plain Python did not",
    "please report it: the operator behaves differently in a graph",
)
BACKEND_FAILED = _row(
    "BACKEND_FAILED",
    "MD330",
    "backend {backend} raised {error}",
    "mend the backend, or set config.suppress_errors",
)
