"""nn.Modules that a captured function makes itself, and modules that it registers something in."""

from __future__ import annotations

import pytest
import torch

from tests.eager import check, programs

MADE = """
# losses of torch:
#   f(T(3, 4, requires_grad=True), torch.tensor([0, 1, 2]))
#   f(T(3, 4), torch.tensor([3, 1, 2]))
def f(x, y):
    loss = torch.nn.CrossEntropyLoss()(x, y) + torch.nn.MSELoss(reduction="sum")(x, x * 2)
    return loss + torch.nn.L1Loss()(x, x.detach() * 3)

# a loss with a weight, a buffer of it:
#   f(T(3, 4), torch.tensor([0, 1, 2]), T(4))
def f(x, y, w):
    loss = torch.nn.CrossEntropyLoss(weight=w)
    return loss(x, y), loss.weight, list(dict(loss.named_buffers())), loss.reduction

# a container of new modules:
#   f(T(3, 4))
def f(x):
    model = torch.nn.Sequential(torch.nn.ReLU(), torch.nn.Tanh(), torch.nn.Softmax(dim=-1))
    return model(x) + model[0](x) + model[1:](x), len(model)

# a class of the program's:
#   f(T(3), 2)
#   f(T(3), 3)
class Scale(torch.nn.Module):
    def __init__(self, by):
        super().__init__()
        self.by = by
        self.register_buffer("shift", torch.ones(3))
        self.inner = torch.nn.Identity()
    def forward(self, x):
        return self.inner(x * self.by) + self.shift
def f(x, by):
    made = Scale(by)
    y = made(x)
    made.by = by + 1
    return y + made(x), made.training, "shift" in made._buffers

# modules from outside in a new one:
#   f(T(3, 4))
#   layer.weight.grad
layer = torch.nn.Linear(4, 4)
torch.nn.init.ones_(layer.weight), torch.nn.init.ones_(layer.bias)
def f(x):
    model = torch.nn.Sequential(layer, torch.nn.ReLU())
    y = model(x)
    y.sum().backward()
    return y, [name for name, _ in model.named_parameters()]

# a ModuleList over layers, extended:
#   f(T(3))
layers = [torch.nn.ReLU(), torch.nn.Tanh()]
def f(x):
    made = torch.nn.ModuleList(layers[:1])
    made.append(layers[1])
    made.extend([torch.nn.Sigmoid()])
    for layer in made:
        x = layer(x)
    for layer in made[1:]:
        x = layer(x)
    return x, made[0] is layers[0]

# returned:
#   f(T(3))
#   f(T(3))[0](T(2))
class Own(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.factor = 3
    def forward(self, x):
        return x * self.factor
def f(x):
    made = Own()
    made.extra = made(x)
    return made, made.extra

# training mode:
#   f(T(3))
def f(x):
    drop = torch.nn.Dropout(0.5)
    assert drop.training
    drop.eval()
    return drop(x), drop.training

# an attribute that is not there:
#   f(T(3))
def f(x):
    made = torch.nn.ReLU()
    try:
        made.missing
    except AttributeError as error:
        return made(x), str(error), hasattr(made, "missing"), getattr(made, "missing", 4)

# before __init__:
#   f(T(3))
class Late(torch.nn.Module):
    def __init__(self):
        self.inner = torch.nn.ReLU()
def f(x):
    try:
        Late()
    except AttributeError as error:
        return x + 1, str(error)

# arguments that nn.Module refuses:
#   f(T(3))
class Odd(torch.nn.Module):
    def __init__(self, a):
        super().__init__(a)
def f(x):
    try:
        Odd(1)
    except TypeError as error:
        return x + 1, str(error)

# a marked tensor is a parameter to isinstance:
#   f(T(3), marked)
#   f(T(3), T(3))
#   f(T(3), torch.nn.Parameter(T(3)))
#   f(T(3), unmarked)
#   f(T(3), torch.nn.Buffer(T(3)))
marked, unmarked = T(3), T(3)
marked._is_param = True
unmarked._is_param = False
def f(x, y):
    return x + y, isinstance(y, torch.nn.Parameter), isinstance(y, torch.nn.Buffer), isinstance(x + y, torch.nn.Parameter)
"""

