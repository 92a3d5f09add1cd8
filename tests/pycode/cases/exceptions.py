"""try, except, finally, raise, except*."""

# ruff: noqa: B012, B904, F821, SIM, UP028, UP031
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


@case(("x",), (0,), (None,))
def exception_table_dense(x):
    out = []
    try:
        out.append(int(x))
    except ValueError:
        out.append("v")
    try:
        out.append(1 // x)
    except (TypeError, ZeroDivisionError) as error:
        out.append(type(error).__name__)
    try:
        out.append([][len(out)])
    except IndexError:
        out.append("i")
    return out


@case((3,))
def finally_runs_in_order(n):
    log = []
    for i in range(n):
        try:
            try:
                if i == 1:
                    continue
                if i == 2:
                    break
                log.append(i)
            finally:
                log.append(("inner", i))
        finally:
            log.append(("outer", i))
    return log


@case((0,), (2,))
def finally_changes_result(x):
    r = "start"
    try:
        r = 4 // x
        return r
    finally:
        r = "changed"


@case((0,), (2,))
def finally_raises(x):
    try:
        return 4 // x
    finally:
        fail(KeyError("finally"))


@case((0,), (1,), (2,))
def else_raises(x):
    try:
        y = [10, 0][x]
    except IndexError:
        return "no"
    else:
        return 10 // y
    finally:
        x = None


@case((3,))
def retry(n):
    attempts = 0
    while True:
        attempts += 1
        try:
            if attempts < n:
                raise ConnectionError(attempts)
        except ConnectionError as error:
            last = error.args
            continue
        return attempts, last


@case((1,))
def chained_causes(x):
    try:
        try:
            try:
                fail(KeyError("a"))
            except KeyError as a:
                raise ValueError("b") from a
        except ValueError as b:
            raise TypeError("c") from b
    except TypeError as c:
        out = []
        error = c
        while error is not None:
            out.append(type(error).__name__)
            error = error.__cause__
        return out


@case((1,))
def raise_from_expression(x):
    try:
        raise ValueError("v") from KeyError(x)
    except ValueError as error:
        return repr(error.__cause__), error.__suppress_context__


@case((1,))
def raise_from_nonsense(x):
    raise ValueError from x


@case((1,))
def raise_nonsense(x):
    raise x


@case((1,))
def reraise_variable(x):
    try:
        fail(KeyError(x))
    except KeyError as error:
        kept = error
    raise kept


@case((1,))
def exception_notes(x):
    try:
        error = ValueError("noted")
        error.add_note(f"note {x}")
        raise error
    except ValueError as caught:
        return caught.__notes__, caught.args


@case(([1, 0, "a", None],))
def handler_per_item(items):
    out = []
    for item in items:
        try:
            out.append(1 / item)
        except ZeroDivisionError:
            out.append("zero")
        except TypeError:
            out.append(f"type {type(item).__name__}")
            if item is None:
                break
        else:
            out.append("ok")
    else:
        out.append("all")
    return out


@case((2,))
def nested_functions_raise(n):
    def level(k):
        if k == 0:
            raise LookupError("deep")
        try:
            return level(k - 1)
        finally:
            log.append(k)

    log = []
    try:
        level(n)
    except LookupError as error:
        log.append(str(error))
    return log


@case((2,))
def deep_error(n):
    def level(k):
        return 1 // k if k == 0 else level(k - 1)

    return level(n)


@case((1,))
def stop_iteration_value(x):
    it = iter([x])
    try:
        return next(it), next(it)
    except StopIteration as stop:
        return stop.value, next(it, "default")


@case((1,))
def generator_raises(x):
    def g():
        yield 1
        raise KeyError(x)

    out = []
    try:
        for v in g():
            out.append(v)
    except KeyError as error:
        out.append(error.args)
    return out


@case((0,))
def unreached_handlers(x):
    try:
        try:
            y = x + 1
        except KeyError:
            y = "key"
        except ValueError:
            y = "value"
        else:
            y += 1
    except Exception:
        y = "any"
    return y


@case((1,))
def attribute_error(x):
    return x.nothing


@case(({},))
def key_error(d):
    return d["missing"]["deeper"]


@case((5,))
def recursion_error(x):
    def forever(n):
        return forever(n + 1)

    try:
        forever(0)
    except RecursionError as error:
        return type(error).__name__, x


@case((0,), (1,))
def conditional_raise(x):
    if not x:
        raise ValueError(
            "x",
            x,
        )
    return x


@case((2,))
def handled_in_comprehension(n):
    def safe(v):
        try:
            return 1 // v
        except ZeroDivisionError:
            return handled_name()

    return [safe(i) for i in range(n)], handled_name()


@case((0,), (1,))
def handler_with_call_and_loop(x):
    try:
        return 1 // x
    except ZeroDivisionError as error:
        names = [type(error).__name__ for _ in range(2)]
        total = sum(len(n) for n in names)
        while total > 10:
            total -= 7
        return names, total, handled_name()


@case((1,))
def star_group_nested(x):
    log = []
    inner = ExceptionGroup("inner", [ValueError("v"), TypeError("t")])
    try:
        raise ExceptionGroup("outer", [inner, KeyError("k")])
    except* TypeError as group:
        log.append(len(group.exceptions))
    except* (ValueError, KeyError):
        log.append(handled_name())
    else:
        log.append("else")
    finally:
        log.append("finally")
    return log


@case((1,))
def star_on_naked_exception(x):
    try:
        raise KeyError(x)
    except* KeyError as group:
        return_value = type(group).__name__, [type(e).__name__ for e in group.exceptions]
    return return_value


@case((1,))
def star_without_match(x):
    log = []
    try:
        try:
            raise ExceptionGroup("g", [OSError("o")])
        except* ValueError:
            log.append("wrong")
    except ExceptionGroup as group:
        log.append(len(group.exceptions))
    return log


@case((1,))
def star_nothing_raised(x):
    try:
        y = x
    except* ValueError:
        y = None
    else:
        y += 1
    return y
