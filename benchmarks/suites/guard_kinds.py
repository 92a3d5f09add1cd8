"""Programs whose entries have many guards of one kind. They are no workloads: one measure takes them all (`measures.guarding`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch

from benchmarks.workloads import Case

COUNT = 32
X = torch.ones(4)


def function(body: str, parameters: str = "x, values", **names: Any) -> Callable[..., Any]:
    """`def f(PARAMETERS): BODY`, then `return x + 1`."""
    scope: dict[str, Any] = {"torch": torch, **names}
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    exec(f"def f({parameters}):\n{lines}    return x + 1\n", scope)
    return scope["f"]  # type: ignore[no-any-return]


def each(text: str, count: int = COUNT) -> str:
    """One line per number."""
    return "\n".join(text.replace("#", str(i)) for i in range(count))


class Holder:
    """Attributes a0, a1, ..."""

    def __init__(self) -> None:
        for i in range(COUNT):
            setattr(self, f"a{i}", i)


class Methods:
    """Methods m0, m1, ... and attributes c0, c1, ... of the class."""


for i in range(COUNT):
    setattr(Methods, f"m{i}", lambda self: None)
    setattr(Methods, f"c{i}", i)


class Keys(dict):  # type: ignore[type-arg]
    """A dict that overrides `in`."""

    def __contains__(self, key: object) -> bool:
        return dict.__contains__(self, key)


class Marker:
    """An object that is compared by identity."""


def functions() -> tuple[Callable[[int], int], ...]:
    scope: dict[str, Any] = {}
    exec("\n".join(f"def g{i}(v):\n    return v + {i}" for i in range(COUNT)), scope)
    return tuple(scope[f"g{i}"] for i in range(COUNT))


BUILTINS = "abs all any bool callable chr dict divmod enumerate float hash id int isinstance iter len list max min next".split()


def rows() -> Iterator[tuple[str, Callable[..., Any], tuple[Any, ...]]]:
    """Name, function, arguments after the tensor."""
    whole = torch.ones(COUNT + 4)
    numbers, strings = list(range(COUNT)), [f"word {i}" for i in range(COUNT)]
    keys = {text: i for i, text in enumerate(strings)}
    markers = [Marker() for _ in range(COUNT)]
    total = "total = 0\n"
    yield "numbers", function(total + "for v in values:\n    total = total + v"), (numbers,)
    yield "strings", function("for v in values:\n    v.upper()"), (strings,)
    yield "floats", function("t = 0.0\nfor v in values:\n    t = t + v"), ([i / 7 for i in range(COUNT)],)
    yield "odd floats", function("t = 0.0\nfor v in values:\n    t = t + v"), ([-0.0 for _ in numbers],)
    yield "singletons", function("for v in values:\n    x = x if v is None else x * 2"), ([None] * COUNT,)
    yield "same", function(total + each("total = total + (values[#] is m#)"), **{
        f"m{i}": marker for i, marker in enumerate(markers)
    }), (markers,)  # fmt: skip
    yield "functions", function(total + "for g in values:\n    total = g(total)"), (functions(),)
    yield (
        "lengths",
        function(total + "for v in values:\n    total = total + len(v)"),
        ([[0] * i for i in numbers],),
    )
    yield "tensors", function("for v in values:\n    x = x + v"), ([torch.ones(4) for _ in numbers],)
    yield "one tensor in many places", function("for v in values:\n    x = x + v"), ([torch.ones(4)] * COUNT,)
    yield "changed tensors", function("for v in values:\n    v.add_(1)"), ([torch.ones(4) for _ in numbers],)
    yield "views", function("for v in values:\n    v.add_(1)"), (list(torch.ones(COUNT, 4)),)
    yield "overlapping views", function("for v in values:\n    v.add_(1)"), (
        [whole[i : i + 4] for i in numbers],
    )  # fmt: skip
    yield "changed lists", function(each("values[#].append(1)")), ([[] for _ in numbers],)
    yield "changed and other lists", function(each("a[#].append(1)\nlen(b[#])"), "x, a, b"), (
        [[] for _ in numbers],
        [[] for _ in numbers],
    )  # fmt: skip
    yield (
        "state of torch",
        function("x = x * torch.backends.cudnn.benchmark * torch.get_num_threads()", "x"),
        (),
    )
    yield "keys of subclasses", function(total + each("total = total + ('word #' in values)")), (Keys(keys),)
    yield (
        "keys that subclasses lack",
        function(total + each("total = total + ('other #' in values)")),
        (Keys(keys),),
    )
    yield "attributes", function(total + each("total = total + values.a#")), (Holder(),)
    yield "attributes found", function(total + each("total = total + hasattr(values, 'a#')")), (Holder(),)
    yield "methods found", function(total + each("total = total + hasattr(values, 'm#')")), (Methods(),)
    yield "attributes of the class", function(total + each("total = total + values.c#")), (Methods(),)
    yield "attributes not found", function(each("hasattr(values, 'b#')")), (Holder(),)
    yield "changed attributes", function(each("values.a# = #")), (Holder(),)
    yield "keys found", function(each("'word #' in values")), (keys,)
    yield "keys not found", function(each("'other #' in values")), (keys,)
    yield "keys in order", function(total + "for k in values:\n    total = total + values[k]"), (keys,)
    yield "dictionaries", function(
        total + "for d in values:\n    for k in d:\n        total = total + d[k]"
    ), ([{"a": i, "b": i} for i in numbers],)  # fmt: skip
    yield "elements found", function(each("# in values")), (set(numbers),)
    yield "elements not found", function(each("(# + 100) in values")), (set(numbers),)
    yield (
        "sets",
        function(total + "for s in values:\n    total = total + len(s | {1})"),
        ([{i} for i in numbers],),
    )
    yield "sets in order", function(
        total + "for s in values:\n    for v in s:\n        total = total + v"
    ), ([{i, i + 1} for i in numbers],)  # fmt: skip
    yield "classes", function("for v in values:\n    issubclass(v, Exception)"), (
        [type(f"C{i}", (Exception,), {}) for i in numbers],
    )  # fmt: skip
    yield "names", function("for v in values:\n    x = x + len(v.__name__)"), (functions(),)
    yield "builtins", function("\n".join(f"{name}" for name in BUILTINS), "x"), ()
    yield "modules", function("for m in values:\n    x = m(x)"), ([torch.nn.ReLU() for _ in numbers],)
    yield "linear layers", function("for m in values:\n    x = m(x)"), (
        [torch.nn.Linear(4, 4) for _ in numbers],
    )  # fmt: skip


def programs() -> dict[str, Case]:
    """Name -> case."""
    return {name: Case(fn, (X.clone(), *args)) for name, fn, args in rows()}
