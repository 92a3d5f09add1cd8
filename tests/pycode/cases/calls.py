"""Calls and arguments."""

# ruff: noqa: C408, SIM, UP028, UP031
# What the linter would rather not see is what these functions are for.
from __future__ import annotations

import functools

from tests.pycode.cases.support import Box, Sub, case


@case((5, 3))
def calls(x, y):
    return max(x, y), dict(a=x, b=y), int("7"), sorted([y, x], key=lambda v: -v), print.__name__


@case((5, 3))
def method_calls(x, y):
    return (
        Box(x).add(y),
        Box(x).add(y, scale=2),
        Sub(x).add(y),
        Box.of(x).value,
        Box.plus(x, y),
        Box(x).double,
    )


@case(([1, 2], {"scale": 3}))
def star_calls(args, kwargs):
    return (
        max(*args),
        Box(1).add(args[0], **kwargs),
        dict(**kwargs),
        Box.plus(*args),
        max(*args, *args, key=lambda v: -v),
    )


@case(({"a": 1}, {"a": 2}))
def merged_keywords(first, second):
    return dict(**first, **second)


@case((3,))
def stored_method(x):
    add = Box(x).add
    return add(1) + add(2, scale=add(0))


@case(())
def wrong_arguments():
    return Box.plus(1)


@case((1, 2))
def defaults(x, y=5, *rest, z=7, **more):
    return x, y, rest, z, more


@case((1,), (1, 2), (1, 2, 3, 4))
def varargs(x, *rest):
    total = x
    for value in rest:
        total += value
    return total, rest


@case((1, 2, 3))
def positional_only(x, /, y, *rest, key=1):
    return x + y + key, rest


@case((2,))
def nested_calls(x):
    return max(min(x, abs(-x)), len(str(int(x))), sum([x, max(x, 1)]))


@case(([3, 1, 2],))
def builtins_mix(v):
    return (
        list(zip(v, reversed(v), strict=True)),
        list(enumerate(v)),
        list(map(str, v)),
        list(filter(None, v)),
        any(v),
        sum(v),
    )


@case((3,))
def partials(x):
    add = functools.partial(Box.plus, x)
    return add(1), functools.reduce(lambda a, b: a * b, [1, 2, x])


@case((2,))
def recursion(n):
    return 1 if n <= 0 else n * recursion(n - 1)


@case((1, 2))
def argument_order(x, y):
    log = []

    def f(*args, **kwargs):
        return args, sorted(kwargs.items())

    def note(v):
        log.append(v)
        return v

    return f(note(x), *[note(y)], note(3), a=note(4), b=note(5), c=note(6)), log


@case((2,))
def star_in_the_middle(x):
    def f(*args):
        return args

    return f(*[1, 2], x, *(3,), *range(x)), f(*"ab"), f(*{}), f(x, *iter([5]))


@case(({"k": 1}, 5))
def keywords_only(kwargs, x):
    def f(*, k=0, j=9):
        return k, j

    return f(**kwargs), f(j=x), f(**kwargs, j=x), f(**{"j": x, **kwargs})


@case((5,))
def not_callable(x):
    return x()


@case((5,))
def unexpected_keyword(x):
    return Box(x).add(1, nothing=2)


@case((5,))
def star_of_no_iterable(x):
    return max(*x)


@case((5,))
def double_star_of_no_mapping(x):
    return dict(**x)


@case((3,))
def calls_of_results(x):
    def adder(n):
        return lambda v: v + n

    return (
        adder(1)(x),
        adder(adder(2)(x))(x),
        [adder(k) for k in range(3)][2](x),
        (lambda f: f(f))(lambda _: x),
    )


@case((3,))
def bound_and_unbound(x):
    box = Box(x)
    add, plus, of = box.add, Box.plus, Box.of
    return add(1), Box.add(box, 2), plus(1, x), of(x).value, Sub.add(Sub(x), 1), super(Sub, Sub(x)).add(1)


@case((4,))
def default_is_evaluated_once(x):
    def f(v, seen=[]):  # noqa: B006
        seen.append(v)
        return list(seen)

    return f(x), f(x + 1), f.__defaults__


@case((1, 2), (1,))
def keyword_defaults(a, b=10, *, c=20, **rest):
    return a, b, c, rest, defaults.__kwdefaults__ or {}


@case(("value",))
def getattr_setattr(name):
    box = Box(4)
    setattr(box, name + "s", getattr(box, name) + 1)
    return box.values, getattr(box, "none", "default"), hasattr(box, "x"), vars(box)


@case(([3, 1, 2],))
def sorting(v):
    v.sort(key=lambda n: (n % 2, -n), reverse=True)
    return v, sorted(v), min(v, key=abs), max([], default="none"), sorted("bca", reverse=True)


@case((3,))
def isinstance_chain(x):
    return isinstance(x, int), isinstance(x, (str, float)), issubclass(Sub, Box), type(x) is int, callable(x)


@case((12,))
def mutual_recursion(n):
    def even(k):
        return True if k == 0 else odd(k - 1)

    def odd(k):
        return False if k == 0 else even(k - 1)

    return even(n), odd(n), even(n + 1)


@case((6,))
def fibonacci(n):
    @functools.lru_cache(None)
    def fib(k):
        return k if k < 2 else fib(k - 1) + fib(k - 2)

    return fib(n), fib.cache_info().hits > 0


@case((3,))
def single_dispatch(x):
    @functools.singledispatch
    def show(v):
        return "object"

    @show.register
    def _(v: int):
        return "int"

    return show(x), show("s"), show(x > 1)


@case((2,))
def many_arguments(x):
    def f(a, b, c, d, e, f_, g, h, i=8, j=9, *, k=10, m=11):
        return a + b + c + d + e + f_ + g + h + i + j + k + m

    return f(x, x, 1, 2, 3, 4, 5, h=6), f(1, 2, 3, 4, 5, 6, 7, 8, 9, m=0, j=x)


@case((2,))
def kwargs_are_a_copy(x):
    def f(**kw):
        kw["new"] = 1
        return kw

    d = {"a": x}
    return f(**d), d
