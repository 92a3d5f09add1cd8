"""Small programs that compile again for one MD1xx code, and the same program mended. Tests run both and look at the report.

`opt` is `minidynamo.optimize("eager")`; torch and minidynamo are imported.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Storm:
    """`source` is recompiled for the code; `instead` is not."""

    source: str
    instead: str


_SCALED = "@opt\ndef f(x, k):\n    return x * k\n\n"
_SUM = (
    "@opt\ndef f(items):\n    return sum(items)\n\nitems = []\n"
    "for _ in range(2):\n    items.append(torch.ones(3))\n"
)
_ONE = "@opt\ndef f(x):\n    return x * 2\n\n"

STORMS: dict[str, Storm] = {
    "SIZE_CHANGED": Storm(
        _ONE + "for n in (4, 3):\n    f(torch.ones(n))\n",
        _ONE + "for n in (4, 3):\n    f(torch.nn.functional.pad(torch.ones(n), (0, 4 - n)))\n",
    ),
    "STRIDE_CHANGED": Storm(
        _ONE + "w = torch.ones(4, 4)\nfor x in (w, w.t()):\n    f(x)\n",
        _ONE + "w = torch.ones(4, 4)\nfor x in (w, w.t()):\n    f(x.contiguous())\n",
    ),
    "DTYPE_CHANGED": Storm(
        _ONE + "for x in (torch.ones(3), torch.ones(3).double()):\n    f(x)\n",
        _ONE + "for x in (torch.ones(3), torch.ones(3).double()):\n    f(x.to(torch.float32))\n",
    ),
    "GRAD_CHANGED": Storm(
        _ONE + "f(torch.ones(3))\nwith torch.no_grad():\n    f(torch.ones(3))\n",
        _ONE + "with torch.no_grad():\n    f(torch.ones(3))\n    f(torch.ones(3))\n",
    ),
    "INT_CHANGED": Storm(
        _SCALED + "for i in range(1, 4):\n    f(torch.ones(3), i)\n",
        _SCALED + "for i in range(1, 4):\n    f(torch.ones(3), torch.tensor(i))\n",
    ),
    "FLOAT_CHANGED": Storm(
        _SCALED + "for i in range(1, 4):\n    f(torch.ones(3), 0.1 / i)\n",
        _SCALED + "for i in range(1, 4):\n    f(torch.ones(3), torch.tensor(0.1 / i))\n",
    ),
    "STATE_CHANGED": Storm(
        "class Settings:\n    step = 0\n\nsettings = Settings()\n\n@opt\ndef f(x):\n    return x * settings.step\n\n"
        "for i in range(3):\n    settings.step = i\n    f(torch.ones(3))\n",
        "class Settings:\n    step = torch.tensor(0)\n\nsettings = Settings()\n\n@opt\ndef f(x):\n    return x * settings.step\n\n"
        "for i in range(3):\n    settings.step = torch.tensor(i)\n    f(torch.ones(3))\n",
    ),
    "FUNCTION_CHANGED": Storm(
        "@opt\ndef f(x, op):\n    return op(x)\n\nfor op in (lambda y: y + 1, lambda y: y + 1.5):\n    f(torch.ones(3), op)\n",
        "@opt\ndef f(x, op):\n    return op(x)\n\nop = lambda y: y + 1\nfor _ in range(2):\n    f(torch.ones(3), op)\n",
    ),
    "TYPE_CHANGED": Storm(
        _SCALED + "for k in (2, 2.0):\n    f(torch.ones(3), k)\n",
        _SCALED + "for k in (2, 2.0):\n    f(torch.ones(3), float(k))\n",
    ),
    "STRUCTURE_CHANGED": Storm(
        _SUM + "    f(items)\n",
        _SUM + "    f(items[-1:])\n",
    ),
    "ALIASING_CHANGED": Storm(
        "@opt\ndef f(x, y):\n    return x + y\n\nx = torch.ones(3)\nf(x, x)\nf(x, torch.ones(3))\n",
        "@opt\ndef f(x, y):\n    return x + y\n\nx = torch.ones(3)\nf(x, x.clone())\nf(x, torch.ones(3))\n",
    ),
    "TORCH_STATE_CHANGED": Storm(
        _ONE + 'f(torch.ones(3))\nwith torch.autocast("cpu"):\n    f(torch.ones(3))\n',
        _ONE + 'with torch.autocast("cpu"):\n    f(torch.ones(3))\n    f(torch.ones(3))\n',
    ),
    "OBJECT_DIED": Storm(
        "@opt\ndef f(x, op):\n    return op(x)\n\n"
        'for _ in range(2):\n    op = eval("lambda y: y * 2")\n    f(torch.ones(3), op)\n',
        "@opt\ndef f(x, op):\n    return op(x)\n\n"
        'op = eval("lambda y: y * 2")\nfor _ in range(2):\n    f(torch.ones(3), op)\n',
    ),
    "LIMIT_HIT": Storm(
        _SCALED + "for i in range(12):\n    f(torch.ones(3), i)\n",
        _SCALED + "for i in range(12):\n    f(torch.ones(3), torch.tensor(i))\n",
    ),
    "OPTIONS_CHANGED": Storm(
        "def f(x):\n    return x * 2\n\nkept = [minidynamo.optimize(lambda gm, inputs: gm.forward)(f) for _ in range(2)]\n"
        "for g in kept:\n    g(torch.ones(3))\n",
        "def f(x):\n    return x * 2\n\ng = minidynamo.optimize(lambda gm, inputs: gm.forward)(f)\n"
        "for _ in range(2):\n    g(torch.ones(3))\n",
    ),
}