REGISTERED = """
# a submodule, first and again:
#   f(m, T(3))
#   f(m, T(3))
#   list(dict(m.named_modules()))
class M(torch.nn.Module):
    def forward(self, x):
        self.act = torch.nn.ReLU()
        return self.act(x) - 1
m = M()
def f(m, x):
    return m(x)

# a submodule from outside takes the place of an attribute:
#   f(m, act, T(3))
#   f(m, act, T(3))
#   "act" in m.__dict__, m._modules["act"] is act
m, act = torch.nn.Module(), torch.nn.Tanh()
m.act = 5
def f(m, act, x):
    m.act = act
    return m.act(x)

# None takes the place of a submodule:
#   f(m, T(3))
#   f(m, T(3))
#   m._modules
m = torch.nn.Sequential(torch.nn.ReLU())
m.act = torch.nn.Tanh()
def f(m, x):
    y = x if m.act is None else m.act(x)
    m.act = None
    return y + 1

# buffers:
#   f(m, T(3))
#   f(m, T(3))
#   dict(m.named_buffers()), m._non_persistent_buffers_set, list(m.state_dict())
m = torch.nn.Module()
m.register_buffer("count", torch.zeros(3))
def f(m, x):
    m.count = m.count + x
    m.register_buffer("last", x * 2)
    m.register_buffer("other", m.last + 1, persistent=False)
    return m.count + m.last + m.other

# add_module and register_module:
#   f(m, T(3))
#   f(m, T(3))
#   list(dict(m.named_modules()))
m = torch.nn.Module()
def f(m, x):
    m.add_module("one", torch.nn.ReLU())
    m.register_module("two", torch.nn.Tanh())
    return m.two(m.one(x))

# deleted:
#   f(m, T(3))
#   sorted(m.__dict__), m._modules, m._buffers
m = torch.nn.Module()
m.act, m.plain = torch.nn.ReLU(), 3
m.register_buffer("b", torch.ones(3))
def f(m, x):
    y = m.act(x) * m.plain + m.b
    del m.act, m.plain, m.b
    return y, hasattr(m, "act"), hasattr(m, "plain"), hasattr(m, "b")

# errors of nn.Module's own:
#   f(m, T(3))
m = torch.nn.Sequential(torch.nn.ReLU())
m.register_buffer("b", torch.ones(3))
def f(m, x):
    told = []
    for name, value in (("b", 3), ("0", 4)):
        try:
            setattr(m, name, value)
        except TypeError as error:
            told.append(str(error))
    for name in ("", "a.b", "forward"):
        try:
            m.add_module(name, torch.nn.ReLU())
        except KeyError as error:
            told.append(str(error))
    return m(x), told
"""


@pytest.mark.slow
@pytest.mark.parametrize("program", programs(MADE))
def test_modules_made_in_the_trace(program):
    seen = program.check()
    assert not seen.breaks or "backward" in program.source, seen.reasons


@pytest.mark.parametrize("program", programs(REGISTERED))
def test_what_is_registered_in_the_trace(program):
    seen = program.check()
    assert not seen.breaks or "errors" in program.name, [event.text for event in seen.breaks]


def test_a_changed_class_of_a_new_module_is_seen():
    check(
        """
        class M(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.by = 2
            def forward(self, x):
                return x * self.by
        def f(x):
            return M()(x)
        def change(name, value):
            setattr(M, name, value)
        """,
        "f(T(3))",
        "change('forward', lambda self, x: x + self.by)",
        "f(T(3))",
        "change('__call__', lambda self, x: x - 1)",
        "f(T(3))",
        "change('__setattr__', lambda self, name, value: object.__setattr__(self, name, value + 1 if name == 'by' else value))",
        "f(T(3))",
    )


def test_a_global_hook_is_called_on_new_modules():
    check(
        """
        handles = []
        def f(x):
            return torch.nn.ReLU()(x)
        def add():
            handles.append(torch.nn.modules.module.register_module_forward_hook(lambda m, a, out: out + 1))
        def remove():
            handles.pop().remove()
        """,
        "f(T(3))",
        "add()",
        "f(T(3))",
        "remove()",
        "f(T(3))",
    )


def test_after_torch_compile_has_run():
    """It puts a function of its own before Module.__init__."""
    torch.compile(lambda x: x + 1, backend="eager")(torch.ones(2))
    assert torch.nn.Module.__init__.__module__ == "torch._dynamo.mutation_guard"
    seen = check("def f(x):\n    return torch.nn.Softmax(dim=0)(x)", "f(T(3))")
    assert not seen.breaks
