"""try and with statements."""

from __future__ import annotations

import pytest

from tests.eager import programs

PROGRAMS = programs(
    r"""
# a handler that runs, and one that does not:
#   f(T(1), 0)
#   f(T(1), 1)
def f(x, n):
    y = x + 1
    try:
        z = y * (1 // n)
    except ZeroDivisionError as e:
        print("caught", e)
        z = y
    return z + 1

# an operator that fails inside of try:
#   f(T(3), T(4))
def f(x, y):
    a = x * 2
    try:
        return a + y
    except RuntimeError as e:
        print(e)
        return a

# try inside of a loop:
#   f(T(1))
def f(x):
    for i in range(3):
        try:
            x = x + i
            if i == 1: raise ValueError
        except ValueError:
            x = x * 2
    return x

# finally after return:
#   f(T(1))
def f(x):
    y = x + 1
    try:
        print("body")
        return y * 2
    finally:
        print("fin")

# else and finally:
#   f(T(1), 1)
#   f(T(1), 0)
def f(x, n):
    y = x + 1
    try:
        z = y * (6 // n)
        w = z + 1
    except ZeroDivisionError:
        w = y - 1
    else:
        w = w + 5
    finally:
        w = w * 2
    return w

# an operator that fails at run time goes to the handler:
#   f(T(3), torch.tensor([7]))
#   f(T(3), torch.tensor([1]))
def f(x, i):
    y = x + 1
    try:
        z = y[i]
    except IndexError as e:
        print("caught", type(e))
        z = y
    return z * 2

# the same, after writes:
#   (lambda x: (f(x, torch.tensor([7])), x))(T(3))
#   (lambda x: (f(x, torch.tensor([1])), x))(T(3))
def f(x, i):
    x += 1
    try:
        z = x[i]
        x += 1
    except IndexError as e:
        print("caught", type(e))
        z = x
    return z * 2

# try inside of an inlined function:
#   f(T(1), 0)
#   f(T(1), 2)
def g(x, n):
    try:
        return x + 1 // n
    except ZeroDivisionError:
        return x
    finally:
        seen.append(n)
seen = []
def f(x, n):
    return g(x, n) * 2, seen

# raise inside of try:
#   f(T(1), 0)
#   f(T(1), 2)
def f(x, n):
    y = x + 1
    try:
        if n == 0:
            raise ValueError("zero")
        y = y * n
    except ValueError as e:
        y = y - len(str(e))
    return y

# continue and break through finally:
#   f(T(1))
def f(x):
    for i in range(4):
        try:
            if i == 1: continue
            if i == 3: break
            x = x + i
        finally:
            x = x * 2
    return x

# return through finally:
#   f(T(1))
log = []
def f(x):
    try:
        return x + 1
    finally:
        log.append(1)

# except*:
#   f(T(1))
def f(x):
    y = x + 1
    try:
        raise ExceptionGroup("g", [ValueError(1)])
    except* ValueError as e:
        y = y * 2
    return y

# a context manager of the user's:
#   f(T(1))
class M:
    def __init__(self, log): self.log = log
    def __enter__(self):
        self.log.append("in")
        return self
    def __exit__(self, *e):
        self.log.append(("out", e[0]))
        return True
log = []
def f(x):
    with M(log) as m:
        y = x + 1
    with M(log):
        y = y * 2
        y = y + [1][3]
    return y, log

# return out of with:
#   f(T(1))
class M:
    def __enter__(self): print("in")
    def __exit__(self, *e): print("out", e)
def f(x):
    y = x + 1
    with M():
        return y * 2

# a break inside of with:
#   f(T(1))
class M:
    def __init__(self): self.n = 0
    def __enter__(self):
        self.n += 1
        return self
    def __exit__(self, *e):
        self.n -= 1
        print("out", self.n, e[0])
def f(x):
    m = M()
    y = x + 1
    with m as k:
        z = y * k.n
        print("inside", k.n)
        z = z + 1
    return z * 2, m.n

# which clause runs:
#   f(T(1), 0)
#   f(T(1), 1)
#   f(T(1), 2)
def f(x, n):
    y = x + 1
    try:
        if n == 0: raise ValueError("zero", n)
        if n == 1: raise KeyError
        y = y * 2
    except ValueError as e:
        y = y + len(e.args)
    except (KeyError, IndexError):
        y = y - 1
    else:
        y = y * 10
    finally:
        y = y + 0.5
    return y

# the exception is kept:
#   f(T(1), 0)
def f(x, n):
    y = x + 1
    try:
        raise ValueError("a")
    except ValueError as e:
        z = e
    return y, z, z.__traceback__ is None, z.__context__

# the exception is looked at:
#   f(T(1), 0)
def g(n):
    if n == 0: raise ValueError("in g")
    return n
def f(x, n):
    y = x + 1
    try:
        y = y * g(n)
    except ValueError as e:
        return y, str(e), repr(e), type(e).__name__, e.args
    return y

# raise from:
#   f(T(1), 0)
def f(x, n):
    y = x + 1
    try:
        try:
            raise ValueError("a")
        except ValueError as e:
            raise KeyError("b") from e
    except KeyError as k:
        y = y * 2
        return y, type(k.__cause__).__name__

# an exception class with __init__:
#   f(T(1), 0)
class MyErr(Exception):
    def __init__(self, a):
        super().__init__("my", a)
        self.a = a
def f(x, n):
    y = x + 1
    try:
        raise MyErr(3)
    except MyErr as e:
        y = y + e.a
    return y, str(e) if False else 0

# arguments of an exception keep their identity:
#   f(T(1), [])
def f(x, l):
    y = x + 1
    try:
        l.append(1)
        raise ValueError(l)
    except Exception as e:
        l.append(e.args[0] is l)
    return y, l

# loops and handlers:
#   f(T(1))
def f(x):
    y = x
    for i in range(5):
        try:
            if i == 1: continue
            if i == 3: raise StopIteration
            y = y + i
        except StopIteration:
            break
        finally:
            y = y * 2
    return y

# sys.exc_info in a handler:
#   f(T(1))
import sys
def f(x):
    y = x + 1
    try:
        raise ValueError("q")
    except ValueError:
        print(sys.exc_info()[0])
        y = y * 2
    print(sys.exc_info()[0])
    return y

# __exit__ prints what it gets:
#   f(T(1))
class M:
    def __enter__(self): return self
    def __exit__(self, t, v, tb):
        print(t, v, tb is None)
        return True
def f(x):
    y = x + 1
    with M():
        y = y * 2
        raise ValueError("w")
    return y

# __exit__ swallows, passes on:
#   f(T(1))
log = []
class M:
    def __enter__(self): return self
    def __exit__(self, t, v, tb):
        log.append((t, v is None, tb is None))
        return t is ValueError
def f(x):
    y = x + 1
    with M():
        y = y * 2
        raise ValueError("w")
    with M():
        y = y + 1
    with M() as a, M() as b:
        raise KeyError("z")
    return y

# every kind of error of Python, and its text:
#   f(T(1))
def f(x):
    y = x + 1
    try:
        d = {}
        d["k"]
    except KeyError as e:
        y = y + 1
        k = str(e)
    try:
        [][1]
    except IndexError as e:
        y = y + 2
        k2 = str(e)
    try:
        1 // 0
    except ZeroDivisionError as e:
        k3 = str(e)
    try:
        int("a")
    except ValueError as e:
        k4 = str(e)
    try:
        x.nope
    except AttributeError as e:
        k5 = str(e)
    try:
        undefined_name
    except NameError as e:
        k6 = str(e)
    try:
        a, b = (1, 2, 3)
    except ValueError as e:
        k7 = str(e)
    try:
        next(iter([]))
    except StopIteration as e:
        k8 = str(e)
    try:
        "a" + 1
    except TypeError as e:
        k9 = str(e)
    try:
        assert False, "msg"
    except AssertionError as e:
        k10 = str(e)
    return y, k, k2, k3, k4, k5, k6, k7, k8, k9, k10

# the text of an operator's error:
#   f(T(3), T(4))
def f(x, z):
    z = z * 2
    try:
        return x + z
    except RuntimeError as e:
        return str(e)

# an operator that always fails:
#   f(T(3))
def f(x):
    try:
        y = x.reshape(5)
    except RuntimeError as e:
        y = x
    return y + 1

# GeneratorExit:
#   f(T(1))
def f(x):
    x = x * 2
    def g():
        try:
            yield x
            yield x + 1
        except GeneratorExit:
            print("exit")
            raise
    for v in g():
        break
    return v * 2

# the name of a handler is unbound afterwards:
#   f(T(1))
def f(x):
    y = x + 1
    try:
        raise ValueError
    except Exception as e:
        pass
    try:
        e
    except NameError:
        y = y * 2
    return y

# exceptions through recursion:
#   f(T(1), 3)
def rec(n):
    if n == 0: raise ValueError("deep")
    try:
        rec(n - 1)
    finally:
        log.append(n)
log = []
def f(x, n):
    y = x + 1
    try:
        rec(n)
    except ValueError:
        y = y * 2
    return y, log

# KeyboardInterrupt is raised and caught:
#   f(T(1))
def f(x):
    y = x + 1
    try:
        raise KeyboardInterrupt
    except BaseException as e:
        return y, type(e).__name__

# exception objects that are not raised:
#   f(T(1))
def f(x):
    y = x + 1
    e = ValueError("made")
    l = [e]
    return y, e, l, isinstance(e, Exception), e.args

# an exception object as argument:
#   f(T(1), ValueError("arg"))
def f(x, e):
    y = x + 1
    try:
        raise e
    except ValueError as q:
        return y, q is e, str(q)

# an exception class as argument:
#   f(T(1), ValueError)
def f(x, E):
    y = x + 1
    try:
        raise E("v")
    except E as q:
        y = y * 2
    return y

# a class in an except clause:
#   f(T(1))
class A(Exception): pass
class B(A): pass
def f(x):
    y = x + 1
    try:
        raise B
    except A:
        y = y * 2
    B.__bases__
    return y

# finally, then a handler:
#   f(T(1))
def f(x):
    y = x + 1
    try:
        try:
            raise ValueError("a")
        finally:
            print("fin")
    except ValueError as e:
        print("got", e)
    return y * 2

# a break inside of try:
#   f(T(1))
def f(x):
    y = x + 1
    try:
        y = y * 2
        print("in try")
        y = y + 1
        raise ValueError("z")
    except ValueError as e:
        print(e)
        y = y * 3
    return y + 1

# return, then finally with a break:
#   f(T(1))
def f(x):
    y = x + 1
    try:
        return y
    finally:
        y = y * 2
        print(y)

# try in a loop on a tensor:
#   f(T(1))
def f(x):
    while True:
        try:
            x = x + 1
            if x.sum() > 3: break
        except ValueError:
            pass
    return x

# context managers of contextlib:
#   f(T(1))
from contextlib import contextmanager, suppress, nullcontext
@contextmanager
def cm(n):
    log.append("in")
    try:
        yield n
    finally:
        log.append("out")
log = []
def f(x):
    y = x + 1
    with cm(3) as n:
        y = y * n
    with suppress(ValueError):
        raise ValueError
    with nullcontext(5) as q:
        y = y + q
    return y, log

# no_grad:
#   f(T(2, requires_grad=True))
def f(x):
    y = x * 2
    with torch.no_grad():
        z = y * 3
    return y, z, z.requires_grad, torch.is_grad_enabled()

# no_grad is left by an exception:
#   f(T(2, requires_grad=True))
def f(x):
    y = x * 2
    try:
        with torch.no_grad():
            z = y * 3
            raise ValueError
    except ValueError:
        w = y * 4
    return z.requires_grad, w.requires_grad, torch.is_grad_enabled()
"""
)


@pytest.mark.parametrize("program", PROGRAMS)
def test_exceptions_are_handled_as_in_plain_python(program):
    program.check()
