"""Small programs that show a code of `reasons`, and what to write instead. A test runs each one and looks for
its code."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Example:
    """`source` defines `f`; the call f(args) under `optimize` meets the code. `instead`, where there is one,
    defines an `f` with the same result that is one graph."""

    source: str
    args: str = "torch.arange(3.0)"
    instead: str = ""


EXAMPLES: dict[str, Example] = {
    "TENSOR_BRANCH": Example(
        """\
def f(x):
    y = x + 1
    if y.sum() > 0:
        return y * 2
    return y * 3
""",
        instead="""\
def f(x):
    y = x + 1
    return torch.where(y.sum() > 0, y * 2, y * 3)
""",
    ),
    "TENSOR_DATA": Example(
        """\
def f(x):
    total = (x * 2).sum().item()
    return x / round(total)
""",
        instead="""\
def f(x):
    total = (x * 2).sum()
    return x / total.round()
""",
    ),
    "TENSOR_TRUTH": Example(
        """\
def f(x):
    y = x + 1
    return y, not y.sum()
""",
        instead="""\
def f(x):
    y = x + 1
    return y, y.sum() == 0
""",
    ),
    "PRINT": Example(
        """\
def f(x):
    y = x * 2
    print("half way")
    return y + 1
""",
        instead="""\
def f(x):
    y = x * 2
    return y + 1
""",
    ),
    "EXPLICIT_BREAK": Example(
        """\
def f(x):
    y = x * 2
    minidynamo.graph_break()
    return y + 1
"""
    ),
    "DISABLED_CALL": Example(
        """\
@minidynamo.disable
def log(x):
    return x

def f(x):
    y = x * 2
    return log(y) + 1
"""
    ),
    "INLINE_BREAK": Example(
        """\
def show(x):
    print("half way")
    return x

def f(x):
    y = x * 2
    return show(y) + 1
"""
    ),
    "STORE": Example(
        """\
def f(x):
    y = x * 2
    x.seen = True
    return y + 1
""",
    ),
    "METADATA_MUTATION": Example(
        """\
def f(x):
    y = x * 2
    x.unsqueeze_(0)
    return y + x
""",
        instead="""\
def f(x):
    y = x * 2
    x = x.unsqueeze(0)
    return y + x
""",
    ),
    "UNSUPPORTED_CALL": Example(
        """\
import time

def f(x):
    y = x * 2
    began = time.perf_counter()
    return y + 1, began
"""
    ),
    "GLOBAL_STATE_CALL": Example(
        """\
def f(x):
    y = x * 2
    torch.set_warn_always(False)
    return y + 1
"""
    ),
    "OPAQUE_VALUE": Example(
        """\
def f(x, options):
    y = x * 2
    return y + len(options)
""",
        args="torch.arange(3.0), bytearray(2)",
    ),
    "SET_ORDER": Example(
        """\
def f(x, names):
    y = x * 2
    names.add("c")
    for name in names:
        y = y + len(name)
    return y
""",
        args="torch.arange(3.0), {'a', 'b'}",
        instead="""\
def f(x, names):
    y = x * 2
    for name in sorted(names | {"c"}):
        y = y + len(name)
    return y
""",
    ),
    "TRY_REGION": Example(
        """\
def f(x):
    y = x * 2
    try:
        return x.add_(y)
    finally:
        y = None
""",
        args="torch.arange(3.0, requires_grad=True) * 1",
        instead="""\
def f(x):
    y = x * 2
    try:
        return x + y
    finally:
        y = None
""",
    ),
    "CLASS_BODY": Example(
        """\
def f(x):
    y = x + 1
    class Scale:
        by = 2
    return y * Scale.by
""",
        instead="""\
class Scale:
    by = 2
def f(x):
    y = x + 1
    return y * Scale.by
""",
    ),
    "SKIP_FIRST": Example(
        """\
def f(x):
    print("begin")
    return x * 2
""",
        args="3",
    ),
    "SKIP_DISABLED": Example(
        """\
def scaled(x):
    return x * 2
@minidynamo.disable(recursive=False)
def f(x):
    return scaled(x) + 1
"""
    ),
    "SKIP_NO_TENSORS": Example(
        """\
def f(n):
    return n + 1
""",
        args="3",
    ),
}
