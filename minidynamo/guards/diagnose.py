"""Which guard failed and why, in the user's words. Runs on a miss only."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from minidynamo.events import GuardFailure, Where
from minidynamo.guards import py_leaves
from minidynamo.guards.rows import GuardRow
from minidynamo.guards.spoken import spoken
from minidynamo.guards.state_reads import read
from minidynamo.guards.text import text
from minidynamo.literals import is_literal, literal
from minidynamo.sources import FrameValues, Source
from minidynamo.static_access import (
    dict_keys,
    has_static_attr,
    instance_dict,
    is_subtype,
    static_attr,
    static_len,
    type_name,
)

_SHORT = 80


@dataclass(frozen=True, slots=True)
class Failure:
    """The first guard that does not hold.

    part: its text; row: the row, None for the validity flag; where: the place in the user's words ("argument
    n") expected, actual: short, metadata only for tensors; user: (filename, line) that made the guard, where
    known error: what the guard raised, as "KeyError: 'flag'", or None
    """

    part: str
    row: GuardRow | None
    where: str
    expected: str
    actual: str
    user: tuple[str, int] | None
    error: str | None = None

    def message(self) -> str:
        """One line: where, expected, found."""
        return f"{self.where}: expected {self.expected}, found {self.actual}"


def explain_failure(check: Any, frame: FrameValues) -> Failure | None:
    """The first failing part of `check` (a CheckFn) on `frame`, None when all hold."""
    if not check.validity.valid:
        return _died(check)
    values = {name: frame.locals[name] for name in check.names if name in frame.locals}
    scope = check.namespace | values | {"___globals": frame.globals, "___closure": frame.closure}
    suspect = check.failed_row(frame)
    for row in check.rows if suspect is None else (check.rows[suspect], *check.rows):
        failure = _failure(check, row, text(row), scope, frame)
        if failure is not None:
            return failure
    return None


def explain_failures(
    check: Any, frame: FrameValues, holding: set[GuardRow] | None = None
) -> tuple[GuardFailure, ...]:
    """Every guard of `check` that does not hold on `frame`, as text; consequences of a failed guard (places that are reached through
    its own, or whose type it tells) are left out: reading them might run code of the user's.

    `holding`: rows known to hold on this frame, added to; entries of one function have most rows in common.
    """
    holding = set() if holding is None else holding
    if not check.validity.valid:
        died = _died(check)
        return (_structured(died, frame, check.users.get(died.row)),)
    values = {name: frame.locals[name] for name in check.names if name in frame.locals}
    scope = check.namespace | values | {"___globals": frame.globals, "___closure": frame.closure}
    failed: set[Source] = set()
    state = ""
    out = []
    suspect = check.failed_row(frame)
    checks = check.checks if suspect is not None else ()
    for index, row in enumerate(check.rows):
        if suspect is not None and checks[index] < checks[suspect]:
            continue  # it holds: the native program has passed it
        if row in holding:
            continue
        paths = row.paths()
        if failed and any(step in failed for path in paths for step in (path, *path.prefixes())):
            continue
        failure = _failure(check, row, text(row), scope, frame)
        if failure is None:
            holding.add(row)
        else:
            failed.update(paths[:1])
            if row.kind == "GLOBAL_STATE":
                state = failure.actual
            elif _follows_from(state, row, failure):
                continue
            out.append(_structured(failure, frame, check.users.get(row)))
    return tuple(out)


def _follows_from(state: str, row: GuardRow, failure: Failure) -> bool:
    """A change of torch's state is what made this tensor guard fail: its dispatch keys are those of the thread too, and
    requires_grad counts only while grad mode is on."""
    if not state or row.kind != "TENSOR_MATCH":
        return False
    grad = "grad mode" in state or "inference mode" in state
    return (
        failure.expected.startswith("dispatch keys") or grad and failure.expected.startswith("requires_grad")
    )


def _failure(
    check: Any, row: GuardRow, part: str, scope: dict[str, Any], frame: FrameValues
) -> Failure | None:
    error = None
    try:
        if eval(compile(part, check.filename, "eval"), scope):
            return None
    except Exception as raised:  # a guard that raises is a failed guard; it is told as such
        error = _error_text(raised)
    return Failure(
        part=part,
        row=row,
        where=row.path.describe(),
        expected=_expected(check, row, frame),
        actual=_actual(row, frame, error),
        user=check.users.get(row),
        error=error,
    )


def _died(check: Any) -> Failure:
    """An entry that is not valid any more, and the place of the object whose death made it so, if that is known."""
    row = check.died()
    if row is None:
        said = ("this entry", "alive", "an object that it relies on died or changed")
        return Failure(VALID_TEXT, None, *said, None)
    words = str(check.expected.get(row, "the recorded object"))
    return Failure(
        VALID_TEXT, row, row.path.describe(), words, "another: that one died", check.users.get(row)
    )


def _structured(failure: Failure, frame: FrameValues, user: tuple[str, int] | None) -> GuardFailure:
    row = failure.row
    if row is None:
        return GuardFailure(
            "VALID",
            failure.part,
            "",
            failure.where,
            "other",
            "",
            ("name", ""),
            failure.expected,
            failure.actual,
        )
    said = spoken(row.path, frame)
    where = Where(user[0], user[1], "") if user is not None else None
    constant = type_name(type(row.literals[0])) if row.kind in CONSTANT_KINDS else ""
    return GuardFailure(
        kind="VALID" if failure.part == VALID_TEXT else row.kind,
        part=failure.part,
        path=row.path.name(),
        name=said.text,
        root=said.root,
        root_name=said.name,
        member=said.member,
        expected=failure.expected,
        actual=failure.actual,
        type=constant,
        actual_type=_type_now(row, frame),
        user=where,
        owner="module" if _in_module(row.path, frame) else "",
    )


VALID_TEXT = "___guarded_code.valid"
CONSTANT_KINDS = ("EQUALS_MATCH", "SAME_MATCH", "CONSTANT_MATCH")


def _type_now(row: GuardRow, frame: FrameValues) -> str:
    try:
        return type_name(type(row.path.read(frame)))
    except Exception:  # the place itself is gone
        return ""


def _in_module(path: Source, frame: FrameValues) -> bool:
    """The place is an attribute of an nn.Module."""
    for step in path.prefixes()[-2:]:
        try:
            if is_subtype(type(step.read(frame)), torch.nn.Module):
                return True
        except Exception:  # the place itself is gone
            return False
    return False


def _expected(check: Any, row: GuardRow, frame: FrameValues) -> str:
    words = check.expected.get(row, "the recorded value")
    if row.kind == "TENSOR_MATCH":
        return _tensor_sides(row, frame, words)[0]
    return str(words)


def _actual(row: GuardRow, frame: FrameValues, error: str | None) -> str:
    try:
        value = row.path.read(frame)
    except Exception as raised:  # the place itself is gone
        return f"nothing ({_error_text(raised)})"
    if row.kind == "TENSOR_MATCH":
        return _tensor_sides(row, frame, "")[1]
    try:
        actual = _ACTUAL.get(row.kind, _value)(row, value, frame)
    except Exception:  # the value is not even of the kind that the guard is about
        actual = short(value)
    return actual if error is None else f"{actual} ({error})"


def _tensor_sides(row: GuardRow, frame: FrameValues, words: str) -> tuple[str, str]:
    """Both sides of the first differing piece of metadata: `size (4, 8)`, `size (5, 8)`."""
    try:
        value = row.path.read(frame)
    except Exception:  # the place itself is gone: the whole expectation is told
        return words, "nothing"
    if not is_subtype(type(value), torch.Tensor) or id(type(value)) != row.literals[0]:
        return words, short(value)
    mismatch = py_leaves.tensor_mismatch(value, *row.literals)
    before, arrow, after = mismatch.partition(" -> ")
    if not arrow:
        return words, mismatch or short(value)
    part = next((part for part in py_leaves.SPEC_PARTS if before.startswith(part)), "")
    return before, f"{part} {after}"


def _value(row: GuardRow, value: object, frame: FrameValues) -> str:
    return short(value)


def _length(row: GuardRow, value: object, frame: FrameValues) -> str:
    return f"length {static_len(value)}"


def _type(row: GuardRow, value: object, frame: FrameValues) -> str:
    return f"type {type_name(type(value))}"


def _name(row: GuardRow, value: object, frame: FrameValues) -> str:
    return f"named {static_attr(value, '__name__')}"


def _other(row: GuardRow, value: object, frame: FrameValues) -> str:
    other: Source = row.literals[0]
    return f"another object than {other.describe()}" if row.kind == "DUPLICATE_INPUT" else "the same object"


def _shared(row: GuardRow, value: object, frame: FrameValues) -> str:
    own, others = (tuple(source.read(frame) for source in part.items) for part in row.literals)
    found = py_leaves.shared_with(own, others)
    if found is None:
        return "different objects"
    position, before = found
    everywhere = row.literals[1].items + row.literals[0].items
    return f"one object at {everywhere[before].describe()} and {row.literals[0].items[position].describe()}"


def _same_type(row: GuardRow, value: object, frame: FrameValues) -> str:
    return f"another {type_name(type(value))}"


def _function(row: GuardRow, value: object, frame: FrameValues) -> str:
    code = getattr(value, "__code__", None) if type(value) is type(_function) else None
    if code is None:
        return short(value)
    return f"code of {code.co_qualname} ({code.co_filename}:{code.co_firstlineno})"


def _state(row: GuardRow, value: object, frame: FrameValues) -> str:
    return py_leaves.global_state_mismatch(*row.literals) or "the recorded torch state"


def _state_read(row: GuardRow, value: object, frame: FrameValues) -> str:
    name, args, _ = row.literals
    return f"{name}{''.join(f' ({each})' for each in args)} {read(name, args)}"


def _presence(present: str) -> Callable[[GuardRow, object, FrameValues], str]:
    return lambda row, value, frame: f"{present} {literal(row.literals[0])}"


def _own_member(row: GuardRow, value: object, frame: FrameValues) -> str:
    own = instance_dict(value) or {}
    return next((f"an own {name}" for name in row.literals[0] if name in own), "no dictionary of its own")


def _filled(row: GuardRow, value: object, frame: FrameValues) -> str:
    name = py_leaves.first_filled(value, row.literals[0])
    found = static_attr(value, name) if name is not None and has_static_attr(value, name) else None
    if type(found) is OrderedDict:
        return f"{len(found)} element{'s' * (len(found) != 1)} in {name}"
    return f"{name} is {short(found)}"


def _keys(row: GuardRow, value: Any, frame: FrameValues) -> str:
    return _clip("keys (" + ", ".join(short(key) for key in dict_keys(value)) + ")")


def _left(row: GuardRow, value: object, frame: FrameValues) -> str:
    return f"{py_leaves.iterator_len(value)} elements left"


_ACTUAL: dict[str, Callable[[GuardRow, Any, FrameValues], str]] = {
    "TYPE_MATCH": _type,
    "LENGTH": _length,
    "NAME_MATCH": _name,
    "DUPLICATE_INPUT": _other,
    "NO_ALIAS": _other,
    "DISTINCT": _shared,
    "ID_MATCH": _same_type,
    "FUNCTION_MATCH": _function,
    "GLOBAL_STATE": _state,
    "STATE_READ": _state_read,
    "GLOBAL_ABSENT": _presence("a global named"),
    "OWN_ATTR": _presence("no attribute of its own named"),
    "NOT_OWN_ATTR": _presence("an attribute of its own named"),
    "HASATTR": _presence("no attribute"),
    "NOT_HASATTR": _presence("an attribute"),
    "LACKS_MEMBERS": _own_member,
    "EMPTY_MEMBERS": _filled,
    "DICT_CONTAINS": _presence("no key"),
    "DICT_HAS": _presence("no key"),
    "DICT_NOT_CONTAINS": _presence("key"),
    "DICT_LACKS": _presence("key"),
    "DICT_KEYS": _keys,
    "ITERATOR_LENGTH": _left,
}


def short(value: object) -> str:
    """A value in a few words: constants as they are, tensors by metadata, anything else by its type. No user
    code runs.
    """
    if is_literal(value):
        return _clip(literal(value))
    cls = type(value)
    if is_subtype(cls, torch.Tensor):
        try:
            spec = py_leaves.tensor_spec(value)
        except ValueError:
            return f"a {type_name(cls)}"
        return f"{type_name(cls)} {spec[2]} {py_leaves.sizes_text(spec[5])} on {spec[3]}"
    return f"a {type_name(cls)}"


def _error_text(raised: BaseException) -> str:
    """`KeyError: 'k'`. The key of a KeyError may be an object of the user's, whose repr is not run."""
    if type(raised) is KeyError and raised.args:
        return f"KeyError: {short(raised.args[0])}"
    return f"{type(raised).__name__}: {raised}"


def _clip(text: str) -> str:
    return text if len(text) <= _SHORT else f"{text[: _SHORT - 3]}..."
