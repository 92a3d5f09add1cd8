"""Cells and free variables."""

# ruff: noqa: B007, B023, E731, F821, SIM, UP028, UP031
# What the linter would rather not see is what these functions are for.
from __future__ import annotations

from tests.pycode.cases.support import Box, Manager, Sub, case, made


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


@case((2,))
def closure_of_everything(a, *rest, key=3, **more):
    def show():
        return a, rest, key, more

    a += 1
    return show()


@case((3,))
def accumulator(n):
    def make():
        total = 0

        def add(v):
            nonlocal total
            total += v
            return total

        return add

    one, two = make(), make()
    return [one(i) for i in range(n)], two(10), one(0)


@case((3,))
def closure_over_loop_variable(n):
    fs = []
    for i in range(n):
        fs.append(lambda: i)
    before = [f() for f in fs]
    i = 100
    return before, [f() for f in fs]


@case((1,))
def closure_reassigned_type(x):
    def get():
        return x

    out = [get()]
    for x in ("a", None, [1]):
        out.append(get())
    return out


@case((3,))
def closure_shared_by_two(n):
    value = 0

    def up():
        nonlocal value
        value += 1

    def get():
        return value

    for _ in range(n):
        up()
        if get() == 2:
            value = 10
    return value, get()


@case((2,))
def closure_in_class(n):
    class Holder:
        size = n * 2

        def get(self):
            return n, self.size

        squares = [i * i for i in range(3)]

    n += 1
    return Holder().get(), Holder.squares


@case((3,))
def closure_in_except(n):
    def get():
        return text

    try:
        raise ValueError(n)
    except ValueError as error:
        text = str(error)
        inner = lambda: error.args
        args = inner()
    try:
        inner()
    except NameError as late:
        return get(), args, type(late).__name__


@case((2,))
def deleted_and_made_again(x):
    def get():
        return x

    del x
    x = 5
    return get(), x


@case((2,))
def recursive_closure(n):
    def walk(k):
        return [k] if k <= 0 else [k, *walk(k - 1)]

    return walk(n)


@case((2,))
def decorator_with_state(n):
    calls = []

    def logged(prefix):
        def decorate(f):
            def inner(*args):
                calls.append((prefix, f.__name__, args))
                return f(*args)

            return inner

        return decorate

    @logged("a")
    @logged("b")
    def f(x):
        return x * n

    return f(1), f(2), calls


@made((3,), (0,))
def free_in_handlers():
    log, limit = [], 2

    def inner(x):
        del log[:]
        for i in range(x):
            try:
                log.append(10 // (i - 1))
            except ZeroDivisionError as error:
                log.append((str(error), limit))
            finally:
                log.append(limit + i)
        return list(log)

    return inner


@made((2,))
def free_with_manager():
    log: list = []
    offset = 5

    def inner(x):
        del log[:]
        with Manager(log, "free", (KeyError,)):
            log.append([offset + max(i, offset) for i in range(x)])
            raise KeyError(offset)
        return list(log), offset

    return inner


@made((2,))
def free_deleted():
    value = 1

    def inner(x):
        nonlocal value
        value = x
        del value
        try:
            return value
        except NameError as error:
            value = 1
            return type(error).__name__, value

    return inner


@made((3, 4))
def free_shadowed_by_parameter():
    x = 10

    def middle():
        return x

    def inner(x, y):
        z = [x + y + middle()]
        return z, (lambda x: x + y)(1)

    return inner


@made((1,))
def class_cell_used():
    class Base:
        def who(self, x):
            return __class__.__name__, type(self).__name__, [__class__ for _ in range(1)][0].__name__, x

    def call(x):
        return Base().who(x)

    return call
