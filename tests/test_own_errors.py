"""nopython raises the program's own error, not one about graphs."""

from __future__ import annotations

import pytest
import torch

import minidynamo
from minidynamo.exc import Unsupported
from tests.eager import Module, error_of, programs

PROGRAMS = programs(
    r"""
# raised in the frame:
#   f(T(2), 1)
def f(x, n):
    y = x + 1
    if n:
        raise ValueError("mine", n)
    return y

# raised before anything was captured:
#   f(T(2), 1)
def f(x, n):
    if n:
        raise ValueError("mine", n)
    return x + 1

# raised in a called function, below a context:
#   f(T(2), 5)
def limited(x, n):
    assert n < 3, f"too many: {n}"
    return x
def f(x, n):
    with torch.no_grad():
        return limited(x + 1, n)

# raised from another exception:
#   f(T(2), {})
def f(x, d):
    y = x + 1
    try:
        return y * d["k"]
    except KeyError as e:
        raise LookupError("nothing here") from e

# an exception that was made outside:
#   f(T(2), ValueError(3))
def f(x, error):
    y = x + 1
    raise error

# a class of the program's own:
#   f(T(2), 7)
class Refused(Exception):
    def __init__(self, code):
        super().__init__(f"code {code}")
        self.code = code
def f(x, n):
    y = x * 2
    raise Refused(n)

# an operator that fails:
#   f(T(2), T(3))
def f(x, y):
    z = x * 2
    return z + y

# a missing attribute, a missing key, an index out of range, a missing name, a wrong call, a division by zero:
#   f(T(2), lambda x: x.nothing)
#   f(T(2), lambda x: {}["k"])
#   f(T(2), lambda x: [1][3])
#   f(T(2), lambda x: nobody)
#   f(T(2), lambda x: (lambda a, b: a)(x))
#   f(T(2), lambda x: (lambda a: a)(x, b=1))
#   f(T(2), lambda x: (lambda: x)(x))
#   f(T(2), lambda x: 1 // 0)
def f(x, g):
    y = x + 1
    return y * g(y)
"""
)


@pytest.mark.parametrize("program", PROGRAMS)
def test_nopython_raises_the_programs_error(program):
    for call in program.calls:
        plain = Module(program.source)
        strict = Module(program.source, plain.filename)
        strict.names["f"] = minidynamo.optimize("eager", nopython=True)(strict.names["f"])
        errors = []
        for module in (plain, strict, strict):  # what the second call does must not depend on the first
            with pytest.raises(Exception) as caught:
                eval(call, module.names)
            errors.append((error_of(caught.value, module.filename), str(caught.value.args)))
        assert errors[0] == errors[1] == errors[2]


def test_a_graph_break_is_still_an_error():
    def f(x):
        print(x.shape)
        return x + 1

    with pytest.raises(Unsupported):
        minidynamo.optimize("eager", nopython=True)(f)(torch.ones(2))


def test_an_error_that_a_handler_takes_is_no_error_of_the_caller():
    """What plain Python must do because a handler is followed no further is a graph break."""

    def f(x, items):
        y = x + 1
        try:
            return y * items.nothing
        except AttributeError:
            print("no")
            return y

    with pytest.raises(Unsupported):
        minidynamo.optimize("eager", nopython=True)(f)(torch.ones(2), object())


def test_good_values_are_captured_after_an_error():
    def f(x, n):
        if n:
            raise ValueError(n)
        return x + 1

    strict = minidynamo.optimize("eager", nopython=True)(f)
    with pytest.raises(ValueError):
        strict(torch.ones(2), 1)
    assert strict(torch.ones(2), 0).sum() == 4
    assert len(minidynamo.cache_entries(strict)) == 1
