"""Functions of many shapes, each with arguments to call it with.

Results are plain data (compared by `==` and by type), so are the arguments, which are copied before each call
and compared after it too.
"""

# ruff: noqa: B002, B007, B023, B904, C408, C416, F821, PIE800, UP031
# What the linter would rather not see is what these functions are for.
from __future__ import annotations

import contextlib
import functools
import itertools
import math
import sys
from collections import OrderedDict, deque, namedtuple
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

CASES: list[tuple[Callable[..., Any], tuple[tuple[Any, ...], ...]]] = []


def case(*inputs: tuple[Any, ...]) -> Callable[[Any], Any]:
    """Register a function with its argument tuples."""

    def register(function: Any) -> Any:
        CASES.append((function, inputs))
        return function

    return register


def made(*inputs: tuple[Any, ...]) -> Callable[[Any], Any]:
    """Register the function that the decorated one returns (a closure, a method)."""

    def register(maker: Any) -> Any:
        CASES.append((maker(), inputs))
        return maker

    return register


# helpers of the functions below -----------------------------------------------------------------------------
class Box:
    label = "box"

    def __init__(self, value: Any = 0) -> None:
        self.value = value

    def add(self, other: Any, *, scale: int = 1) -> Any:
        return self.value + other * scale

    @property
    def double(self) -> Any:
        return self.value * 2

    @classmethod
    def of(cls, value: Any) -> Box:
        return cls(value)

    @staticmethod
    def plus(a: Any, b: Any) -> Any:
        return a + b

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Box) and self.value == other.value

    def __hash__(self) -> int:
        return hash(self.value)

    def __getitem__(self, key: Any) -> Any:
        return key

    def __bool__(self) -> bool:
        return bool(self.value)


class Sub(Box):
    def add(self, other: Any, *, scale: int = 1) -> Any:
        return super().add(other, scale=scale) + 100


class Manager:
    """Notes what happens in `log`; swallows exceptions of the types given."""

    def __init__(self, log: list[Any], name: str = "m", swallow: tuple[type, ...] = ()) -> None:
        self.log, self.name, self.swallow = log, name, swallow

    def __enter__(self) -> str:
        self.log.append(f"enter {self.name}")
        return self.name

    def __exit__(self, kind: type | None, error: BaseException | None, traceback: Any) -> bool:
        self.log.append(f"exit {self.name} {kind.__name__ if kind else None}")
        return kind is not None and issubclass(kind, self.swallow)


class FussyBool:
    def __init__(self, value: bool | None) -> None:
        self.value = value

    def __bool__(self) -> bool:
        if self.value is None:
            raise ValueError("neither true nor false")
        return self.value

    def __lt__(self, other: Any) -> FussyBool:
        return self

    def __gt__(self, other: Any) -> list[int]:
        return [1] if self.value else []


Point = namedtuple("Point", "x y")


@dataclass
class Shape:
    kind: str
    size: int


def fail(error: Any) -> Any:
    raise error


def handled_name() -> str | None:
    kind = sys.exc_info()[0]
    return kind.__name__ if kind else None


counter = 0

# expressions ------------------------------------------------------------------------------------------------
NUMBERS = (5, 3), (-7, 2), (2.5, 4)
INTS = (5, 3), (-7, 2)


@case(*NUMBERS)
def arithmetic(x, y):
    return (x + y) * x - y / 2 + x // y % 7 + x**2


@case(*INTS)
def bits(x, y):
    return x << y, x >> 1, x & y, x | y, x ^ y, ~x


@case(*NUMBERS)
def unary(x, y):
    return -x, +y, not x, not y, -(-x)


@case(*NUMBERS)
def in_place(x, y):
    x += y
    x -= 1
    x *= y
    x /= 3
    x //= 2
    x **= 2
    x %= 100
    return x


@case(*INTS)
def in_place_bits(x, y):
    x <<= y
    x |= 1
    x &= 255
    x ^= y
    x >>= 1
    return x


