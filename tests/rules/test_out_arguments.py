"""`out=`: what only writes is part of the graph; what resizes, converts or fails is plain Python's."""

from __future__ import annotations

import pytest

from tests.eager import check, programs

CAPTURED = programs(
    r"""
# a result in a tensor from outside, which comes back:
#   (lambda a, b: (*f(a, b), a))(T(2), T(2))
#   (lambda a: (*f(a, a), a))(T(2))
#   (lambda a: (*f(a, a[:]), a))(T(2))
def f(a, b):
    c = torch.add(b, b, out=a)
    return c * 2, c is a, a + b

# in a tensor of the graph, and in an operand:
#   f(T(2, 2))
def f(x):
    y = torch.empty(2, 2)
    torch.matmul(x, x, out=y)
    torch.div(y, x, out=y)
    return y, torch.rand(3, out=torch.zeros(3)), torch.cumsum(x, 0, out=None)

# in a view:
#   (lambda t: (f(t), t))(T(3, 2))
def f(x):
    torch.exp(x[1], out=x[0])
    return x.sum()

# without gradients:
#   (lambda w, o: (f(w, o), o))(T(2, requires_grad=True), T(2))
def f(w, o):
    with torch.no_grad():
        F.normalize(w, dim=0, out=o)
    return w.detach() * o

# strides are kept:
#   (lambda o: (f(T(2, 3), o), o, o.stride()))(T(3, 2).t())
def f(x, o):
    return torch.sin(x, out=o).stride()
"""
)
BROKEN = programs(
    r"""
# another dtype, another size, several results:
#   f(T(2))
def f(x):
    a, b = torch.zeros(2, dtype=torch.float64), torch.empty(0)
    y = x + 1
    torch.add(y, y, out=a)
    torch.add(y, y, out=b)
    return a, b, torch.max(y, 0, out=(torch.tensor(0.0), torch.tensor(0)))

# with gradients:
#   f(T(2, requires_grad=True), T(2))
#   f(T(2), T(2, requires_grad=True))
def f(w, o):
    y = w * 2
    return torch.add(y, y, out=o)

# of another class:
#   f(T(2))
class Sub(torch.Tensor):
    pass
def f(x):
    y = x + 1
    return type(torch.add(y, y, out=torch.zeros(2).as_subclass(Sub)))

# elements in one place:
#   f(T(2))
def f(x):
    y = x + 1
    return torch.add(y, y, out=torch.zeros(1).expand(2))
"""
)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("program", CAPTURED)
def test_captured(program, backend):
    assert check(program.source, *program.calls, backend=backend).reasons == []


@pytest.mark.parametrize("program", BROKEN)
def test_left_to_plain_python(program):
    assert program.check().breaks
