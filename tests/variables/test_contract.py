"""What every wrapper owes: a value from outside is guarded where it is read, comes out of a graph break as the same object, and a
change of it is seen. One sample per row of the registry; a new row without a sample fails here."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

import minidynamo.variables  # noqa: F401 - fills the registry
from minidynamo.variables.registry import BY_PREDICATE, BY_TYPE, wrapper_for
from tests.eager import Module, Seen, check


@dataclass(frozen=True)
class Sample:
    """`value` is wrapped; the traced function evaluates `use`, which reads `v`; `change` makes the value, or what is at its place,
    another one, so that `use` gives another result."""

    row: str  # name of the type, or of the predicate
    value: str
    use: str
    change: str
    setup: str = ""


def other(value: str) -> str:
    return f"globals().update(V={value})"


SAMPLES = [
    Sample("NoneType", "None", "v is None", other("1")),
    Sample("bool", "True", "1 if v else 2", other("False")),
    Sample("ellipsis", "...", "v is ...", other("None")),
    Sample("NotImplementedType", "NotImplemented", "v is NotImplemented", other("None")),
    Sample("int", "10 ** 30", "v + 1", other("10 ** 30 + 1")),
    Sample("float", "0.0", "v + 1, str(v)", other("-0.0")),
    Sample("complex", "2j", "v * 2", other("3j")),
    Sample("str", "'a' * 3", "v + 'b', v.upper(), len(v)", other("'abc'")),
    Sample("bytes", "bytes(3)", "v + b'b', v[0]", other("b'abc'")),
    Sample("dtype", "torch.float64", "x.to(v), v is torch.float64", other("torch.float32")),
    Sample("device", "torch.device('cpu')", "v.type, v.index", other("torch.device('cpu', 0)")),
    Sample("layout", "torch.strided", "v is torch.strided", other("torch.sparse_coo")),
    Sample("memory_format", "torch.contiguous_format", "v is torch.preserve_format", other("torch.preserve_format")),
    Sample("tuple", "(1, [2])", "v[0], v[1][0], len(v)", "V[1].__setitem__(0, 5)"),
    Sample("Size", "torch.Size([2, 3])", "v[0] + v[1], v == (2, 3)", other("torch.Size([2, 4])")),
    Sample("list", "[1, 2]", "v[0] + len(v), 2 in v, v + [3]", "V.append(3)"),
    Sample("range", "range(1, 5)", "list(v), len(v)", other("range(1, 6)")),
    Sample("slice", "slice(0, 1)", "x[v]", other("slice(1, 2)")),
    Sample("set", "{1, 2}", "1 in v, len(v), list(v), v == {1, 2}", "V.add(3)"),
    Sample("frozenset", "frozenset({1, 2})", "1 in v, v | {7}, v <= {1, 2}", other("frozenset({1, 3})")),
    Sample("dict", "{'a': 1, 'b': 2}", "v['a'], list(v), 'z' in v", "V.update(a=5, z=1)"),
    Sample(
        "OrderedDict",
        "OrderedDict(a=1, b=2)",
        "v['a'], list(v.items())",
        "V.move_to_end('a')",
        "from collections import OrderedDict",
    ),
    Sample(
        "defaultdict",
        "defaultdict(list, a=1)",
        "v['a'], len(v), 'b' in v",
        "V['b'] and None",
        "from collections import defaultdict",
    ),
    Sample("function", "g", "v(x), v.__name__", "setattr(V, '__defaults__', (7,))", "def g(a, b=2):\n    return a * b"),
    Sample("builtin_function_or_method", "abs", "v(-3)", other("oct")),
    Sample("method_descriptor", "torch.Tensor.add", "v(x, 1)", other("torch.Tensor.sub")),
    Sample("wrapper_descriptor", "torch.Tensor.__add__", "v is None", other("None")),
    Sample(
        "OptimizedFunction", "minidynamo.optimize('eager')(g)", "v(x)", "setattr(g, '__defaults__', (7,))",
        "def g(a, b=2):\n    return a * b",
    ),
    Sample(
        "method", "A(3).m", "v(x), v.__self__.k", "setattr(V.__self__, 'k', 5)",
        "class A:\n    def __init__(self, k):\n        self.k = k\n    def m(self, x):\n        return x * self.k",
    ),
    Sample("module", "types.ModuleType('m', 'a')", "v.__doc__", "setattr(V, '__doc__', 'b')", "import types"),
    Sample("Tensor", "T(3)", "v + x.sum(), v.shape, v.dtype", other("T(4).double()")),
    Sample(
        "ProcessGroup",
        "torch.distributed.ProcessGroup(torch.distributed.HashStore(), 1, 4)",
        "v.rank(), v.size()",
        other("torch.distributed.ProcessGroup(torch.distributed.HashStore(), 0, 2)"),
    ),
    Sample("Generator", "torch.Generator()", "v is None", other("None")),
    Sample("Parameter", "torch.nn.Parameter(T(3))", "v + 1, v.requires_grad", "V.requires_grad_(False)"),
    Sample(
        "partial", "partial(g, b=2)", "v(x), v.keywords['b']", "V.keywords.update(b=4)",
        "from functools import partial\ndef g(a, b):\n    return a * b",
    ),
    Sample("GenericModule", "torch.backends", "v is torch", other("torch")),
    Sample("VFModule", "torch._VF", "v is torch", other("torch")),
    Sample("_Ops", "torch.ops", "v is torch", other("torch")),
    Sample("_OpNamespace", "torch.ops.aten", "v is torch", other("torch")),
    Sample("OpOverloadPacket", "torch.ops.aten.relu", "v(x - 2), v.default(x)", other("torch.ops.aten.neg")),
    Sample("OpOverload", "torch.ops.aten.relu.default", "v(x - 2)", other("torch.ops.aten.neg.default")),
    Sample(
        "CustomOpDef", "minidynamo_contract_twice", "v(x)", other("None"),
        "@torch.library.custom_op('minidynamo_contract::twice', mutates_args=())\n"
        "def minidynamo_contract_twice(x: torch.Tensor) -> torch.Tensor:\n    return x * 2\n"
        "minidynamo_contract_twice.register_fake(torch.empty_like)",
    ),
    Sample("inference_mode", "torch.inference_mode()", "v.mode", other("torch.inference_mode(False)")),
    Sample("record_function", "torch.profiler.record_function('a')", "v.name", "setattr(V, 'name', 'b')"),
    Sample("no_grad", "torch.no_grad()", "v is None", other("None")),
    Sample("enable_grad", "torch.enable_grad()", "v is None", other("None")),
    Sample("set_grad_enabled", "torch.set_grad_enabled(True)", "v is None", other("None")),
    Sample(
        "tensor subclass", "T(2).as_subclass(S)", "v is None", other("None"), "class S(torch.Tensor):\n    pass"
    ),
    Sample(
        "tensor wrapper", "TwoTensor(T(2), T(2))", "v is None or v * 2", other("None"),
        "from torch.testing._internal.two_tensor import TwoTensor",
    ),
    Sample("nn.Module", "torch.nn.LeakyReLU(0.5)", "v(x - 5), v.training", "setattr(V, 'negative_slope', 0.25)"),
    Sample(
        "optimized module", "minidynamo.optimize('eager')(M)", "v(x - 5)", "setattr(M, 'negative_slope', 0.25)",
        "M = torch.nn.LeakyReLU(0.5)",
    ),
    Sample("exception", "OSError(2, 'a')", "v.args[1], v.errno", "setattr(V, 'errno', 3)"),
    Sample("user object", "A()", "v.k, v.n", "setattr(V, 'k', 2)", "class A:\n    n = 7\n    k = 1"),
    Sample(
        "object with __getattribute__", "A()", "v.k, v.n, v.renamed, hasattr(v, 'z')", "setattr(V, 'k', 2)",
        "class A:\n    n = 7\n    k = 1\n    def __getattribute__(self, name):\n"
        "        return super().__getattribute__('k' if name == 'renamed' else name)",
    ),
    Sample(
        "dict of a class of the user's", "D(a=1)", "v['a'], len(v), v.get('b', 3), list(v), v.k, 'b' in v", "V.update(b=2)",
        "class D(dict):\n    k = 5\n    def __getitem__(self, key):\n        return super().__getitem__(key) * 2",
    ),
    Sample(
        "member of a C++ enumeration", "SDPBackend.MATH", "v is SDPBackend.MATH, v == SDPBackend.FLASH_ATTENTION, v.name",
        other("SDPBackend.FLASH_ATTENTION"), "from torch.nn.attention import SDPBackend",
    ),
    Sample("enum member", "M.A", "v is M.A, v.value", other("M.B"), "import enum\nM = enum.Enum('M', 'A B')"),
    Sample(
        "deque", "deque([1, 2], 3)", "v[0], len(v), v.maxlen", "V.append(5)", "from collections import deque",
    ),
    Sample("class", "A", "v.k, v().k", "setattr(V, 'k', 2)", "class A:\n    k = 1"),
    Sample(
        "named tuple", "P(1, 2)", "v.x + v[1], v == (1, 2)", other("P(1, 3)"),
        "from collections import namedtuple\nP = namedtuple('P', 'x y')",
    ),
]  # fmt: skip
BY_NAME = {sample.row: sample for sample in SAMPLES}
ROWS = [tp.__name__ for tp in BY_TYPE] + [name for name, _, _ in BY_PREDICATE]


def program(sample: Sample) -> str:
    return f"""
{sample.setup}
V = {sample.value}
def f(x, v):
    y = x + 1
    r = {sample.use}
    print("break")
    return y * 2, v, r, y
