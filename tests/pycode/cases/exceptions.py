"""try, except, finally, raise, except*."""

# ruff: noqa: B012, B904, F821
# What the linter would rather not see is what these functions are for.
from __future__ import annotations

from tests.pycode.cases.support import case, fail, handled_name


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
            return x


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
