"""nn.Modules: what changes between the calls is seen, and what the call changes stays."""

from __future__ import annotations

import pytest

from tests.eager import programs

PROGRAMS = programs(
    r"""
# parameters are replaced, taken away, converted:
#   f(T(2, 3))
#   setattr(m, "bias", None) or f(T(2, 3))
#   setattr(m, "weight", torch.nn.Parameter(T(3, 3))) or f(T(2, 3))
#   m.weight.data.mul_(2) is None or f(T(2, 3))
#   m.double() and f(T(2, 3).double())
m = torch.nn.Linear(3, 3)
with torch.no_grad():
    m.weight.fill_(0.5); m.bias.fill_(1)
def f(x): return m(x) + 1

# training mode of a dropout:
#   f(T(2, 3))
#   m.eval() and f(T(2, 3))
#   m.train() and f(T(2, 3))
m = torch.nn.Dropout(0.5)
def f(x): return m(x) + 1

# statistics and momentum of a batch norm:
#   f(T(4, 2))
#   f(T(4, 2))
#   m.eval() and f(T(4, 2))
#   (m.running_mean, m.num_batches_tracked)
#   setattr(m, "momentum", 0.5) or m.train() and f(T(4, 2))
#   (m.running_mean, m.num_batches_tracked)
m = torch.nn.BatchNorm1d(2)
def f(x): return m(x) + 1

# the parts of a Sequential, and a forward of its own:
#   f(T(2, 3))
#   setattr(m[1], "forward", lambda x: x * 3) or f(T(2, 3))
#   m.append(torch.nn.ReLU()) and f(T(2, 3))
#   m.__setitem__(0, torch.nn.Identity()) or f(T(2, 3))
m = torch.nn.Sequential(torch.nn.ReLU(), torch.nn.Tanh())
def f(x): return m(x) + 1

# hooks come and go:
#   f(T(2, 3))
#   h.append(m.register_forward_hook(lambda mod, i, o: o * 2)) or f(T(2, 3))
#   h.append(m.register_forward_pre_hook(lambda mod, i: (i[0] + 1,))) or f(T(2, 3))
#   h[0].remove() or f(T(2, 3))
#   h[1].remove() or f(T(2, 3))
h = []
m = torch.nn.ReLU()
def f(x): return m(x) + 1

# attributes, buffers and submodules:
#   f(M(), T(3))
#   f(m, T(3))
#   setattr(m, "k", 5) or f(m, T(3))
#   setattr(m.sub, "k", 7) or f(m, T(3))
#   setattr(M, "cls", 9) or f(m, T(3))
#   setattr(m, "sub", Sub(2)) or f(m, T(3))
#   delattr(m, "flag") or f(m, T(3))
class Sub(torch.nn.Module):
    def __init__(self, k=1):
        super().__init__()
        self.k = k
        self.w = torch.nn.Parameter(T(3))
    def forward(self, x): return x * self.w + self.k
class M(torch.nn.Module):
    cls = 1
    def __init__(self):
        super().__init__()
        self.k = 2
        self.flag = True
        self.sub = Sub()
        self.register_buffer("b", T(3))
    def forward(self, x):
        y = self.sub(x) * self.k + self.cls + self.b
        if getattr(self, "flag", False):
            y = y + 1
        return y
m = M()
def f(m, x): return m(x)

# a module that counts, remembers and writes a buffer:
#   f(M(), T(3))
#   f(m, T(3))
#   f(m, T(3))
#   m.n
class M(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.n = 0
        self.register_buffer("b", torch.zeros(3))
        self.hist = []
    def forward(self, x):
        self.n += 1
        self.b += x
        self.hist.append(self.n)
        self.last = x * 2
        return x * self.n + self.b
m = M()
def f(m, x): return m(x), m.last, m.hist

# a state is loaded, gradients are switched off:
#   f(T(3))
#   m.load_state_dict({k: v * 2 for k, v in m.state_dict().items()}) and f(T(3))
#   m.requires_grad_(False) and f(T(3))
m = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.ReLU(), torch.nn.Linear(2, 1))
with torch.no_grad():
    for p in m.parameters(): p.fill_(0.3)
def f(x): return m(x).sum()

# gradients of parameters:
#   (lambda y: (y.backward(), m.weight.grad))(f(T(2, 3)))
#   (lambda y: (y.backward(), m.weight.grad))(f(T(2, 3)))
m = torch.nn.Linear(3, 2)
with torch.no_grad():
    for p in m.parameters(): p.fill_(0.3)
def f(x): return m(x).sum()

# containers of modules and parameters:
#   f(T(3))
#   l.append(torch.nn.Tanh()) and f(T(3))
l = torch.nn.ModuleList([torch.nn.ReLU(), torch.nn.Sigmoid()])
d = torch.nn.ModuleDict({"a": torch.nn.Tanh()})
p = torch.nn.ParameterList([T(3), T(3)])
def f(x):
    for m in l: x = m(x)
    for k, m in d.items(): x = m(x)
    for w in p: x = x * w
    return x + len(l), d["a"](x), l[0](x), p[1]

# forward and __call__ of the class:
#   f(T(3))
#   setattr(M, "forward", lambda s, x: x * 100) or f(T(3))
#   setattr(M, "__call__", lambda s, x: x * 7) or f(T(3))
class M(torch.nn.Module):
    def forward(self, x): return x + 1
m = M()
def f(x): return m(x) * 2

# two names of one module:
#   f(T(3))
#   setattr(a, "x", b) or f(T(3))
class M(torch.nn.Module):
    def forward(self, x): return x + 1
a = M(); b = M(); a.x = a.y = M() if False else torch.nn.ReLU()
def f(x): return (x + 1, a.x is a.y, a.x(x))

# a module with __getattr__:
#   f(T(3))
class M(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.w = torch.nn.Parameter(T(3))
    def __getattr__(self, n):
        if n == "magic": return 7
        return super().__getattr__(n)
    def forward(self, x): return x * self.w + self.magic
m = M()
def f(x): return m(x)

# a forward that prints:
#   f(T(3))
#   f(T(3))
class M(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.w = torch.nn.Parameter(T(3))
    def forward(self, x):
        print("fw")
        return x * self.w
m = M()
def f(x):
    y = m(x)
    return m(y) + 1

# a module that is made here:
#   f(T(3))
#   f(T(3))
def f(x):
    m = torch.nn.Linear(3, 2)
    with torch.no_grad():
        m.weight.fill_(1); m.bias.fill_(0)
    return m(x)

# parameters by name:
#   [n for n, _ in f(T(3))]
m = torch.nn.Sequential(torch.nn.Linear(3, 3))
def f(x):
    y = m(x)
    return list(m.named_parameters()) + [("k", len(list(m.children())))]
"""
)


@pytest.mark.slow
@pytest.mark.parametrize("program", PROGRAMS)
def test_modules_behave_as_in_plain_python(program):
    program.check()
