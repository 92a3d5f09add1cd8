"""Programs that compile again, or break the graph, for one known reason each: what a report must say, and the program mended.

`fixed` is empty where the printed fix has edits: then those are applied. `site` is the expression, or line, that the report names.
"""

from __future__ import annotations

from dataclasses import dataclass

PRELUDE = "import torch\nimport minidynamo\nopt = minidynamo.optimize('eager')\n"


@dataclass(frozen=True)
class Storm:
    """One program with what its report says of the newest recompilation."""

    name: str
    code: str
    what: str
    old: str
    new: str
    site: str
    source: str
    fixed: str = ""
    used: str = ""


STORMS = [
    Storm(
        "a size, rows", "MD101", "x.size(0)", "4", "6", "x",
        """
@opt
def f(x):
    return x * 2

for n in (4, 6):
    x = torch.ones(n, 3)
    f(x)
""", used="return x * 2",
    ),
    Storm(
        "a size, columns", "MD101", "x.size(1)", "3", "5", "x",
        """
@opt
def f(x):
    return x.sum(1)

for n in (3, 5):
    x = torch.ones(2, n)
    f(x)
""",
    ),
    Storm(
        "a size, in a method", "MD101", "batch.size(0)", "2", "3", "batch",
        """
class Model:
    @opt
    def loss(self, batch):
        return batch.mean()

model = Model()
for n in (2, 3):
    batch = torch.ones(n)
    model.loss(batch)
""",
    ),
    Storm(
        "a number of dimensions", "MD101", "x.size()", "(4,)", "(2, 2)", "x.reshape(shape)",
        """
@opt
def f(x):
    return x + 1

x = torch.ones(4)
for shape in ((4,), (2, 2)):
    f(x.reshape(shape))
""",
        """
@opt
def f(x):
    return x + 1

x = torch.ones(4)
for shape in ((1, 4), (1, 4)):
    f(x.reshape(shape))
""",
    ),
    Storm(
        "strides", "MD102", "x.stride", "(4, 1)", "(1, 4)", "w if i % 2 == 0 else w.t()",
        """
@opt
def f(x):
    return x * 2

w = torch.ones(4, 4)
for i in range(2):
    f(w if i % 2 == 0 else w.t())
""",
    ),
    Storm(
        "dtype", "MD103", "x.dtype", "float32", "float64", "x",
        """
@opt
def f(x):
    return x * 2

for dtype in (torch.float32, torch.float64):
    x = torch.ones(3, dtype=dtype)
    f(x)
""",
    ),
    Storm(
        "device", "MD103", "x.device", "meta", "cpu", "x",
        """
@opt
def f(x):
    return x * 2

for device in ("meta", "cpu"):
    x = torch.ones(3, device=device)
    f(x)
""",
    ),
    Storm(
        "requires_grad", "MD104", "x.requires_grad", "False", "True", "torch.ones(3, requires_grad=flag)",
        """
@opt
def f(x):
    return x * 2

for flag in (False, True):
    f(torch.ones(3, requires_grad=flag))
""",
    ),
    Storm(
        "grad mode", "MD104", "grad mode", "on", "off", "f(x)",
        """
@opt
def f(x):
    return x * 2

x = torch.ones(3)
for train in (True, False):
    with torch.set_grad_enabled(train):
        f(x)
""",
    ),
    Storm(
        "an int", "MD105", "n", "2", "3", "i",
        """
@opt
def f(x, n):
    return x * n

for i in range(1, 4):
    f(torch.ones(3), i)
""", used="return x * n",
    ),
    Storm(
        "an int by keyword", "MD105", "n", "1", "2", "i + 1",
        """
@opt
def f(x, *, n):
    return x * n

for i in range(2):
    f(torch.ones(3), n=i + 1)
""",
    ),
    Storm(
        "an int at two calls", "MD105", "n", "1", "2", "2",
        """
@opt
def f(x, n):
    return x * n

x = torch.ones(3)
f(x, 1)
f(x, 2)
""",
    ),
    Storm(
        "an int in *args", "MD105", "rest[0]", "1", "2", "i + 1",
        """
@opt
def f(x, *rest):
    return x * rest[0]

for i in range(2):
    f(torch.ones(3), i + 1)
""",
    ),
    Storm(
        "a bool", "MD105", "flag", "False", "True", "i > 0",
        """
@opt
def f(x, flag):
    return x * 2 if flag else x * 3

for i in range(2):
    f(torch.ones(3), i > 0)
""",
        """
@opt
def f(x, flag):
    return torch.where(flag, x * 2, x * 3)

for i in range(2):
    f(torch.ones(3), torch.tensor(i > 0))
""",
    ),
    Storm(
        "a string", "MD105", "mode", "'mean'", "'sum'", "mode",
        """
@opt
def f(x, mode):
    return x.mean() if mode == "mean" else x.sum()

for mode in ("mean", "sum"):
    f(torch.ones(3), mode)
""",
        """
def f(x, mode):
    return x.mean() if mode == "mean" else x.sum()

compiled = {mode: minidynamo.optimize("eager", isolate=True)(eval(f"lambda x: f(x, {mode!r})")) for mode in ("mean", "sum")}
for mode in ("mean", "sum"):
    compiled[mode](torch.ones(3))
""",
    ),
    Storm(
        "a learning rate", "MD106", "lr", "0.05", "0.025", "0.1 / 2**i",
        """
@opt
def train_step(w, lr):
    return w - lr * w

w = torch.ones(3)
for i in range(3):
    w = train_step(w, 0.1 / 2**i)
""",
    ),
    Storm(
        "a float over several lines of a call", "MD106", "scale", "0.5", "1.5", "i + 0.5",
        """
@opt
def f(x, scale):
    return x * scale

for i in range(2):
    f(
        torch.ones(3),
        i + 0.5,
    )
""",
    ),
    Storm(
        "a float to a module", "MD106", "scale", "0.5", "1.5", "i + 0.5",
        """
class Scaled(torch.nn.Module):
    def forward(self, x, scale):
        return x * scale

model = opt(Scaled())
for i in range(2):
    model(torch.ones(3), i + 0.5)
""",
    ),
    Storm(
        "a zero that becomes one", "MD106", "p", "0.0", "0.5", "p",
        """
@opt
def f(x, p):
    return x * p

for p in (0.0, 0.5):
    f(torch.ones(3), p)
""",
    ),
    Storm(
        "an attribute of an object", "MD107", "cfg.step", "1", "2", "cfg.step = i",
        """
class Config:
    step = 0

cfg = Config()

@opt
def f(x):
    return x * cfg.step

for i in range(3):
    cfg.step = i
    f(torch.ones(3))
""", used="return x * cfg.step",
    ),
    Storm(
        "a counter of a module", "MD107", "self.calls", "1", "2", "self.calls += 1",
        """
class Counter(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        return x * self.calls

model = opt(Counter())
for _ in range(3):
    model(torch.ones(3))
""",
    ),
    Storm(
        "an attribute of a module", "MD107", "self.temperature", "1.0", "0.5", "model.temperature = t",
        """
class Sampler(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.temperature = 1.0

    def forward(self, x):
        return x / self.temperature

model = Sampler()
compiled = opt(model)
for t in (1.0, 0.5):
    model.temperature = t
    compiled(torch.ones(3))
""",
    ),
    Storm(
        "a global", "MD107", "scale", "2.0", "3.0", "scale = value",
        """
scale = 1.0

@opt
def f(x):
    return x * scale

for value in (2.0, 3.0):
    scale = value
    f(torch.ones(3))
""",
    ),
    Storm(
        "a closure variable", "MD107", "k", "1", "2", "k = k + 1",
        """
def main():
    k = 1

    @opt
    def f(x):
        return x * k

    for _ in range(2):
        f(torch.ones(3))
        k = k + 1

main()
""",
    ),
    Storm(
        "an entry of a dict", "MD107", "state['n']", "1", "2", "state[\"n\"] = i",
        """
state = {"n": 0}

@opt
def f(x):
    return x * state["n"]

for i in (1, 2):
    state["n"] = i
    f(torch.ones(3))
""",
    ),
    Storm(
        "a lambda's variable in a loop", "MD107", "k", "1", "2", "for k in (1, 2):",
        """
@opt
def f(x, op):
    return op(x)

for k in (1, 2):
    f(torch.ones(3), (lambda k: lambda y: y * k)(k))
""",
        """
@opt
def f(x, op):
    return op(x)

for k in (1, 2):
    f(torch.ones(3), (lambda k: lambda y: y * k)(torch.tensor(k)))
""",
    ),
    Storm(
        "another function", "MD108", "op", "double", "halve", "op",
        """
def double(y):
    return y * 2

def halve(y):
    return y / 2

@opt
def f(x, op):
    return op(x)

for op in (double, halve):
    f(torch.ones(3), op)
""",
        """
def double(y):
    return y * 2

@opt
def f(x, op):
    return op(x)

for op in (double, double):
    f(torch.ones(3), op)
""",
    ),
    Storm(
        "a new function each time", "MD108", "op", "<lambda>", "<lambda>", "op",
        """
@opt
def f(x, op):
    return op(x)

ops = [eval(f"lambda y: y * {k}") for k in (2, 3)]
for op in ops:
    f(torch.ones(3), op)
""",
        """
@opt
def f(x, op):
    return op(x)

op = eval("lambda y: y * 2")
for _ in range(2):
    f(torch.ones(3), op)
""",
    ),
    Storm(
        "int becomes float", "MD109", "n", "int", "float", "n",
        """
@opt
def f(x, n):
    return x * n

for n in (2, 2.0):
    f(torch.ones(3), n)
""",
    ),
    Storm(
        "None becomes a tensor", "MD109", "mask", "None", "Tensor float32 (3,) on cpu", "mask",
        """
@opt
def f(x, mask=None):
    return x + 1 if mask is None else x * mask

for mask in (None, torch.ones(3)):
    f(torch.ones(3), mask)
""",
        """
@opt
def f(x, mask=None):
    return x + 1 if mask is None else x * mask

for mask in (torch.ones(3), torch.ones(3)):
    f(torch.ones(3), mask)
""",
    ),
    Storm(
        "a list becomes a tuple", "MD109", "items", "list", "tuple", "items",
        """
@opt
def f(x, items):
    return x * items[0]

for items in ([2], (2,)):
    f(torch.ones(3), items)
""",
    ),
    Storm(
        "a list grows", "MD110", "len(items)", "1", "2", "items.append(torch.ones(3))",
        """
@opt
def f(items):
    total = 0
    for item in items:
        total = total + item
    return total

items = []
for _ in range(2):
    items.append(torch.ones(3))
    f(items)
""",
    ),
    Storm(
        "a dict gets a key", "MD110", "batch", "keys ('a',)", "keys ('a', 'b')", "batch",
        """
@opt
def f(batch):
    total = 0
    for value in batch.values():
        total = total + value
    return total

a = torch.ones(3)
for batch in ({"a": a}, {"a": a, "b": a}):
    f(batch)
""",
    ),
    Storm(
        "an optional key", "MD110", "batch", "no key 'mask'", "key 'mask'", "batch",
        """
@opt
def f(batch):
    return batch["x"] * 2 if "mask" not in batch else batch["x"]

x = torch.ones(3)
for batch in ({"x": x}, {"x": x, "mask": x}):
    f(batch)
""",
        """
@opt
def f(batch):
    return batch["x"] * 2 if "mask" not in batch else batch["x"]

x = torch.ones(3)
for batch in ({"x": x}, {"x": x}):
    f(batch)
""",
    ),
    Storm(
        "one tensor twice", "MD111", "y", "the object of argument x", "another object than argument x", "y",
        """
@opt
def f(x, y):
    return x + y

x = torch.ones(3)
for y in (x, torch.ones(3)):
    f(x, y)
""",
    ),
    Storm(
        "autocast", "MD112", "autocast on cpu", "off", "on", "f(x)",
        """
@opt
def f(x):
    return x * 2

x = torch.ones(3)
for enabled in (False, True):
    with torch.autocast("cpu", enabled=enabled):
        f(x)
""",
    ),
    Storm(
        "the default dtype", "MD112", "default dtype", "float32", "float64", "f(x)",
        """
@opt
def f(x):
    return x * 2

x = torch.ones(3)
for dtype in (torch.float32, torch.float64):
    torch.set_default_dtype(dtype)
    f(x)
torch.set_default_dtype(torch.float32)
""",
    ),
    Storm(
        "determinism", "MD112", "deterministic algorithms", "off", "on", "f(x)",
        """
@opt
def f(x):
    return x * 2

x = torch.ones(3)
for wanted in (False, True):
    torch.use_deterministic_algorithms(wanted)
    f(x)
torch.use_deterministic_algorithms(False)
""",
    ),
    Storm(
        "a backend made in the loop", "MD116", "backend", "backend", "another backend", "keep[-1](torch.ones(3))",
        """
def make():
    def backend(gm, inputs):
        return gm.forward
    return backend

def f(x):
    return x * 2

keep = []
for _ in range(2):
    keep.append(minidynamo.optimize(make())(f)); keep[-1](torch.ones(3))
""",
        """
def make():
    def backend(gm, inputs):
        return gm.forward
    return backend

def f(x):
    return x * 2

compiled = minidynamo.optimize(make())(f)
for _ in range(2):
    compiled(torch.ones(3))
""",
    ),
    Storm(
        "another backend", "MD116", "backend", "eager", "same_as_eager", "g(torch.ones(3))",
        """
def same_as_eager(gm, inputs):
    return gm.forward

def f(x):
    return x * 2

g = opt(f)
h, g = g, minidynamo.optimize(same_as_eager)(f)
h(torch.ones(3))
g(torch.ones(3))
""",
        """
def f(x):
    return x * 2

g = opt(f)
g(torch.ones(3))
g(torch.ones(3))
""",
    ),
    Storm(
        "a class made in each round", "MD117", "settings", "type Settings", "another: that one died", "Settings()",
        """
import gc

@opt
def f(x, settings):
    return x * settings.scale

for i in range(2):
    class Settings:
        scale = 2
    gc.collect()
    f(torch.ones(3), Settings())
""",
        """
import gc

@opt
def f(x, settings):
    return x * settings.scale

class Settings:
    scale = 2

for i in range(2):
    gc.collect()
    f(torch.ones(3), Settings())
""", used="return x * settings.scale",
    ),
    Storm(
        "a function made of text in each call", "MD117", "op", "code of <lambda> (<string>:1)", "another: that one died", "op",
        """
@opt
def f(x, op):
    return op(x)

for i in range(3):
    op = eval("lambda y: y * 2")
    f(torch.ones(3), op)
""",
        """
@opt
def f(x, op):
    return op(x)

op = eval("lambda y: y * 2")
for i in range(3):
    f(torch.ones(3), op)
""", used="return op(x)",
    ),
]  # fmt: skip
