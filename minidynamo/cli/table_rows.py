"""The rows of `minidynamo tables`, read from the tables themselves."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from minidynamo import config, logs
from minidynamo.backends import registry as backends
from minidynamo.debug.show import place
from minidynamo.graph.meta import RULES as META_RULES
from minidynamo.guards.rows import KINDS
from minidynamo.pycode.canon import CANON
from minidynamo.reasons import REASONS
from minidynamo.rules import builtins, control, torch_exceptions
from minidynamo.rules.trace_rules import LIBRARIES
from minidynamo.translate.handlers.table import HANDLERS, NOT_CAPTURED
from minidynamo.translate.root import PLAIN_OPS
from minidynamo.variables import registry

Rows = list[tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class TableOf:
    """One table: what it decides, its columns, and how its rows are made."""

    doc: str
    columns: tuple[str, ...]
    rows: Callable[[], Rows]


def _inner(fn: Any) -> Any:
    """The function that somebody wrote, inside of wrappers that helpers put around it."""
    fn = inspect.unwrap(fn)
    while inspect.isfunction(fn) and "<locals>" in fn.__qualname__:
        inner = inspect.getclosurevars(fn).nonlocals.get("fn")
        if not inspect.isfunction(inner):
            break
        fn = inner
    return fn


def _source(fn: Any) -> str:
    """file:line of a Python function; nothing for others."""
    code = getattr(_inner(fn), "__code__", None)
    return place(code.co_filename, code.co_firstlineno) if code is not None else ""


def _row_of(key: Any, fn: Any) -> tuple[str, str, str]:
    """What is looked up, the function that it leads to, and where that is."""
    return _name(key), _inner(fn).__qualname__, _source(fn)


def _name(value: Any) -> str:
    """How a program writes a callable or type."""
    if isinstance(value, str):
        return value
    if isinstance(value, tuple):
        return f"Tensor.{value[1]}" if value[0] == "method" else str(value)
    module = (getattr(value, "__module__", None) or "").lstrip("_")
    name = getattr(value, "__qualname__", None) or getattr(value, "__name__", None) or type(value).__name__
    return name if module in ("", "builtins") else f"{module}.{name}"


def _exceptions(kind: str, prefix: str, table: dict[str, str]) -> Rows:
    """Rows of a table reason -> names separated by spaces."""
    return [(f"{prefix}.{name}", kind, why) for why, names in table.items() for name in names.split()]


def _sorted(rows: Rows) -> Rows:
    return sorted(rows)


def _effect(count: Any) -> str:
    """A count that may depend on the argument."""
    return "by argument" if callable(count) else str(count)


TABLES: dict[str, TableOf] = {
    "handlers": TableOf(
        "canonical instructions that are executed symbolically",
        ("instruction", "handler", "where"),
        lambda: _sorted([_row_of(op, fn) for op, fn in HANDLERS.items()]),
    ),
    "not_captured": TableOf(
        "canonical instructions that end the graph, and with which reason",
        ("instruction", "code", "reason"),
        lambda: _sorted([(op, row.code, row.name) for op, row in NOT_CAPTURED.items()]),
    ),
    "plain_ops": TableOf(
        "instructions that emitted code runs in plain Python at a break: operands, results",
        ("instruction", "operands", "results"),
        lambda: _sorted([(op, _effect(a), _effect(b)) for op, (a, b) in PLAIN_OPS.items()]),
    ),
    "wrappers": TableOf(
        "exact type of a real value -> what makes its tracker",
        ("type", "wrapper", "where"),
        lambda: _sorted([_row_of(tp, fn) for tp, fn in registry.BY_TYPE.items()]),
    ),
    "predicates": TableOf(
        "asked in this order when no exact type matches",
        ("predicate", "wrapper", "where"),
        lambda: [_row_of(name, fn) for name, _, fn in registry.BY_PREDICATE],
    ),
    "builtins": TableOf(
        "calls with a rule of their own",
        ("function", "rule", "where"),
        lambda: _sorted([_row_of(fn, rule) for fn, rule in {**builtins.RULES, **control.RULES}.items()]),
    ),
    "pure": TableOf(
        "builtins that are run while tracing when all arguments are constants",
        ("function",),
        lambda: _sorted([(_name(fn),) for fn in builtins.PURE]),
    ),
    "torch_functions": TableOf(
        "torch functions and tensor methods that never go into a graph as they are",
        ("name", "kind", "why"),
        lambda: _sorted(
            _exceptions("function", "torch", torch_exceptions.FUNCTION_EXCEPTIONS)
            + _exceptions("method", "Tensor", torch_exceptions.METHOD_EXCEPTIONS)
        ),
    ),
    "metadata": TableOf(
        "operators whose result's metadata is worked out by a rule (others: fake tensors)",
        ("operator", "rule", "where"),
        lambda: _sorted([_row_of(op, rule) for op, rule in META_RULES.items()]),
    ),
    "guards": TableOf(
        "kinds of guard rows: the text of each, its rank, its meaning",
        ("kind", "text", "cost", "meaning"),
        lambda: [(name, kind.template, str(kind.cost), kind.doc) for name, kind in KINDS.items()],
    ),
    "reasons": TableOf(
        "why graphs break and frames are not compiled",
        ("code", "name", "text", "to do"),
        lambda: _sorted([(row.code, row.name, row.text, row.hint) for row in REASONS.values()]),
    ),
    "libraries": TableOf(
        "code that is never compiled as a frame of its own; asked in this order",
        ("library", "where"),
        lambda: [(row.name, _source(row.holds)) for row in LIBRARIES],
    ),
    "canon": TableOf(
        "the canonical instruction set",
        ("instruction", "argument", "stack effect", "meaning"),
        lambda: [(row.name, row.arg_kind, _effect(row.stack_effect), row.doc) for row in CANON.values()],
    ),
    "backends": TableOf(
        "registered backends",
        ("name", "where"),
        lambda: [(each.name, _source(each.compiler_fn)) for each in backends.own_backends()],
    ),
    "config": TableOf(
        "options: value now, meaning",
        ("name", "value", "meaning"),
        lambda: [(name, repr(getattr(config, name)), row.doc) for name, row in config.OPTIONS.items()],
    ),
    "log_topics": TableOf("topics of MINIDYNAMO_LOG", ("name",), lambda: [(name,) for name in logs.TOPICS]),
}