@case(*NUMBERS, ("a", "b"), ([1], [1]))
def comparisons(x, y):
    return x < y, x <= y, x == y, x != y, x > y, x >= y


@case(*NUMBERS)
def chained(x, y):
    return 0 < x < y < 10, x < y <= 4 != 5, 1 < 2 < x


@case((None, 1), (3, None))
def identity(x, y):
    return x is None, y is not None, x is y, x in (1, 2, 3), y not in [1]


@case((0, 1), (1, 0), ("", "a"))
def short_circuit(x, y):
    return (x and y) or (y if x is None else "none"), x or y, x and y, not (x or y)


@case((3,), (0,), (None,))
def conditional(x):
    return "none" if x is None else "yes" if x else "no"


@case((4,))
def walrus(n):
    return [(y := x * 2) + y for x in range(n) if (z := x % 3)] and (total := n + 1) + total + z


@case((3, "é"), (2.5, "ab"))
def f_strings(x, y):
    return f"{x} {y!r:>5} {y!s} {y!a} {x:03.1f} {x + 1!r} {x:{4}} {{}}"


@case((3,))
def f_string_nested(x):
    return f"{f'{x}':>{x + 2}}|{x=}"


@case(([1, 2, 3, 4, 5], 1, 3))
def slices(x, a, b):
    return x[a], x[a:b], x[:b], x[a:], x[::2], x[::-1], x[a:b:1], x[-1]


@case(([1, 2, 3, 4, 5], 1, 3))
def slice_stores(x, a, b):
    x[a:b] = [7, 8, 9]
    x[a] = 0
    x[a] += 5
    del x[0]
    del x[a:b]
    return x


@case((1, 2))
def displays(x, y):
    return (x, y), [x, y, *(3, 4)], {x, y}, {x: y, "k": x}, {**{"a": x}, "b": y, **{"a": 9}}, (*range(x), y)


@case(())
def constants():
    return 1, 2.5, "s", b"b", None, True, ..., (1, (2, 3)), 10**20, -1, 300, 1j, frozenset({1, 2})


@case(())
def empty_displays():
    return (), [], {}, set(), "", [[]]


@case((Point(1, 2),))
def attributes(p):
    box = Box(p.x)
    box.value += p.y
    box.other = box.value
    del box.value
    return box.other, box.label, hasattr(box, "value"), p._fields


@case(({"a": 1},))
def subscripts(d):
    d["b"] = d["a"] + 1
    d["a"] *= 5
    d["c"], d["d"] = d["b"], d
    del d["d"]
    return d


@case((2,))
def big_expression(x):
    return [[x, [x + 1, [x + 2, [x + 3, (x, {x: [x, -x]})]]]], (x * (x + (x * (x + (x * (x + 1))))))]


@case(("ab",))
def string_methods(s):
    return s.upper().lower().join(["x", "y"]).replace("x", s), "%s-%d" % (s, 3), s * 2, s[0] in s


@case((3,))
def lambdas(x):
    add = lambda a, b=2, *c, d=4, **e: (a, b, c, d, e)  # noqa: E731
    return add(x), add(x, 1, 5, d=6, z=7), (lambda: x)()


# calls ------------------------------------------------------------------------------------------------------
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


# unpacking --------------------------------------------------------------------------------------------------
@case(((1, 2),), ((1, 2, 3),), ((1,),), (5,))
def unpack(pair):
    a, b = pair
    return b, a


@case(([1, 2, 3, 4],), ([1, 2],), ([1],))
def unpack_star(items):
    a, *b, c = items
    (d, *e), f = [items, a]
    return a, b, c, d, e, f


@case((1, 2))
def swaps(x, y):
    x, y = y, x
    x, y, z = y, x, x + y
    a = b = c = z
    return x, y, a, b, c


@case(({"a": 1, "b": 2},))
def loop_unpack(d):
    out = []
    for key, value in d.items():
        out.append((value, key))
    for i, (key, _) in enumerate(d.items()):
        out.append((i, key))
    return out


