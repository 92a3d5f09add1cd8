"""What programs do with modules besides calling them: walks over parameters and children, modes, functional calls, vectors of
parameters, initialisation; effects are those of plain Python."""

from __future__ import annotations

import pytest

from tests.eager import check, programs

SETUP = r"""
from torch import nn
class M(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.a = nn.Linear(2, 2)
        self.b = nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Dropout(0.5))
        self.register_buffer("k", torch.ones(2))
        self.p = nn.Parameter(torch.ones(2))
    def forward(self, x):
        return self.b(self.a(x)) + self.p * self.k
m = M()
def state(m):
    return dict(m.named_parameters()), dict(m.named_buffers()), [c.training for c in m.modules()]
"""
CAPTURED = programs(
    r"""
# walks:
#   f(m, T(2))
def f(m, x):
    names = [n for n, _ in m.named_parameters(prefix="q", recurse=False)]
    for n, p in m.named_parameters():
        x = x + p.sum()
        names.append(n)
    names += [n for n, b in m.named_buffers() if b.numel()] + [n for n, _ in m.named_modules()]
    for c in m.children():
        x = c(x)
    count = sum(p.numel() for p in m.parameters() if p.requires_grad)
    return x.to(next(m.parameters()).dtype), names, count, sum(isinstance(c, nn.Linear) for c in m.modules())

# modes:
#   (f(m, T(2)), state(m))
#   (m.eval(), f(m, T(2)), state(m))[1:]
def f(m, x):
    was = m.training
    m.eval()
    try:
        with torch.no_grad():
            y = m(x)
    finally:
        m.train(was)
    m.train()
    return y, m(x)

# parts by name, apply, add_module, register_buffer:
#   (f(m, T(2)), state(m))
def fill(c):
    if isinstance(c, nn.Linear):
        with torch.no_grad():
            c.weight.fill_(1.0)
def f(m, x):
    y = m.get_submodule("b.0")(x) + m.get_parameter("a.bias") + m.get_buffer("k")
    m.apply(fill)
    m.add_module("z", m.a)
    m.register_buffer("q", x + 1)
    return m.z(y) * m.q

# a moving average:
#   (f(m, T(2)), state(m))
n = M()
def f(m, x):
    with torch.no_grad():
        for p, q in zip(m.parameters(), n.parameters()):
            p.mul_(0.9).add_(q, alpha=0.1)
    for p in m.a.parameters():
        p.data.mul_(0.5)
    return m.a(x)

# functional calls:
#   (m.eval(), f(m, T(2)), state(m))[1:]
#   (f(m, T(2)), state(m))
def f(m, x):
    d = {n: p.detach() * 2 for n, p in m.named_parameters()}
    y = torch.func.functional_call(m, (d, dict(m.named_buffers())), (x,))
    return y + torch.func.functional_call(m.a, {"weight": torch.ones(2, 2)}, x) + m(x)

# a functional call that raises:
#   (f(m, T(2)), state(m))
def f(m, x):
    try:
        return torch.func.functional_call(m.a, {"weight": torch.ones(3, 3)}, (x,))
    except RuntimeError:
        return m.a(x)

# parameters as a vector, layers made in the call:
#   f(m, T(2))
def f(m, x):
    v = torch.nn.utils.parameters_to_vector(m.parameters())
    return nn.Sequential(m.a, nn.ReLU(), nn.LayerNorm(2, elementwise_affine=False))(x) + v.sum()
"""
)
BROKEN = programs(
    r"""
# gradients:
#   (m.a(T(2)).sum().backward(), f(m, T(2)), [p.grad for p in m.parameters()])
def f(m, x):
    y = x + 1
    if m.a.weight.grad is not None:
        y = y + m.a.weight.grad.sum()
    m.zero_grad()
    return y

# requires_grad:
#   (f(m, T(2)), [p.requires_grad for p in m.parameters()])
#   (f(m, T(2)), [p.requires_grad for p in m.parameters()])
def f(m, x):
    y = m.a(x)
    m.b.requires_grad_(False)
    m.p.requires_grad = False
    return m(y) * 2

# parameters and layers with parameters:
#   (f(m, T(2)), m.q, [n for n, _ in m.named_parameters()])
def f(m, x):
    m.q = nn.Parameter(x + 1)
    layer = nn.Linear(2, 2)
    return m.q * layer(x)

# states, dtypes, vectors that become parameters:
#   (f(m, T(2)), state(m))
def f(m, x):
    y = x * 2
    states = {name: value.clone() for name, value in m.state_dict().items()}
    v = torch.nn.utils.parameters_to_vector(m.parameters()).detach()
    torch.nn.utils.vector_to_parameters(v * 2, m.parameters())
    z = m.a(y)
    m.load_state_dict(states)
    m.to(torch.float64)
    return z, m.a(y.double()), list(states)
"""
)


@pytest.mark.slow
@pytest.mark.parametrize("program", CAPTURED)
def test_captured(program):
    assert check(SETUP + program.source, *program.calls).reasons == []


@pytest.mark.parametrize("program", BROKEN)
def test_left_to_plain_python(program):
    assert check(SETUP + program.source, *program.calls).breaks
