"""A captured graph as one short line: `a=x+1; a*2`.

Operators in the order in which they run; one whose value a later operator uses gets a letter. Outputs are not shown.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import Any

import torch.fx

INFIX: dict[Any, str] = {
    **{getattr(operator, name): symbol for name, symbol in zip(
        "add sub mul truediv floordiv mod pow matmul and_ or_ xor lshift rshift lt le eq ne gt ge".split(),
        "+ - * / // % ** @ & | ^ << >> < <= == != > >=".split(),
        strict=True,
    )},
    **{getattr(operator, f"i{name}"): symbol for name, symbol in zip(
        "add sub mul truediv floordiv mod pow matmul and or xor lshift rshift".split(),
        "+= -= *= /= //= %= **= @= &= |= ^= <<= >>=".split(),
        strict=True,
    )},
}  # fmt: skip
PREFIX: dict[Any, str] = {operator.neg: "-", operator.pos: "+", operator.invert: "~"}


def compact(module: torch.fx.GraphModule) -> str:
    """The operators of a graph."""
    names: dict[torch.fx.Node, str] = {}
    letters = (chr(code) for code in range(ord("a"), ord("z") + 1))
    parts = []
    for node in module.graph.nodes:
        if node.op == "placeholder":
            names[node] = node.name
        elif node.op != "output":
            text = _operation(node, lambda value: _value(value, names))
            if any(user.op != "output" for user in node.users):
                names[node] = next(letters)
                text = f"{names[node]}={text}"
            parts.append(text)
    return "; ".join(parts)


def _operation(node: torch.fx.Node, show: Callable[[Any], str]) -> str:
    args = [show(arg) for arg in node.args]
    keywords = [f"{key}={show(value)}" for key, value in node.kwargs.items()]
    if node.target in INFIX and len(args) == 2:
        return INFIX[node.target].join(args)
    if node.target in PREFIX:
        return PREFIX[node.target] + args[0]
    if node.target is operator.getitem:
        return f"{args[0]}[{args[1]}]"
    if node.target is operator.setitem:
        return f"{args[0]}[{args[1]}]={args[2]}"
    if node.target is getattr:
        return f"{args[0]}.{node.args[1]}"
    if node.op == "call_method":
        return f"{args[0]}.{node.target}({', '.join([*args[1:], *keywords])})"
    return f"{node.target.__name__}({', '.join([*args, *keywords])})"


def _value(value: Any, names: dict[torch.fx.Node, str]) -> str:
    if isinstance(value, torch.fx.Node):
        return names[value]
    if isinstance(value, slice):
        return ":".join(_bounds(value, names))
    if isinstance(value, tuple):
        return f"({', '.join(_value(item, names) for item in value)})"
    if isinstance(value, list):
        return f"[{', '.join(_value(item, names) for item in value)}]"
    return "..." if value is Ellipsis else repr(value)


def _bounds(value: slice, names: dict[torch.fx.Node, str]) -> Iterator[str]:
    for part in (value.start, value.stop, value.step)[: 2 if value.step is None else 3]:
        yield "" if part is None else _value(part, names)
