"""Blocks in blocks in blocks: each kind outside, in the middle and inside, with a call at the heart that may raise."""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any

from tests.pycode.cases import support
from tests.pycode.cases.support import case


def indented(text: str) -> str:
    return "".join(f"    {line}\n" for line in text.splitlines())


def note(name: str) -> str:
    return f"log.append(({name!r}, handled_name()))\n"


# What each is around a body; `name` tells one use from another.
BLOCKS: dict[str, Callable[[str, str], str]] = {
    "with": lambda name, body: f"with Manager(log, {name!r}, (KeyError,)):\n" + indented(body + note(name)),
    "try": lambda name, body: (
        "try:\n" + indented(body) + f"except IndexError as {name}:\n" + indented(note(name))
    ),
    "finally": lambda name, body: "try:\n" + indented(body) + "finally:\n" + indented(note(name)),
    "handler": lambda name, body: (
        "try:\n"
        + indented("fail(ValueError(1))\n")
        + f"except ValueError as {name}:\n"
        + indented(body + note(name))
    ),
    "cleanup": lambda name, body: "try:\n" + indented(note(name)) + "finally:\n" + indented(body),
    "unwinding": lambda name, body: (
        "try:\n"
        + indented("try:\n" + indented("fail(OSError(2))\n") + "finally:\n" + indented(body))
        + "except OSError:\n"
        + indented(note(name))
    ),
    "for": lambda name, body: f"for {name} in range(2):\n" + indented(body + note(name)),
    "while": lambda name, body: (
        f"{name} = 2\nwhile {name}:\n" + indented(f"{name} = max({name} - 1, 0)\n" + body)
    ),
    "comprehension": lambda name, body: (
        "log.append([max(i, 1) for i in range(2) if handled_name() or i])\n" + body
    ),
}
ERRORS = "(None, KeyError('k'), IndexError('i'), TypeError('t'))"
HEART = f"log.append(max(n, 0))\nif {ERRORS}[n]:\n    fail({ERRORS}[n])\n"


def function_of(kinds: tuple[str, ...]) -> Any:
    body = HEART
    for depth, kind in reversed(list(enumerate(kinds))):
        body = BLOCKS[kind](f"v{depth}", body)
    name = "nested_" + "_".join(kinds)
    source = f"def {name}(log, n):\n" + indented(body + note("end") + "return log\n")
    names = {**vars(support), "__name__": __name__}
    exec(compile(source, __file__, "exec"), names)
    made = names[name]
    assert type(made) is FunctionType
    return made


KINDS = list(BLOCKS)
for _first in range(len(KINDS)):
    _kinds = tuple(KINDS[(_first + step) % len(KINDS)] for step in (0, 1, 4))
    case(([], 0), ([], 1), ([], 2), ([], 3))(function_of(_kinds))
