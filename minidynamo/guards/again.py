"""Guards of an earlier compilation, once more for a frame whose tensors have other sizes and whose numbers are others."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Sequence
from typing import Any

from minidynamo.guards.builder import READ_ERRORS, GuardBuilder, Rows
from minidynamo.guards.check_fn import CheckFn, CheckFunctionManager
from minidynamo.guards.guard import make_guard
from minidynamo.guards.rows import GuardRow
from minidynamo.sources import FrameValues, Source

CONSTANTS = ("EQUALS_MATCH", "SAME_MATCH")
SIZES = 5  # the literals of a TENSOR_MATCH from here on are sizes and strides


class FreshRows:
    """Reads the places of earlier rows in a frame and makes new rows of what is there. `errors`: what reading may raise."""

    errors = READ_ERRORS

    def __init__(self, frame: FrameValues, rows: Sequence[GuardRow]) -> None:
        self._builder = GuardBuilder(frame, Rows())
        self._tensors = {row.path: row for row in rows if row.kind == "TENSOR_MATCH"}
        self._constants = {row.path: row for row in rows if row.kind in CONSTANTS}

    def read(self, source: Source) -> Any:
        """The value now. Raises one of `errors`."""
        return self._builder.read(source)

    def known_constant(self, source: Source) -> Any:
        """The number that the earlier rows want there; None where there is no such row."""
        row = self._constants.get(source)
        return None if row is None else row.literals[0]

    def tensor(self, source: Source) -> tuple[GuardRow, GuardRow, str] | None:
        """(earlier row, new row, expectation in words); None where they differ in more than sizes and strides."""
        before, made = self._tensors.get(source), self._made(source, GuardBuilder.TENSOR_MATCH)
        if before is None or before.literals[:SIZES] != made[0].literals[:SIZES]:
            return None
        return before, *made

    def constant(self, source: Source) -> tuple[GuardRow, GuardRow, str] | None:
        """The same of a number; None where the new one is guarded in another way."""
        before, made = self._constants.get(source), self._made(source, GuardBuilder.EQUALS_MATCH)
        return None if before is None or before.kind != made[0].kind else (before, *made)

    def _made(self, source: Source, create_fn: Any) -> tuple[GuardRow, str]:
        create_fn(self._builder, make_guard(source, create_fn))
        return next(reversed(self._builder.out.expected.items()))


def check_again(
    manager: CheckFunctionManager,
    before: CheckFn,
    changed: dict[GuardRow, tuple[GuardRow, str]],
    inputs: Iterable[Source] | None,
) -> CheckFn | None:
    """`before` with other rows in the place of `changed`, for the frame of `manager`; None where it does not hold there, or where an
    object that it identifies has died."""
    objects = [ref() if type(ref) is weakref.ref else ref for ref in before.keep]
    if any(one is None for one in objects):
        return None
    new = {row: changed[row][0] if row in changed else row for row in before.rows}
    words = {new[row]: changed[row][1] if row in changed else text for row, text in before.expected.items()}
    users = {new[row]: user for row, user in before.users.items()}
    made = manager.compiled(tuple(new.values()), words, users, dict(zip(before.ids, objects)), inputs)
    return made if made.run(manager.frame) else None