# loops ------------------------------------------------------------------------------------------------------
@case((9, 2), (0, 1))
def for_loop(n, y):
    total = 0
    for i in range(n):
        if i % 2:
            continue
        if i > 6:
            break
        total += i * y
    else:
        total = -1
    return total


@case((5,), (0,))
def while_loop(n):
    out = []
    while n > 0:
        n -= 1
        if n == 3:
            continue
        out.append(n)
    else:
        out.append("else")
    return out


@case((3,))
def while_true(n):
    i = 0
    while True:
        i += 1
        if i > n:
            break
    return i


@case((3, 2))
def nested_loops(n, m):
    out = []
    for i in range(n):
        for j in range(m):
            if i == j:
                break
            out.append((i, j))
        else:
            out.append("full")
    return out


@case(([1, 2, 3, 4],))
def iterator_by_hand(items):
    it = iter(items)
    first = next(it)
    out = [first]
    for item in it:
        out.append(item)
        out.append(next(it, "end"))
    return out


@case((4,))
def loop_variable_kept(n):
    for i in range(n):
        pass
    return i


@case((0,))
def loop_variable_unbound(n):
    for i in range(n):
        pass
    return i


@case((4,))
def return_in_loop(n):
    for i in range(n):
        for j in range(n):
            if i + j == 3:
                return i, j
    return None


@case((5,))
def generator_use(n):
    def squares():
        for i in range(n):
            yield i * i

    return list(squares()), sum(x for x in squares() if x % 2), next(squares())


@case((4,))
def generator_protocol(n):
    def echo():
        got = []
        try:
            while True:
                got.append((yield len(got)))
        except KeyError:
            yield got

    g = echo()
    next(g)
    for i in range(n):
        g.send(i)
    return g.throw(KeyError("stop"))


@case((3,))
def itertools_use(n):
    return list(itertools.chain(range(n), itertools.repeat(7, 2))), list(itertools.product("ab", range(2)))


@case((3,))
def deque_rotate(n):
    d = deque(range(n), maxlen=4)
    while len(d) < 4:
        d.appendleft(n)
    d.rotate(1)
    return list(d)


# comprehensions ---------------------------------------------------------------------------------------------
@case((4, 2))
def comprehensions(n, y):
    return [i * y for i in range(n) if i], {i: j for i, j in enumerate("ab")}, {i % 2 for i in range(n)}


@case((3, 2))
def nested_comprehensions(n, m):
    return [[i + j for j in range(m)] for i in range(n)], [
        (i, j) for i in range(n) for j in range(m) if i != j
    ]


@case((3,))
def comprehension_shadows(x):
    y = [x for x in range(x)]
    return x, y, [x for x in y if x]


@case((3,))
def comprehension_closure(n):
    fs = [lambda: i for i in range(n)]
    return [f() for f in fs]


@case((3, 10))
def comprehension_captured(n, k):
    gs = [lambda j=i: i + j + k for i in range(n)]
    k = 100
    return [g() for g in gs], [h(1) for h in [lambda v: v + k]]


