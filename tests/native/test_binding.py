"""Calls of an OptimizedFunction bind arguments as CPython does, and read the live function."""

from __future__ import annotations

import itertools

import pytest

SIGNATURES = [
    "",
    "a",
    "a, b=2",
    "a, /, b",
    "a, b=2, /, c=3",
    "a=1, *rest",
    "*rest",
    "**more",
    "a, **more",
    "a, /, **more",
    "*, k",
    "*, k=5",
    "a, *, k=5, j",
    "a, b=2, *rest, k=5, **more",
    "a, b=2, /, c=3, *rest, k, j=7, **more",
]
NAMES = ("a", "b", "c", "rest", "k", "j", "more")

CALLS = [
    (args, dict(kwargs))
    for args in [(), (1,), (1, 2), (1, 2, 3), (1, 2, 3, 4)]
    for size in range(3)
    for kwargs in itertools.combinations([("a", 10), ("b", 20), ("k", 30), ("j", 40), ("z", 50)], size)
]


def outcome(fn, args, kwargs):
    try:
        return fn(*args, **kwargs)
    except TypeError as error:
        return str(error)


@pytest.mark.parametrize("signature", SIGNATURES)
@pytest.mark.parametrize("how", ["direct", "in place", "called"])
def test_arguments_arrive_as_in_a_plain_call(kit, signature, how):
    names = [n for n in NAMES if n in signature.replace("*", " ").replace("=", " ").replace(",", " ").split()]
    body = "".join(f"{n}, " for n in names)
    f = kit.define(f"def f({signature}): return ({body})")
    new = kit.define(f"def f({signature}):\n    local = 0\n    return ('new', {body})")
    if how == "called":  # such a frame does not fit into the chunk of the frame in whose place it should run
        new = new.__code__.replace(co_stacksize=100_000)
    checked = []
    kit.add(f, new, lambda *values: checked.append(values[:-2]) or True)
    call = kit.optimized(f) if how == "direct" else f
    for args, kwargs in CALLS:
        plain = outcome(f, args, kwargs)
        checked.clear()
        answer = outcome(call, args, kwargs) if how == "direct" else kit.hooked(outcome, call, args, kwargs)
        if isinstance(plain, str):
            assert answer == plain and not checked
        else:
            flat = [v for n in names if n not in ("rest", "more") for v in [plain[names.index(n)]]]
            flat += [plain[names.index(n)] for n in ("rest", "more") if n in names]
            assert answer == ("new", *plain) and checked == [tuple(flat)]
    good = sum(not isinstance(outcome(f, *call), str) for call in CALLS)
    event = {"direct": "hits_direct", "in place": "hits_in_place", "called": "hits_called"}[how]
    assert good and kit.counted(event) == (good,)


def test_many_arguments(kit):
    names = ", ".join(f"a{i}" for i in range(300))
    f = kit.define(f"def f({names}, *rest): return 0")
    new = kit.define(f"def f({names}, *rest): return ('new', a0, a299, rest)")
    kit.add(f, new, lambda *values: values[:300] == tuple(range(300)))
    assert kit.optimized(f)(*range(302)) == ("new", 0, 299, (300, 301))
    assert kit.hooked(f, *range(302)) == ("new", 0, 299, (300, 301))

    class Many:
        method = f

    bound = kit.optimized(Many().method)
    kit.C.reset_code(f.__code__)
    kit.add(f, new, lambda *values: values[1:300] == tuple(range(299)))
    answer = bound(*range(301))
    assert answer[0] == "new" and answer[2:] == (298, (299, 300))


def test_defaults_are_read_at_each_call(kit):
    f = kit.define("def f(a, b=1, *, k=2): return (a, b, k)")
    new = kit.define("def f(a, b=1, *, k=2): return ('new', a, b, k)")
    seen = []
    kit.add(f, new, lambda a, b, k, *_: seen.append((b, k)) or True)
    optimized = kit.optimized(f)
    assert optimized(0) == ("new", 0, 1, 2)
    f.__defaults__ = (10,)
    assert optimized(0) == ("new", 0, 10, 2)
    f.__kwdefaults__["k"] = 20
    assert optimized(0) == ("new", 0, 10, 20)
    f.__kwdefaults__ = {"k": 200}
    assert optimized(0) == ("new", 0, 10, 200)
    optimized.__defaults__ = (11,)
    assert f.__defaults__ == (11,) and optimized(0) == ("new", 0, 11, 200)
    assert seen == [(1, 2), (10, 2), (10, 20), (10, 200), (11, 200)]
    f.__defaults__ = None
    with pytest.raises(TypeError, match=r"missing 1 required positional argument: 'b'"):
        optimized(0)


def test_code_is_read_at_each_call(kit):
    f = kit.define("def f(a): return 'f'")
    g = kit.define("def g(a): return 'g'")
    kit.add(f, kit.define("def f(a): return 'new f'"))
    kit.add(g, kit.define("def g(a): return 'new g'"))
    optimized = kit.optimized(f)
    assert optimized(0) == "new f"
    f.__code__ = g.__code__
    assert optimized(0) == "new g"
    f.__code__ = kit.define("def h(a): return 'h'").__code__
    assert optimized(0) == "h"


