"""Blocks in blocks with a graph break at the heart: what lies behind the break is captured, whatever is open there."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable

import pytest

from minidynamo.testing import CompileCounterWithBackend
from tests.eager import check

PRELUDE = r"""
import contextlib, sys
class Manager:
    def __init__(self, log): self.log = log
    def __enter__(self): self.log.append("in"); return self
    def __exit__(self, kind, error, trace):
        self.log.append((kind, sys.exc_info()[0] if kind else None))
        return kind is KeyError
@contextlib.contextmanager
def generated(log):
    log.append("enter")
    try:
        yield len(log)
    finally:
        log.append(str(sys.exc_info()[0]))
def g(n): return 6 // n
"""


class Text:
    """Writes one program: each line that adds has a number of its own."""

    def __init__(self) -> None:
        self.numbers = itertools.count(2)

    def add(self) -> str:
        return f"y = y + {next(self.numbers)}.5\n"

    def around(self, body: str) -> str:
        return indented(self.add() + body + self.add())


def indented(text: str) -> str:
    return "".join(f"    {line}\n" for line in text.splitlines())


def with_(manager: str) -> Callable[[Text, str], str]:
    return lambda t, body: f"with {manager}:\n" + t.around(body)


def while_(t: Text, body: str) -> str:
    name = f"left{next(t.numbers)}"
    return f"{name} = 2\nwhile {name}:\n" + indented(f"{name} = {name} - 1\n") + t.around(body)


BLOCKS: dict[str, Callable[[Text, str], str]] = {
    "manager": with_("Manager(log)"),
    "generator": with_("generated(log)"),
    "no_grad": with_("torch.no_grad()"),
    "autocast": with_("torch.autocast('cpu', torch.bfloat16)"),
    "inference": with_("torch.inference_mode()"),
    "record": with_("torch.autograd.profiler.record_function('a')"),
    "device": with_("torch.device('cpu')"),
    "try": lambda t, body: (
        "try:\n" + t.around(body) + "except KeyError as e:\n" + indented("log.append(str(e))\n")
    ),
    "else": lambda t, body: (
        "try:\n" + indented(t.add()) + "except KeyError:\n    pass\nelse:\n" + t.around(body)
    ),
    "finally": lambda t, body: "try:\n" + t.around(body) + "finally:\n" + indented(t.add()),
    "handler": lambda t, body: (
        "try:\n" + indented("raise ValueError(3)\n") + "except ValueError as e:\n" + t.around(body)
    ),
    "cleanup": lambda t, body: "try:\n" + indented(t.add()) + "finally:\n" + t.around(body),
    "for": lambda t, body: "for i in range(2):\n" + t.around(body),
    "while": while_,
}
BREAKS = {
    "call": "minidynamo.graph_break()\n",
    "branch": "if y.sum() > 0:\n    y = y * 3.25\n",
    "comprehension": "y = y * len([minidynamo.graph_break() for _ in range(2)])\n",
    "raises": "minidynamo.graph_break()\ny = y / g(n)\n",
}


def program(blocks: tuple[str, ...], at_heart: str) -> str:
    text, body = Text(), BREAKS[at_heart]
    for name in reversed(blocks):
        body = BLOCKS[name](text, body)
    return PRELUDE + "def f(x, n, log):\n" + indented("y = x * 1.5\n" + body + text.add() + "return y\n")


def captured(blocks: tuple[str, ...], at_heart: str) -> None:
    """Like eager, also where it raises; and all that it adds is in graphs."""
    source = program(blocks, at_heart)
    graphs: list[str] = []

    def backend(module, inputs):
        graphs.append(str(module.graph))
        return module.forward

    call = "(lambda log: (f(T(3, requires_grad=True), {}, log), log))([])"
    seen = check(source, *[call.format(2)] * 2, backend=CompileCounterWithBackend(backend))
    added = re.findall(r"y [+*] (\d+\.\d+)", source)
    missing = [number for number in added if not any(f" {number})" in graph for graph in graphs)]
    assert not missing, (missing, seen.reasons, seen.skips, source)
    if at_heart == "raises":
        check(source, call.format(0), call.format(2), "f(T(3), 0, [])")


NAMES = list(BLOCKS)
# Each block inside and around each other one once, in turn with another break.
QUICK = [
    ((outer, inner), list(BREAKS)[(NAMES.index(outer) + 3 * NAMES.index(inner)) % 4])
    for outer, inner in itertools.product(NAMES, repeat=2)
    if (NAMES.index(outer) + NAMES.index(inner)) % 4 == 0
]


@pytest.mark.slow
@pytest.mark.parametrize(
    "blocks, at_heart", QUICK, ids=lambda value: value if type(value) is str else "-".join(value)
)
def test_two_blocks(blocks, at_heart):
    captured(blocks, at_heart)


@pytest.mark.slow
@pytest.mark.parametrize("at_heart", BREAKS)
@pytest.mark.parametrize("outer", NAMES)
def test_two_blocks_of_all_kinds(outer, at_heart):
    for inner in NAMES:
        captured((outer, inner), at_heart)


@pytest.mark.nightly
@pytest.mark.parametrize("inner", NAMES)
@pytest.mark.parametrize("outer", NAMES)
def test_three_blocks(outer, inner):
    """The break differs from triple to triple; each triple has one."""
    for number, middle in enumerate(NAMES):
        at_heart = list(BREAKS)[(number + NAMES.index(outer) + NAMES.index(inner)) % 4]
        captured((outer, middle, inner), at_heart)
