"""Emitted code does not keep what it no longer needs.

The temporaries of emitted code (`___...`) are given up at their last use: a resume function may run for long, and an exception that
passes keeps the frame and all its locals alive.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from ..exc import InternalError
from ..pycode import expr as E


def move(body: E.Body) -> E.Body:
    """The same statements, with the last use of each temporary as a `Move`. A temporary that is never used is not kept at all."""
    return _body(body, set())


def is_temporary(name: str) -> bool:
    return name.startswith("___")


def _body(body: E.Body, live: set[str]) -> E.Body:
    """`live` are the temporaries that are used after the body; it becomes those that are used from its beginning on."""
    done = [_statement(statement, live) for statement in reversed(body)]
    return tuple(reversed(done))


def _statement(s: E.Stmt, live: set[str]) -> E.Stmt:
    if isinstance(s, E.Assign):
        if is_temporary(s.name) and s.name not in live:
            return E.Do(_part(s.value, live))
        live.discard(s.name)
        return E.Assign(s.name, _part(s.value, live))
    if isinstance(s, E.Branch):
        taken, fallthrough = set(live), set(live)
        blocks = _body(s.taken, taken), _body(s.fallthrough, fallthrough)
        live |= taken | fallthrough
        return E.Branch(s.opname, _parts(s.operands, live), *blocks)
    if isinstance(s, E.IterBranch):
        more, done = set(live), set(live)
        blocks = _body(s.more, more), _body(s.done, done)
        live |= (more | done) - {s.iter_name, s.item_name}
        return E.IterBranch(_part(s.iterator, live), *blocks, s.iter_name, s.item_name)
    if isinstance(s, E.Rescue):  # it may stop anywhere: nothing is given up inside
        used = _names(s.body)
        needed = live | used
        kept = tuple(_kept(a, needed) for a in s.body)
        assigned = {a.name for a in s.body if isinstance(a, E.Assign)}
        assigned.update(
            name for a in s.body if isinstance(a, E.Apply) for name in a.names if name is not None
        )
        live -= assigned
        live |= used - assigned
        return E.Rescue(kept, s.value)
    if isinstance(s, E.Catch):
        return _catch(s, live)
    if isinstance(s, E.Handling):
        body = _body(s.body, live)
        return E.Handling(_part(s.exception, live), body)
    if isinstance(s, E.Apply):
        live.difference_update(name for name in s.names if name is not None)
        return E.Apply(s.names, s.opname, s.arg, _parts(s.operands, live))
    return _fields(s, live)


def _kept(s: E.Stmt, needed: set[str]) -> E.Stmt:
    """`s` without what it assigns to locals that nobody needs."""
    if isinstance(s, E.Assign) and s.name not in needed:
        return E.Do(s.value)
    if isinstance(s, E.Apply):
        names = tuple([name if name in needed else None for name in s.names])
        return E.Apply(names, s.opname, s.arg, s.operands)
    return s


def _catch(s: E.Catch, live: set[str]) -> E.Catch:
    """The body may stop anywhere: what the handler needs is not given up inside. (The handler returns, and the body assigns
    nothing that it needs.)"""
    needed: set[str] = set()
    handler = _body(s.handler, needed)
    needed.discard(s.name)
    live |= needed
    body = _body(s.body, live)
    if not needed <= live or not isinstance(handler[-1], E.Return):
        raise InternalError(f"a handler that does not fit its body: {E.source(s)}")
    return E.Catch(body, s.name, handler)


def _parts(items: tuple[E.Expr, ...], live: set[str]) -> tuple[E.Expr, ...]:
    return tuple(reversed([_part(item, live) for item in reversed(items)]))


def _part(e: E.Expr, live: set[str]) -> E.Expr:
    if isinstance(e, E.Local):
        if not is_temporary(e.name) or e.name in live:
            return e
        live.add(e.name)
        return E.Move(e.name)
    return _fields(e, live)


def _fields(node: Any, live: set[str]) -> Any:
    """Parts in the order opposite to that in which they are evaluated, which is the order of the fields."""
    if isinstance(node, E.Map):  # evaluated in pairs
        pairs = [part for pair in zip(node.keys, node.values, strict=True) for part in pair]
        parts = _parts(tuple(pairs), live)
        return E.Map(parts[::2], parts[1::2])
    changes: dict[str, Any] = {}
    for field in reversed(_names_of_fields(type(node))):
        value = getattr(node, field)
        if isinstance(value, E.Expr):
            changes[field] = _part(value, live)
        elif isinstance(value, tuple) and value and isinstance(value[0], E.Expr):
            changes[field] = _parts(value, live)
    return dataclasses.replace(node, **changes) if changes else node


_known: dict[type, tuple[str, ...]] = dict.fromkeys((E.Const, E.Global, E.Deref, E.Cell, E.Null), ())


def _names_of_fields(cls: type) -> tuple[str, ...]:
    """Where an expression or statement may have parts."""
    if cls not in _known:
        _known[cls] = tuple(field.name for field in dataclasses.fields(cls))
    return _known[cls]


def _names(body: E.Body) -> set[str]:
    """The locals that statements use."""
    found: set[str] = set()
    waiting: list[Any] = [body]
    while waiting:
        node = waiting.pop()
        if type(node) is E.Local:
            found.add(node.name)
        elif type(node) is tuple:
            waiting += node
        elif isinstance(node, (E.Expr, E.Stmt)):
            for field in _names_of_fields(type(node)):
                waiting.append(getattr(node, field))
    return found
