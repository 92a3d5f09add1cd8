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


@case(([],))
def with_return(log):
    with Manager(log, "a"):
        with Manager(log, "b"):
            return len(log), log


@case(([], 3))
def with_return_in_loop(log, n):
    for i in range(n):
        with Manager(log, str(i)):
            for j in range(n):
                if i + j == 2:
                    return i, j, log
    return None


@case(([],))
def with_enter_raises(log):
    class Bad(Manager):
        def __enter__(self):
            raise KeyError("enter")

    with Manager(log, "outer", (KeyError,)):
        with Bad(log, "bad"):
            log.append("never")
    return log


@case(([], 0), ([], 1))
def with_exit_raises(log, x):
    class Bad(Manager):
        def __exit__(self, kind, error, traceback):
            raise IndexError("exit")

    try:
        with Bad(log, "bad"):
            log.append(1 // x)
    except IndexError as error:
        log.append(type(error.__context__).__name__)
    return log


@case(([],))
def with_exit_stack(log):
    with contextlib.ExitStack() as stack:
        names = [stack.enter_context(Manager(log, str(i))) for i in range(3)]
        stack.callback(log.append, "callback")
        log.append(names)
    return log


@case(([],))
def with_suppress_and_else(log):
    for error in (KeyError, ValueError, None):
        with contextlib.suppress(KeyError, ValueError):
            if error:
                raise error
            log.append("none")
            continue
        log.append(error.__name__)
    return log


@case(([], 2))
def with_many(log, n):
    with Manager(log, "a") as a, Manager(log, "b") as b, Manager(log, "c") as c:
        log.append(a + b + c * n)
    with (
        Manager(log, "d"),
        Manager(log, "e") as e,
    ):
        log.append(e)
    return log


@case(([],))
def with_closure(log):
    with Manager(log) as name:
        get = lambda: name  # noqa: E731
        log.append(get())
        name = "changed"
    return get(), log


@case(([],))
def with_handled_inside(log):
    with Manager(log, "w", (ZeroDivisionError,)):
        try:
            fail(KeyError("k"))
        except KeyError:
            log.append(handled_name())
            log.append(1 // 0)
        finally:
            log.append(handled_name())
    return log, handled_name()


@case(([], 0), ([], 1))
def with_in_finally(log, x):
    try:
        return 1 // x
    except ZeroDivisionError:
        return log
    finally:
        with Manager(log, "f") as name:
            log.append((name, handled_name()))


@case(([], 4))
def with_while(log, n):
    while True:
        with Manager(log, str(n), (ValueError,)):
            n -= 1
            if n == 2:
                continue
            if n == 1:
                raise ValueError
            if n <= 0:
                break
    return log, n


@case(([],))
def with_generator_manager_error(log):
    @contextlib.contextmanager
    def manage(name):
        log.append("+" + name)
        try:
            yield name
        except KeyError as error:
            log.append(repr(error))
            raise ValueError(name) from error
        finally:
            log.append("-" + name)

    try:
        with manage("a") as a:
            with manage("b"):
                fail(KeyError(a))
    except ValueError as error:
        return log, str(error), repr(error.__cause__)


@case(([], 0), ([], 1))
def with_exception_in_target(log, x):
    try:
        with Manager(log) as [][x]:
            log.append("never")
    except IndexError:
        log.append("caught")
    return log


@case(([],))
def with_decorator(log):
    class Both(contextlib.ContextDecorator, Manager):
        pass

    @Both(log, "d")
    def f(x):
        log.append(x)
        return x

    return f(1) + f(2), log