@case(([1, 0, 2],))
def comprehension_raises(items):
    return [10 // item for item in items]


@case(([1, 0, 2],))
def comprehension_in_try(items):
    x = "kept"
    try:
        y = [10 // x for x in items]
    except ZeroDivisionError:
        y = None
    return x, y


@case(([[1, 2], [3]],))
def comprehension_unbound_before(rows):
    flat = [cell for row in rows for cell in row]
    if rows:
        cell = "late"
    return flat, cell


# closures ---------------------------------------------------------------------------------------------------
@case((3,))
def closure_counter(n):
    count = 0

    def inc():
        nonlocal count
        count += 1
        return count

    inc()
    inc()
    count += n
    return count, inc(), count


@case((3, 4))
def closure_argument(x, y):
    def add(z):
        return x + z

    x += 1
    return add(y), x


@case((1,))
def closure_deleted(x):
    def get():
        return x

    first = get()
    del x
    try:
        get()
    except NameError as error:
        return first, str(error)
    return None


@case((1,))
def closure_unbound(flag):
    def get():
        return late

    try:
        get()
    except NameError as error:
        text = type(error).__name__
    late = flag
    return text, get()


@case((2,))
def closure_loop(n):
    fs = []
    for i in range(n):
        j = i * 2

        def f(k=i):
            return i, j, k

        fs.append(f)
    return [f() for f in fs]


@case((2,))
def closure_two_levels(x):
    def outer(y):
        def inner(z):
            nonlocal y
            y += z
            return x + y

        return inner(1) + inner(2)

    return outer(10)


@made((2,), (5,))
def free_variables():
    base, step = 10, 3

    def inner(x):
        total = base
        for i in range(x):
            total += step * max(i, len([base, i]))
        return total, [base + k for k in range(x)]

    return inner


@made((2,))
def free_and_cell():
    base = 10

    def inner(x):
        def deeper(y):
            return base + x + y

        x += 1
        return [deeper(i) for i in range(x)], deeper(x)

    return inner


@made((3,))
def free_written():
    count = 0

    def inner(x):
        nonlocal count
        count = 0
        for i in range(x):
            count += max(i, count)
        return count

    return inner


@made((3,))
def many_free_variables():
    a, b, c, d, e = 1, 2, 3, 4, 5

    def inner(x):
        return max(a, b, c * x, d + (lambda: e + a)(), sum((a, b, c, d, e)))

    return inner


@made((Sub(3), 4))
def method_with_super():
    return Sub.add


@made((3, 4))
def method_super_captured():
    class Cell(Box):
        def add(self, other, *, scale=1):
            def go():
                return self.value + super(Cell, self).add(other)

            return go() + super().add(other, scale=scale)

    method = Cell.add

    def call(x, y):
        return method(Cell(x), y)

    return call


# classes ----------------------------------------------------------------------------------------------------
@case((3,))
def local_class(x):
    class Local(Box):
        extra = x

        def get(self):
            return self.extra + x + self.value

        def __repr__(self):
            return f"Local({self.value})"

    one = Local(1)
    return one.get(), Local.extra, repr(one), Local.__name__, Local.__qualname__


@case((3,))
def local_class_super(x):
    class Local(Sub):
        def add(self, other, *, scale=1):
            return super().add(other) * x

    return Local(x).add(1)


@case((3,))
def decorated(x):
    def twice(f):
        @functools.wraps(f)
        def inner(*args):
            return f(*args) * 2

        return inner

    @twice
    @twice
    def g(y):
        """Documented."""
        return y + x

    return g(1), g.__doc__, g.__name__


@case((1,))
def annotated(x: int) -> Any:
    y: int = x + 1
    z: list[int]
    z = [y]

    def typed(a: int, *, b: str = "b") -> None:
        return None

    return y, z, typed.__defaults__, typed.__kwdefaults__, typed(1)


@case((2,))
def named_tuples(x):
    p = Point(x, y=3)
    q = p._replace(y=4)
    return p == (x, 3), q.y, [*p], Shape("sq", 2) == Shape("sq", x), OrderedDict(a=1)["a"]


# exceptions -------------------------------------------------------------------------------------------------
@case((5, 3), (5, 0))
def try_except(x, y):
    try:
        r = x // y
    except ZeroDivisionError as error:
        r = type(error).__name__, str(error), handled_name()
    return r, handled_name()


@case((1,), ("a",), (None,), ([],))
def try_several(x):
    try:
        y = int(x) + {1: 2}[x]
    except (KeyError, ValueError) as error:
        y = repr(error)
    except TypeError:
        y = "type " + str(handled_name())
    else:
        y += 100
    finally:
        z = "finally"
    return y, z


@case((1,), (0,))
def try_finally(x):
    log = []
    try:
        log.append(1 // x)
    finally:
        log.append("f")
        log.append(max(2, 3))
    return log


@case((1,), (0,))
def finally_with_return(x):
    try:
        return 1 // x
    finally:
        x += 5
        if x > 5:
            return x  # noqa: B012


@case((0,), (1,), (2,))
def nested_try(x):
    log = []
    try:
        try:
            log.append(10 // x)
            if x == 2:
                raise KeyError(x)
        except ZeroDivisionError as error:
            log.append(str(error))
            raise ValueError("inner") from error
        finally:
            log.append("inner finally")
    except ValueError as error:
        log.append((str(error), type(error.__cause__).__name__, type(error.__context__).__name__))
    except KeyError:
        log.append(handled_name())
    return log


@case((0,), (1,))
def handler_raises(x):
    try:
        try:
            return 10 // x
        except ZeroDivisionError:
            y = max(1, 2)
            return [][y]
    except IndexError as error:
        return type(error.__context__).__name__, handled_name()


@case((0,))
def uncaught_in_handler(x):
    try:
        return 10 // x
    except ZeroDivisionError:
        y = max(1, 2)
        return [][y]


@case((0,), (1,))
def bare_raise(x):
    log = []
    try:
        try:
            log.append(1 // x)
        except ZeroDivisionError:
            log.append("again")
            raise
    except ZeroDivisionError:
        log.append("outer")
    return log


@case((0,))
def bare_raise_uncaught(x):
    try:
        return 1 // x
    except ZeroDivisionError:
        x = max(x, 1)
        raise


@case(())
def raise_without_active():
    raise


@case((1,), (0,))
def nested_handlers(x):
    log = [handled_name()]
    try:
        fail(KeyError("a"))
    except KeyError:
        log.append(handled_name())
        try:
            log.append(1 // x)
            fail(ValueError("b"))
        except (ValueError, ZeroDivisionError) as error:
            log.append((handled_name(), type(error.__context__).__name__))
            try:
                fail(IndexError("c"))
            except IndexError as inner:
                log.append((handled_name(), type(inner.__context__).__name__))
            log.append(handled_name())
        log.append(handled_name())
    log.append(handled_name())
    return log


@case((3,))
def try_in_loop(n):
    out = []
    for i in range(n):
        try:
            if i == 1:
                raise ValueError(i)
            out.append(10 // i)
        except ValueError:
            out.append("value")
            continue
        except ZeroDivisionError:
            out.append("zero")
        finally:
            out.append(("f", i))
    return out


@case((5,))
def break_in_finally_loop(n):
    out = []
    for i in range(n):
        try:
            if i == 2:
                break
            out.append(i)
        finally:
            out.append("f")
    return out


@case((4,))
def loop_in_handler(n):
    try:
        fail(KeyError("k"))
    except KeyError as error:
        out = []
        for i in range(n):
            if i == 2:
                continue
            out.append((i, str(error), handled_name()))
        return out


@case((2,), (-1,), ("x",))
def custom_error(x):
    class Bad(Exception):
        def __init__(self, value):
            super().__init__(f"bad {value}")
            self.value = value

    try:
        if x == 2:
            raise Bad(x)
        if x == -1:
            raise Bad
    except Bad as bad:
        return bad.value, str(bad)
    return x


@case((0,), (5,))
def asserts(x):
    assert isinstance(x, int)
    assert x, f"x is {max(x, 0)}"
    return x


@case((1,))
def unbound_local(x):
    if x > 5:
        y = 1
    return y


@case((1,))
def deleted_local(x):
    y = x
    del y
    return y


@case((1,))
def missing_global(x):
    return x + not_defined_anywhere


@case(([],), ([1],))
def error_line(x):
    y = 1
    z = y + x[0] + len(x)
    return z


@case((1,))
def raise_class_from_none(x):
    try:
        fail(KeyError(x))
    except KeyError:
        raise ValueError from None


@case((1,))
def not_an_exception(x):
    try:
        fail(KeyError(x))
    except int:
        return 1


@case((0,), (1,), (2,))
def exception_groups(x):
    log = []
    try:
        errors = [[ValueError("v"), KeyError("k")], [KeyError("k")], [TypeError("t"), ValueError("w")]][x]
        raise ExceptionGroup("group", errors)
    except* ValueError as group:
        log.append(("value", len(group.exceptions), handled_name()))
    except* (KeyError, TypeError) as group:
        log.append(("other", [str(e) for e in group.exceptions], handled_name()))
    return log, handled_name()


@case((0,), (1,))
def exception_group_rest(x):
    log = []
    try:
        try:
            raise ExceptionGroup("group", [ValueError("v"), OSError("o")])
        except* ValueError:
            log.append(handled_name())
            if x:
                raise IndexError("new")
    except ExceptionGroup as group:
        log.append(sorted(type(e).__name__ for e in group.exceptions))
    return log


@case((0,))
def finally_reraises(x):
    log = []
    try:
        try:
            log.append(1 // x)
        finally:
            log.append(handled_name())
            try:
                fail(KeyError("inside"))
            except KeyError:
                log.append(handled_name())
            log.append(handled_name())
    except ZeroDivisionError as error:
        log.append(type(error.__context__).__name__)
    return log


@case((2,))
def exception_kept(x):
    kept = None
    try:
        fail(KeyError(x))
    except KeyError as error:
        kept = error
    try:
        return error
    except UnboundLocalError as unbound:
        return type(kept).__name__, type(unbound).__name__


@case((1,))
def base_exceptions(x):
    try:
        try:
            fail(SystemExit(x))
        except Exception:
            return "wrong"
    except BaseException as error:
        return type(error).__name__, error.args


# with -------------------------------------------------------------------------------------------------------
@case(([],))
def with_plain(log):
    with Manager(log) as name:
        log.append(name)
        log.append(handled_name())
    return log


@case(([], 0), ([], 1))
def with_raises(log, x):
    with Manager(log, "outer", (ZeroDivisionError,)) as name:
        log.append(name)
        log.append(1 // x)
        log.append("after")
    log.append("end")
    return log


@case(([], 0), ([], 1))
def with_propagates(log, x):
    with Manager(log, "a"):
        log.append(max(1, 2))
        return log, 1 // x


@case(([], 0), ([], 1), ([], 2))
def with_nested(log, x):
    with Manager(log, "a", (KeyError,)) as a, Manager(log, "b", (IndexError,)) as b:
        log.append((a, b))
        if x == 0:
            fail(KeyError("k"))
        if x == 1:
            fail(IndexError("i"))
    log.append(handled_name())
    return log


@case(([], 4))
def with_in_loop(log, n):
    for i in range(n):
        with Manager(log, str(i), (ValueError,)):
            if i == 0:
                continue
            if i == 1:
                fail(ValueError(i))
            if i == 3:
                break
            log.append(max(i, 0))
    return log


@case(([],))
def loop_in_with(log):
    with Manager(log) as name:
        for i in range(3):
            log.append((name, i))
        total = sum(i for i in range(3))
    return total, log


@case(([], 0), ([], 1))
def with_in_handler(log, x):
    try:
        log.append(1 // x)
    except ZeroDivisionError:
        with Manager(log, "h", (KeyError,)):
            log.append(handled_name())
            fail(KeyError("k"))
        log.append(handled_name())
    finally:
        with Manager(log, "f"):
            log.append(max(0, 1))
    return log


@case(([], 0), ([], 1))
def try_in_with(log, x):
    with Manager(log, "w"):
        try:
            log.append(1 // x)
        except ZeroDivisionError as error:
            log.append(str(error))
        else:
            log.append("else")
    return log


@case(([],))
def with_contextlib(log):
    @contextlib.contextmanager
    def manage():
        log.append("in")
        try:
            yield 5
        except KeyError:
            log.append("key")
        finally:
            log.append("out")

    with manage() as value:
        log.append(value)
    with manage(), contextlib.suppress(ValueError):
        fail(KeyError(1))
    return log


@case((1,))
def with_no_manager(x):
    with x:
        return 1


@case(([],))
def with_item_target(log):
    pair = [None, None]
    with Manager(log, "one") as pair[0], Manager(log, "two") as pair[1]:
        log.append(list(pair))
    return log


# match ------------------------------------------------------------------------------------------------------
@case(
    (1,),
    ("x",),
    ([1, 2],),
    ([1, 2, 3, 4],),
    ({"k": 1, "z": 2},),
    (Shape("sq", 3),),
    (Shape("ci", 3),),
    (Point(0, 4),),
    (None,),
    (7.5,),
)
def match_statement(x):
    match x:
        case 1 | 2:
            return "small"
        case str(s):
            return s
        case Point(x=0, y=y):
            return "point", y
        case [a, b]:
            return a + b
        case [a, *rest]:
            return a, rest
        case {"k": v, **rest}:
            return v, rest
        case Shape("sq", size) if size > 2:
            return size
        case Shape(kind=kind):
            return kind
        case None:
            return "none"
        case _:
            return "other"


@case((3, 2), (0, 0), (5, 1))
def match_values(x, y):
    match x, y:
        case (0, 0):
            r = "origin"
        case (math.tau, _):
            r = "tau"
        case (a, b) if a > b + 2:
            r = a - b
        case (a, _) as whole:
            r = whole, a
    return r


# names and imports ------------------------------------------------------------------------------------------
@case((3,))
def global_counter(n):
    global counter
    counter = 0
    for i in range(n):
        counter += i
    return counter


@case((2.5,))
def imports(x):
    import math as m
    import os.path
    from collections import Counter
    from os import path as p

    return m.floor(x), p.basename("a/b"), os.path.sep, Counter("aab")["a"]


@case((1,))
def import_error(x):
    try:
        from math import nothing_there  # noqa: F401
    except ImportError as error:
        return type(error).__name__
    return x


@case((True,), (False,), (None,))
def fussy_truth(value):
    f = FussyBool(value)
    try:
        if f:
            r = "yes"
        else:
            r = "no"
        return r, not f, f and 1, f or 2, 1 if f < 3 else 0, bool(f > 1), not f > 1
    except ValueError as error:
        return str(error)


@case((True,), (False,))
def comparison_values(value):
    f = FussyBool(value)
    r = 0
    while f > r:
        r += 1
        if r > 2:
            break
    return r, f > 1 and f > 2


@case((3,))
def many_locals(x):
    a = x
    b = a + 1
    c = b + a
    d = c * b
    e = d - a
    f = [a, b, c, d, e]
    g, h, i, j, k = f
    m = {k: j, h: g}
    n = (a, b, c)
    o = n[0] + m[k]
    return a, b, c, d, e, f, g, h, i, j, k, m, n, o


def _wide(count: int) -> Callable[..., Any]:
    """A function with so many locals and constants that its instructions need EXTENDED_ARG."""
    lines = ["def wide(x):"]
    lines += [f"    v{n} = x + {n + 1000}" for n in range(count)]
    lines += [
        "    total = 0",
        "    for i in range(3):",
        f"        if i < x: total += v{count - 1} * v{count - 2}",
    ]
    lines += [f"        total -= v{n}" for n in range(0, count, 3)]
    lines += ["    return total, [v0 for _ in 'ab']"]
    names: dict[str, Any] = {}
    exec(compile("\n".join(lines), __file__, "exec"), names)
    function: Callable[..., Any] = names["wide"]
    return function


CASES.append((_wide(300), ((2,),)))


def _wide_closure(count: int) -> Callable[..., Any]:
    """A function whose free variables have slot numbers on both sides of 255."""
    lines = ["def outer():", "    one, two, three, four = 1, 2, 3, 4", "    def wide_closure(x):"]
    lines += [f"        v{n} = x" for n in range(count)]
    lines += [
        "        out = []",
        "        for i in range(2):",
        "            out.append(max(one, two * i) + (lambda: three + four)())",
    ]
    lines += [
        "        two_ = (one, two, three, four)",
        f"        return out, two_, v{count - 1}",
        "    return wide_closure",
    ]
    names: dict[str, Any] = {}
    exec(compile("\n".join(lines), __file__, "exec"), names)
    function: Callable[..., Any] = names["outer"]()
    return function


CASES.append((_wide_closure(249), ((2,),)))
CASES.append((_wide_closure(251), ((2,),)))