def test_one_code_many_functions_closures_and_globals(kit):
    def make(cell):
        def f(a):
            return (cell, GLOBAL)  # noqa: F821

        return f

    def make_new(cell):
        def f(a):
            return ("new", cell, GLOBAL)  # noqa: F821

        return f

    functions = []
    for i in range(6):
        f = make(i)
        functions.append(type(f)(f.__code__, {"GLOBAL": -i, "__builtins__": {}}, "f", None, f.__closure__))
    seen = []
    kit.add(functions[0], make_new(0), lambda a, g, c: seen.append((g["GLOBAL"], c[0].cell_contents)) or True)
    expected = [("new", i, -i) for i in range(6)]
    assert [kit.optimized(f)(0) for f in functions] == expected
    assert kit.hooked(lambda: [f(0) for f in functions]) == expected
    assert seen == [(-i, i) for i in range(6)] * 2


def test_builtins_of_the_function_are_kept(kit):
    f = kit.define("def f(a): return len(a)")
    new = kit.define("def f(a): return ('new', len(a))")
    f = type(f)(f.__code__, {"__builtins__": {"len": lambda a: "own len"}})
    kit.add(f, new)
    assert kit.optimized(f)("x") == ("new", "own len") == kit.hooked(f, "x")


def test_arguments_that_become_cells(kit):
    f = kit.define("def f(a, b): return (lambda: a)() + b")
    new = kit.define(
        """
        def f(a, b):
            c = 1
            g = lambda: (a, b, c)
            return g()
        """
    )
    kit.add(f, new)
    assert kit.optimized(f)(1, 2) == (1, 2, 1) == kit.hooked(f, 1, 2)


def test_methods(kit):
    def wrap(f):
        return kit.optimized(f)

    class Base:
        def __init__(self):
            self.n = 1

        @wrap
        def method(self, x):
            return ("method", self.n, x)

        @classmethod
        @wrap
        def cls_method(cls, x):
            return ("cls", cls.__name__, x)

        @staticmethod
        @wrap
        def static(x):
            return ("static", x)

        @property
        @wrap
        def prop(self):
            return ("prop", self.n)

        def plain(self, x):
            return ("plain", self.n, x)

        def __call__(self, x):
            return ("call", self.n, x)

    class Derived(Base):
        def method(self, x):
            return ("derived", super().method(x))

    derived, base = Derived(), Base()
    bound = kit.optimized(base.plain)
    calls = [
        (lambda: base.method(5), ("method", 1, 5)),
        (lambda: Base.method(base, 5), ("method", 1, 5)),
        (lambda: derived.method(x=5), ("derived", ("method", 1, 5))),
        (lambda: Base.cls_method(5), ("cls", "Base", 5)),
        (lambda: derived.cls_method(5), ("cls", "Derived", 5)),
        (lambda: base.static(5), ("static", 5)),
        (lambda: Base.static(x=5), ("static", 5)),
        (lambda: base.prop, ("prop", 1)),
        (lambda: bound(5), ("plain", 1, 5)),
        (lambda: bound(x=5), ("plain", 1, 5)),
        (lambda: kit.optimized(base)(5), ("call", 1, 5)),
        (lambda: kit.optimized(Derived)().n, 1),
    ]
    assert [call() for call, _ in calls] == [expected for _, expected in calls]
    converted = []

    def convert(ctx, code, args, *_):
        converted.append(code.co_name)
        return kit.C.NO_COMPILE

    kit.C.set_convert_frame(convert)
    assert [call() for call, _ in calls] == [expected for _, expected in calls]
    assert converted == ["method", "cls_method", "static", "prop", "plain", "__call__", "__init__"]


def test_a_bound_method_hits_the_entries_of_its_function(kit):
    class Thing:
        def method(self, x, y=2):
            return "old"

    def new(self, x, y=2):
        return (type(self), x, y)

    thing = Thing()
    kit.add(Thing.method, new, lambda self, x, y, *_: self is thing)
    assert kit.optimized(thing.method)(5) == (Thing, 5, 2)
    assert kit.optimized(thing.method)(y=6, x=5) == (Thing, 5, 6)
    assert kit.optimized(Thing().method)(5) == "old"
    with pytest.raises(TypeError, match=r"unexpected keyword argument 'z'"):
        kit.optimized(thing.method)(z=1)


def test_keyword_names_need_not_be_interned(kit):
    f = kit.define("def f(a, b): return (a, b)")
    kit.add(f, kit.define("def f(a, b): return ('new', a, b)"))
    name = "".join(["", "b"])
    assert kit.optimized(f)(1, **{name + "": 2}) == ("new", 1, 2)
    with pytest.raises(TypeError, match="multiple values"):
        kit.optimized(f)(1, 2, a=3)