"""


CALL = "(lambda doubled, v, r, y: (doubled, r, y, v is V))(*f(T(2), V))"


def test_every_row_has_a_sample():
    assert sorted(set(ROWS) - set(BY_NAME)) == [] and len(BY_NAME) == len(SAMPLES)


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.row)
def test_the_sample_is_wrapped_by_its_row(sample):
    value = Module(program(sample)).names["V"]
    rows = {tp.__name__: wrapper for tp, wrapper in BY_TYPE.items()}
    rows |= {name: wrapper for name, _, wrapper in BY_PREDICATE}
    assert wrapper_for(value) is rows[sample.row]


@pytest.mark.slow
@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.row)
def test_guards_hold_as_long_as_nothing_changes(sample):
    once, twice = check(program(sample), CALL), check(program(sample), CALL, CALL)
    assert own_graphs(once) == own_graphs(twice) > 0


def own_graphs(seen: Seen) -> int:
    """Graphs of the program itself; plain Python's side may call something that is captured too."""
    return sum(event.ops > 0 and event.where.filename.startswith("<program") for event in seen.compiled)


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.row)
def test_a_change_is_seen(sample):
    """And the change is one: plain Python's second result differs from the first."""
    seen = check(program(sample), CALL, sample.change, CALL)
    before, _, after = seen.outcomes
    assert (before.result, before.error) != (after.result, after.error)
