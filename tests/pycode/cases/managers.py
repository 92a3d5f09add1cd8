"""with statements."""

# What the linter would rather not see is what these functions are for.
from __future__ import annotations

import contextlib

from tests.pycode.cases.support import Manager, case, fail, handled_name


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
