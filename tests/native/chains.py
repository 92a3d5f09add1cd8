"""Functions whose entries end with resume functions, made by hand."""

from __future__ import annotations

import sys
from typing import Any


def chain(kit: Any, parts: list[str], **names: object) -> Any:
    """A function whose entry's code runs `parts` one after the other: each is an expression in `a` and `k`, the rest follows. Gives
    the optimized function."""
    f = kit.define("def f(a, k): return 'old'", **names)
    following = None
    for number, part in reversed(list(enumerate(parts))):
        source = (
            f"def f(a, k): return ({part})"
            if following is None
            else f"def f(a, k): return (r := '<r>')(({part}), k)"
        )
        made = kit.define(source, **names)
        code = made if following is None else kit.with_constants(made, r=kit.C.ResumeFunction(following))
        if number == 0:
            kit.add(f, code, has_break=True)
            break
        rest = kit.define(f"def f(a, k): return 'plain {number}'", **names)
        kit.add(rest, code, has_break=following is not None)
        following = rest.__code__
    return kit.optimized(f)


def depth() -> int:
    """How many Python frames there are."""
    frame, count = sys._getframe(), 0
    while frame is not None:
        frame, count = frame.f_back, count + 1
    return count
