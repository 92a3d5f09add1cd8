"""The emitted code of an earlier compilation, once more for another graph."""

from __future__ import annotations

import dataclasses
import types
from typing import Any

from ..cache import EntryHandle
from ..pycode import expr as E
from .emit import Output
from .reloads import FailedLoad


def emit_again(
    before: Output, code: types.CodeType, targets: tuple[Any, ...]
) -> tuple[Output, types.CodeType]:
    """`before`, and `code`, which was assembled of it, with handles of their own, for these targets."""
    handles = tuple(
        [EntryHandle(target, old.n_outputs, old.loaded) for target, old in zip(targets, before.handles)]
    )
    new: dict[int, Any] = {id(old): made for old, made in zip(before.handles, handles)}
    new |= {id(one): FailedLoad() for one in code.co_consts if type(one) is FailedLoad}
    direct = None if before.direct is None else (handles[0], *before.direct[1:])
    output = dataclasses.replace(
        before, body=with_constants(before.body, new), handles=handles, owned=targets, direct=direct
    )
    return output, code.replace(co_consts=tuple([new.get(id(one), one) for one in code.co_consts]))


FLAT = frozenset(
    (E.Local, E.Move, E.Global, E.Deref, E.Cell, E.Null, E.Delete, E.At, str, int, type(None))
)  # they hold no constants


def with_constants(part: Any, new: dict[int, Any]) -> Any:
    """Statements with other constants, `new` by the ids of those that they take the place of."""
    kind = type(part)
    if kind is tuple:
        return tuple([with_constants(item, new) if type(item) not in FLAT else item for item in part])
    if kind is E.Const:
        return E.Const(new[id(part.value)]) if id(part.value) in new else part
    if not isinstance(part, E.Value) or kind in FLAT:
        return part
    return kind(*[with_constants(getattr(part, name), new) for name in part.__match_args__])
