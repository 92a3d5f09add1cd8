"""Operators: in place, random, with views, with many results."""

from __future__ import annotations

import pytest

from tests.eager import programs

PROGRAMS = programs(
    r"""
# functions of torch only:
#   f(T(3))
def f(x):
    return torch.add(x, x)

# an argument is changed in place:
#   f(T(2))
#   f(T(3))
def f(x):
    x += 1
    x.mul_(2)
    return x

# aliased arguments are changed in place:
#   (lambda t: (f(t, t), t))(T(3))
#   (lambda t, u: (f(t, u), t, u))(T(3), T(3))
#   (lambda t: (f(t, t[:]), t))(T(3))
def f(x, y):
    x += 1
    z = x + y
    y *= 3
    return z, x is y, x, y

# random numbers on both sides of a break:
#   f(T(4))
#   f(T(4))
def f(x):
    a = torch.rand(4) + x
    print("mid")
    b = torch.randn_like(x)
    return a + b, F.dropout(x, 0.5)

# random numbers nobody uses:
#   f(T(2))
def f(x):
    torch.rand(3)
    return x + torch.rand(2)

# permutations and the like:
#   f(T(5))
def f(x):
    return x[torch.randperm(5)], torch.randint(0, 10, (3,)), torch.normal(x, 1.0), torch.bernoulli(x / 10)

# a generator of random numbers:
#   f(T(5))
gen = torch.Generator().manual_seed(3)
def f(x):
    return x + torch.rand(5, generator=gen)

# manual_seed:
#   f(T(5))
def f(x):
    torch.manual_seed(5)
    return x + torch.rand(5)

# a parameter:
#   f(torch.nn.Parameter(T(2)))
def f(x):
    return x * 2

# a sparse tensor (plain):
#   f(torch.eye(3).to_sparse(), T(3, 3))
def f(x, y):
    return x @ y

# a meta tensor:
#   f(torch.empty(3, device="meta"))
def f(x):
    return x * 2

# a conjugate view (plain):
#   f(torch.tensor([1+2j]).conj())
def f(x):
    return x * 2

# a conjugate view made here:
#   f(torch.tensor([1+2j]))
def f(x):
    y = x.conj()
    print("a")
    return y * 2

# an empty tensor:
#   f(torch.empty(0, 3))
def f(x):
    return x * 2, x.shape[0], len(x)

# a subclass (plain):
#   f(S(T(3)))
class S(torch.Tensor): pass
def f(x):
    return x * 2

# no_grad as a block (plain):
#   f(T(2, requires_grad=True))
def f(x):
    with torch.no_grad():
        y = x * 2
    return y + x

# no_grad as a decorator:
#   f(T(2, requires_grad=True))
@torch.no_grad()
def f(x):
    return x * 2

# no_grad as a decorator of an inlined function:
#   f(T(2, requires_grad=True))
@torch.no_grad()
def g(x):
    return x * 2
def f(x):
    return g(x) + x

# inference mode (plain):
#   f(T(3))
def f(x):
    with torch.inference_mode():
        return x * 2

# autocast (plain):
#   f(T(3, 3))
def f(x):
    with torch.autocast("cpu"):
        return x @ x

# a write that makes a tensor require a gradient:
#   f(T(3, requires_grad=True))
def f(w):
    x = torch.zeros(3)
    x[0] = w[0]
    return x, x.requires_grad

# requires_grad_:
#   f(T(3))
def f(x):
    y = x.requires_grad_()
    return y * 2

# detach:
#   f(T(3, requires_grad=True))
def f(x):
    y = x.detach()
    return y * 2, y is x

# data and grad:
#   f(T(3, requires_grad=True))
def f(x):
    return x.data + 1, x.grad

# results with names:
#   f(T(3, 2))
def f(x):
    r = torch.max(x, 0)
    v, i = r
    return r, r.values + 1, i

# operators on lists of tensors:
#   (lambda a, b: (f(a, b), a, b))(T(2), T(3))
def f(a, b):
    torch._foreach_add_([a, b], 1)
    c = torch._foreach_mul([a, b], 2)
    return c

# operators without result:
#   f(T(2))
def f(x):
    torch._assert_async(x.sum() > 0)
    torch._assert(True, "a")
    return x + 1

# copy and assignment:
#   (lambda a, b: (f(a, b), a))(T(2), T(2))
def f(a, b):
    a.copy_(b * 2)
    a[0] = 5
    a[1:] += 1
    return a

# out=:
#   (lambda a, b: (f(a, b), a))(T(2), T(2))
def f(a, b):
    torch.add(b, b, out=a)
    return a * 2

# inplace=True:
#   (lambda a: (f(a), a))(-T(2))
def f(a):
    b = F.relu(a, inplace=True)
    return b is a, b + 1

# batch norm writes its statistics:
#   (lambda a, m, v: (f(a, m, v), m, v))(T(4, 2), torch.zeros(2), torch.ones(2))
def f(a, m, v):
    return F.batch_norm(a, m, v, training=True)

# clone and detach:
#   f(T(3, requires_grad=True))
def f(x):
    y = x.clone()
    y += 1
    z = y.detach()
    return y, z, z.requires_grad

# operators with several results:
#   f(T(6))
def f(x):
    a, b, *c = x.chunk(3)
    return a + b, c, x.split([2, 4]), torch.stack([a, b]), torch.cat((a, b), dim=0)

# arithmetic on sizes:
#   f(T(2, 3))
def f(x):
    b, c = x.shape
    h, w = x.size()
    return x.reshape(b * c), x.view(-1, b), x.size(0) + x.shape[-1], x.new_zeros(b), x.expand(4, *x.shape), h * w

# matrix products:
#   f(T(2, 3), T(3, 2))
def f(x, y):
    return torch.einsum("ij,jk->ik", x, y), x @ y, torch.matmul(x, y), F.softmax(x, dim=-1), x.mean(dim=(0, 1), keepdim=True)

# conditions:
#   f(T(3))
def f(x):
    return torch.where(x > 1, x, 0.0), x.clamp(min=2), x.masked_fill(x > 1, 0), (x > 1).any(), x.max(), x.argmax()

# complex numbers:
#   f(torch.tensor([1+2j]))
def f(x):
    return x * 1j, x.real, x.imag, x.abs(), x.conj()

# half precision:
#   f(T(3).half())
def f(x):
    return x * 2.5, x + 1

# integers:
#   f(torch.arange(4))
def f(x):
    return x / 2, x // 2, x % 3, x ** 2, -x, ~x, x << 1, x & 1, 2 ** x, 1 - x, x == 2, 3 > x

# attributes that are metadata:
#   f(T(4))
def f(x):
    return x + 1, x.names, x.name, x.ndim, x.is_cuda, x.layout, x.device
"""
)


@pytest.mark.parametrize("program", PROGRAMS)
def test_operators_give_what_plain_python_gives(program):
    program.check()
