"""Nothing of the program's is kept alive: not by compiling, not by the cache, not by an exception. The collector is switched off."""

from __future__ import annotations

import gc
import types
import weakref
from collections.abc import Iterator
from typing import Any

import pytest
import torch

import minidynamo
from minidynamo import config
from tests.eager import Module, T, check

# what happens in f(x) while `x` and objects made by the caller must not stay alive: name -> program
KEEPERS: dict[str, str] = {
    "a graph": "def f(x, o):\n    return x + 1\n",
    "a graph break": "def f(x, o):\n    y = x + 1\n    print(end='')\n    return y * 2\n",
    "a branch on a tensor": "def f(x, o):\n    if x.sum() > 0:\n        return x + 1\n    return x\n",
    "an attribute": "def f(x, o):\n    return x + o.n\n",
    "an effect": "def f(x, o):\n    o.last = 3\n    return x + o.last\n",
    "an error of the program": "def f(x, o):\n    y = x + 1\n    return y[7]\n",
    "an error that is raised": "def f(x, o):\n    y = x + 1\n    raise ValueError(y)\n",
    "an assertion": "def f(x, o):\n    y = x + 1\n    assert o is None, 'no'\n",
    "an error that is handled": "def f(x, o):\n    try:\n        raise ValueError(x)\n    except ValueError as e:\n        return x + 1\n",
    "a closure": "def f(x, o):\n    def g():\n        return x + o.n\n    return g()\n",
    "a recursive closure": "def f(x, o):\n    def g(n):\n        return x if n == 0 else g(n - 1)\n    return g(2) + 1\n",
    "a generator": "def f(x, o):\n    return sum(x * i for i in range(2))\n",
    "objects in a circle": "class N: pass\ndef f(x, o):\n    n = N()\n    n.me = n\n    n.x = x\n    return n.x + 1\n",
    "a skipped frame": "def f(x, o):\n    return len([x, o])\n",
    "a loop with a break": "def f(x, o):\n    for i in range(3):\n        x = x + i\n        print(end='')\n    return x\n",
    "a generator that lives on": (
        "def f(x, o):\n    g = (x * i for i in range(3))\n    a = next(g)\n    print(end='')\n    return a + next(g)\n"
    ),
}


class Thing:
    n = 2


@pytest.fixture(scope="module", autouse=True)
def loaded() -> Iterator[None]:
    """Everything that is loaded lazily, and what other tests left, lies outside of the collector's view."""
    check("def f(x):\n    return torch.special.i0(x)\n", "f(T(1))")
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture(autouse=True)
def no_collector(loaded: None) -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def call(fn: Any, *args: Any) -> None:
    try:
        fn(*args)
    except Exception:
        pass


@pytest.mark.parametrize("source", KEEPERS.values(), ids=KEEPERS)
def test_arguments_die_with_the_call(source):
    f = minidynamo.optimize("eager")(Module(source).names["f"])
    with config.patch(verify=False):
        for _ in range(2):
            x, thing = T(3), Thing()
            alive = [weakref.ref(x), weakref.ref(thing)]
            call(f, x, thing)
            del x, thing
            assert [ref() for ref in alive] == [None, None]


@pytest.mark.parametrize("source", KEEPERS.values(), ids=KEEPERS)
def test_functions_and_code_die_with_the_program(source):
    module = Module(source)
    fn = module.names["f"]
    f = minidynamo.optimize("eager")(fn)
    call(f, T(3), Thing())
    alive = [weakref.ref(fn), weakref.ref(fn.__code__), weakref.ref(f)]
    module.names.clear()
    del module, fn, f
    assert [ref() for ref in alive] == [None, None, None]


def test_a_guarded_module_and_its_functions_die():
    other = types.ModuleType("other")
    exec("k = 2\ndef g(x):\n    return x * k\n", other.__dict__)
    module = Module("def f(x, m):\n    return m.g(x) + m.k\n")
    f = minidynamo.optimize("eager")(module.names["f"])
    assert torch.equal(f(T(2), other), T(2) * 2 + 2)
    alive = [weakref.ref(other), weakref.ref(other.g)]
    (entry,) = minidynamo.cache_entries(f)
    assert entry.valid
    other.__dict__.clear()
    del other
    assert [ref() for ref in alive] == [None, None]
    assert not entry.valid


def test_an_entry_dies_with_the_optimized_object():
    def f(x: torch.Tensor) -> torch.Tensor:
        return x + 1

    optimized = minidynamo.optimize("eager", isolate=True)(f)
    optimized(T(2))
    assert len(minidynamo.cache_entries(f)) == 1
    del optimized
    assert minidynamo.cache_entries(f) == []


@pytest.mark.slow
def test_compiling_again_and_again_leaves_nothing_behind():
    """Of ours: torch.fx remembers a line of source for each graph."""

    def f(x: torch.Tensor, n: int) -> torch.Tensor:
        y = x + n
        if y.sum() > 0:
            return y * 2
        return y

    def rounds(count: int) -> int:
        for n in range(count):
            minidynamo.reset()
            minidynamo.optimize("eager")(f)(T(2), n)
        minidynamo.reset()
        gc.collect()  # graphs of torch.fx are full of cycles
        kinds = (types.FunctionType, types.CodeType, types.FrameType, torch.Tensor)
        types_found = map(type, gc.get_objects())
        return sum(str(tp.__module__).startswith("minidynamo") or issubclass(tp, kinds) for tp in types_found)

    with config.patch(verify=False):
        rounds(5)
        before = rounds(5)
        assert rounds(20) == before
