"""From failed guards to causes: the MD1xx code, what changed, old and new value. Text in, text out."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass

from ..events import GuardFailure, Recompile
from ..reasons import (
    ALIASING_CHANGED,
    DTYPE_CHANGED,
    FLOAT_CHANGED,
    FUNCTION_CHANGED,
    GRAD_CHANGED,
    INT_CHANGED,
    OBJECT_DIED,
    OPTIONS_CHANGED,
    SIZE_CHANGED,
    STATE_CHANGED,
    STRIDE_CHANGED,
    STRUCTURE_CHANGED,
    TORCH_STATE_CHANGED,
    TYPE_CHANGED,
    Reason,
)


@dataclass(frozen=True, slots=True)
class Change:
    """What changed: `reason` has the code; `name` as the program spells it; old and new value, short; `dimension` of a
    size that alone changed, else -1; `part` of a tensor's metadata or of torch's state."""

    reason: Reason
    name: str
    old: str
    new: str
    dimension: int = -1
    part: str = ""


def classify(failure: GuardFailure) -> Change:
    """The change that a failed guard tells. Total: a kind without a row of its own is a change of structure."""
    return _KINDS.get(failure.kind, _structure)(failure)


def as_the_program_says(event: Recompile) -> tuple[GuardFailure, ...]:
    """The failures of an event. In the call of a module `args[0]` is named after the parameter of `forward`."""
    if not event.module_call:
        return event.causes
    return tuple(_of_forward(failure, event.parameters) for failure in event.causes)


def _of_forward(failure: GuardFailure, parameters: tuple[str, ...]) -> GuardFailure:
    for index, parameter in enumerate(parameters[1:]):
        for text in (f"args[{index}]", f"kwargs[{parameter!r}]"):
            if failure.name.startswith(text):
                whole = failure.name == text
                return GuardFailure(
                    failure.kind,
                    failure.part,
                    failure.path,
                    parameter + failure.name[len(text) :],
                    "argument",
                    parameter,
                    ("name", parameter) if whole else failure.member,
                    *(failure.expected, failure.actual, failure.type, failure.actual_type, failure.user),
                )
    return failure


# --- tensors ---------------------------------------------------------------------------------------------------------
_PARTS: dict[str, Reason] = {
    "size": SIZE_CHANGED,
    "stride": STRIDE_CHANGED,
    "dtype": DTYPE_CHANGED,
    "device": DTYPE_CHANGED,
    "requires_grad": GRAD_CHANGED,
}


def _tensor(failure: GuardFailure) -> Change:
    part, _, old = failure.expected.partition(" ")
    told, _, new = failure.actual.partition(" ")
    reason = _PARTS.get(part)
    if reason is None or told != part:
        return Change(TYPE_CHANGED, failure.name, failure.expected, failure.actual)
    if part != "size":
        return Change(reason, f"{failure.name}.{part}", old, new, part=part)
    before, after = _numbers(old), _numbers(new)
    differing = [i for i, pair in enumerate(zip(before, after)) if pair[0] != pair[1]]
    if len(before) != len(after) or len(differing) != 1:
        return Change(reason, f"{failure.name}.size()", old, new, part=part)
    at = differing[0]
    return Change(reason, f"{failure.name}.size({at})", before[at], after[at], at, part)


def _numbers(text: str) -> list[str]:
    return [piece.strip() for piece in text.strip("()").split(",") if piece.strip()]


# --- constants -------------------------------------------------------------------------------------------------------
def _constant(failure: GuardFailure) -> Change:
    old, new = failure.expected, failure.actual
    if failure.type and failure.actual_type and failure.type != failure.actual_type:
        return Change(TYPE_CHANGED, failure.name, old, new)
    if failure.root != "argument" or failure.member[0] == "attr":
        return Change(STATE_CHANGED, failure.name, old, new)
    return Change(FLOAT_CHANGED if failure.type == "float" else INT_CHANGED, failure.name, old, new)


def is_number(text: str) -> bool:
    """`text` is the literal of an int or a float."""
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return False
    return type(value) in (int, float)


# --- the others ------------------------------------------------------------------------------------------------------
def _plain(reason: Reason) -> Callable[[GuardFailure], Change]:
    return lambda failure: Change(reason, failure.name, failure.expected, failure.actual)


_structure = _plain(STRUCTURE_CHANGED)


def _type(failure: GuardFailure) -> Change:
    return Change(
        TYPE_CHANGED,
        failure.name,
        failure.expected.removeprefix("type "),
        failure.actual.removeprefix("type "),
    )


def _length(failure: GuardFailure) -> Change:
    old, new = (text.removeprefix("length ") for text in (failure.expected, failure.actual))
    return Change(STRUCTURE_CHANGED, f"len({failure.name})", old, new)


def _function(failure: GuardFailure) -> Change:
    old, new = (text.removeprefix("code of ") for text in (failure.expected, failure.actual))
    return Change(FUNCTION_CHANGED, failure.name, old, new)


_GRAD_STATE = ("grad mode", "inference mode")


def _state(failure: GuardFailure) -> Change:
    pieces = failure.actual.split("; ")
    first = next((piece for piece in pieces if not piece.startswith("autocast cache")), pieces[0])
    before, _, new = first.partition(" -> ")
    part, _, old = before.rpartition(" ")
    reason = GRAD_CHANGED if part in _GRAD_STATE else TORCH_STATE_CHANGED
    return Change(reason, part or "torch's state", old or "as recorded", new or "changed", part=part)


_KINDS: dict[str, Callable[[GuardFailure], Change]] = {
    "TENSOR_MATCH": _tensor,
    "EQUALS_MATCH": _constant,
    "SAME_MATCH": _constant,
    "CONSTANT_MATCH": _constant,
    "TYPE_MATCH": _type,
    "GLOBAL_STATE": _state,
    "FUNCTION_MATCH": _function,
    **dict.fromkeys(("ID_MATCH", "NAME_MATCH"), _plain(FUNCTION_CHANGED)),
    **dict.fromkeys(("DUPLICATE_INPUT", "NO_ALIAS", "STORAGE_LAYOUT"), _plain(ALIASING_CHANGED)),
    **dict.fromkeys(("LENGTH",), _length),
    **dict.fromkeys(("VALID", "WEAKREF_ALIVE"), _plain(OBJECT_DIED)),
    "OPTIONS": _plain(OPTIONS_CHANGED),
    "SHAPE_ENV": _plain(SIZE_CHANGED),
}
