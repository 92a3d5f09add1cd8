"""`del` of globals and of variables in cells."""

from __future__ import annotations

import pytest

from tests.eager import check

PROGRAMS = {
    # name -> (program, call, breaks)
    "global": ("g = 3\ndef f(x):\n    global g\n    y = x + g\n    del g\n    return y * 2\n", 0),
    "global made and deleted": ("def f(x):\n    global g\n    g = 4\n    y = x + g\n    del g\n    return y\n", 0),
    "global made again": ("g = 3\ndef f(x):\n    global g\n    del g\n    g = 5\n    return x + g\n", 0),
    "global of a builtin's name": ("len = 3\ndef f(x):\n    global len\n    y = x + len\n    del len\n    return y, len('ab')\n", 1),
    "global that is not there": ("def f(x):\n    global g\n    y = x + 1\n    del g\n    return y\n", 1),
    "global that is not there, handled": (
        "def f(x):\n    global g\n    y = x + 1\n    try:\n        del g\n    except NameError as e:\n        return y, str(e)\n", 1
    ),
    "global read after it": ("g = 3\ndef f(x):\n    global g\n    y = x + g\n    del g\n    return y + g\n", 1),
    "variable in a cell": ("def f(x):\n    k = 2\n    h = lambda: k\n    y = x + h()\n    del k\n    return y\n", 0),
    "variable in a cell, made again": (
        "def f(x):\n    k = 2\n    h = lambda: k\n    y = x + h()\n    del k\n    k = 5\n    return y + h()\n", 0
    ),
    "variable in a cell, read after it": (
        "def f(x):\n    k = 2\n    h = lambda: k\n    y = x + h()\n    del k\n    return y + h()\n", 1
    ),
    "argument in a cell": ("def f(x):\n    h = lambda: x\n    y = h() + 1\n    del x\n    return y * 2, 1\n", 0),
    "twice": ("def f(x):\n    k = 2\n    h = lambda: k\n    y = x + h()\n    del k\n    del k\n    return y\n", 1),
    "and a break": (
        "def f(x):\n    k = 2\n    h = lambda: k\n    y = x + h()\n    del k\n    print(end='')\n    try:\n        h()\n"
        "    except NameError as e:\n        return y * 2, str(e)\n", 1
    ),
    "of an outer variable": (
        "def make():\n    k = 3\n    def g(x):\n        nonlocal k\n        y = x + k\n        del k\n        k = 4\n        return y * k\n"
        "    return g\ninner = make()\ndef f(x):\n    return inner(x)\n", 1
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name):
    source, breaks = PROGRAMS[name]
    seen = check(source, "f(T(2))", "globals().update(g=7)", "f(T(2))")
    assert seen.graphs
    assert min(len(seen.breaks), 1) == breaks, seen.breaks


def test_of_a_global_of_another_module():
    source = (
        "import types\nother = types.ModuleType('other')\n"
        "exec('def h(x):\\n    global n\\n    y = x + n\\n    del n\\n    return y\\n', other.__dict__)\n"
        "def f(x):\n    other.n = 3\n    return other.h(x) * 2\n"
        "def g(x):\n    return other.h(x)\n"
    )
    check(source, "f(T(2))", "f(T(2))", "hasattr(other, 'n')", "g(T(2))")
