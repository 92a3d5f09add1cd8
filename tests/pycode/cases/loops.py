"""Loops, iterators and generators that are used."""

# ruff: noqa: UP028, B007, C402, SIM, UP028, UP031
# What the linter would rather not see is what these functions are for.
from __future__ import annotations

import itertools
from collections import deque

from tests.pycode.cases.support import case


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


@case((10,))
def collatz(n):
    steps = []
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps.append(n)
    return steps


@case((20,))
def sieve(n):
    flags = [True] * n
    for i in range(2, n):
        if flags[i]:
            for j in range(i * i, n, i):
                flags[j] = False
    return [i for i in range(2, n) if flags[i]]


@case(([5, 2, 9, 1],))
def bubble_sort(v):
    n = len(v)
    while True:
        swapped = False
        for i in range(1, n):
            if v[i - 1] > v[i]:
                v[i - 1], v[i] = v[i], v[i - 1]
                swapped = True
        if not swapped:
            return v


@case(([1, 3, 5, 7], 5), ([1, 3], 2))
def binary_search(v, x):
    low, high = 0, len(v)
    while low < high:
        middle = (low + high) // 2
        if v[middle] < x:
            low = middle + 1
        elif v[middle] == x:
            return middle
        else:
            high = middle
    return ~low


@case((48, 18))
def gcd(a, b):
    while b:
        a, b = b, a % b
    return a


@case((3,))
def continue_in_while(n):
    out = []
    i = -1
    while i < n:
        i += 1
        if i == 1:
            continue
        for j in "ab":
            if j == "b":
                continue
            out.append(j + str(i))
    return out


@case((3,))
def break_outer_by_flag(n):
    found = None
    for i in range(n):
        for j in range(n):
            if i * j == 2:
                found = i, j
                break
        if found:
            break
    else:
        return "never"
    return found


@case(([1, 2, 3],))
def changing_while_iterating(v):
    for x in v:
        if len(v) < 6:
            v.append(x * 10)
    return v


@case(({"a": 1},))
def dict_changed_in_loop(d):
    for k in d:
        d[k + k] = 1
    return d


@case((5,))
def not_iterable(x):
    for _ in x:
        return 1


@case((3,))
def own_iterator(n):
    class Count:
        def __init__(self, stop):
            self.i, self.stop = 0, stop

        def __iter__(self):
            return self

        def __next__(self):
            if self.i == self.stop:
                raise StopIteration
            self.i += 1
            return self.i

    out = []
    for a in Count(n):
        for b in Count(a):
            out.append((a, b))
    return out, list(Count(n)), sum(Count(n)), 2 in Count(n)


@case((3,))
def iterator_that_fails(n):
    class Bad:
        def __getitem__(self, i):
            if i == n:
                raise KeyError(i)
            return i

    out = []
    try:
        for x in Bad():
            out.append(x)
    except KeyError as error:
        out.append(str(error))
    return out


@case((2,))
def getitem_protocol(n):
    class Old:
        def __getitem__(self, i):
            if i >= n:
                raise IndexError
            return i * 10

        def __len__(self):
            return n

    return list(Old()), list(reversed(Old())), [*Old()], 10 in Old()


@case((4,))
def generator_with_return(n):
    def inner():
        yield 1
        return n

    def outer():
        got = yield from inner()
        yield got * 2

    return list(outer())


@case((3,))
def generator_closed(n):
    log = []

    def g():
        try:
            for i in range(n):
                yield i
        finally:
            log.append("closed")

    it = g()
    next(it)
    it.close()
    for i in g():
        log.append(i)
    return log


@case((3,))
def generator_expressions(n):
    g = (i * j for i in range(n) for j in range(i))
    first = list(g)
    return first, list(g), max((len(s) for s in ("a", "bb")), default=0), dict((i, i) for i in range(n))


@case((3,))
def enumerate_zip(n):
    out = []
    for i, (a, b) in enumerate(zip(range(n), "abc", strict=True), start=1):
        out.append((i, a, b))
    for a, b in zip(range(n), range(0, -n, -1), strict=False):
        out.append(a + b)
    return out


@case((3,))
def async_function(n):
    async def double(v):
        return v * 2

    async def main():
        out = []
        for i in range(n):
            out.append(await double(i))
        return out

    coroutine = main()
    try:
        coroutine.send(None)
    except StopIteration as stop:
        return stop.value


@case((3,))
def async_with_and_for(n):
    log = []

    class Manager:
        async def __aenter__(self):
            log.append("in")
            return self

        async def __aexit__(self, *args):
            log.append("out")

    async def numbers():
        for i in range(n):
            yield i

    async def main():
        async with Manager():
            async for i in numbers():
                log.append(i)
        return [i async for i in numbers() if i]

    coroutine = main()
    try:
        coroutine.send(None)
    except StopIteration as stop:
        return stop.value, log


@case((2,))
def loop_else_nested(n):
    out = []
    for i in range(n):
        while i < 5:
            i += 2
            if i == 3:
                break
        else:
            out.append(("else", i))
            continue
        out.append(("break", i))
    else:
        out.append("done")
    return out


@case((3,))
def range_forms(n):
    return list(range(n, 0, -1)), range(10)[2:5], len(range(0, 10, n)), 4 in range(n), list(range(-n, n, 2))


@case((3,), (0,))
def until_not_none(n):
    value, count = None, 0
    while value is None:
        count += 1
        if count >= n:
            value = count
    return value
