"""What torch callables are in the graph, and that mutation and random numbers are seen as the operators'
schemas have them.
"""

from __future__ import annotations

import gc
import subprocess
import sys
import types
import weakref

import pytest
import torch
import torch.nn.functional as F
from torch.overrides import get_ignored_functions, get_overridable_functions

import minidynamo
from minidynamo.rules import torch_exceptions, torch_functions
from minidynamo.rules.torch_functions import (
    GRAPH_ATTRIBUTES,
    classify,
    graph_target,
    tensor_attribute,
    tensor_method,
)

OVERRIDABLE = [
    (space, function) for space, functions in get_overridable_functions().items() for function in functions
]


def test_every_overridable_function_is_known():
    unknown = [function for _, function in OVERRIDABLE if classify(function) is None]
    assert not unknown
    unreasoned = [
        function
        for _, function in OVERRIDABLE
        if not classify(function).in_graph and not classify(function).reason
    ]
    assert not unreasoned
    in_graph = sum(classify(function).in_graph for _, function in OVERRIDABLE)
    assert in_graph > 0.9 * len(OVERRIDABLE)


def test_every_row_of_the_exceptions_names_something():
    for names in torch_exceptions.FUNCTION_EXCEPTIONS.values():
        for name in names.split():
            assert torch_functions._resolve(name) is not None, name


def schemas(name: str) -> list[torch._C.FunctionSchema]:
    """The schemas of an aten operator (not of TorchScript's list methods), without the `out=` forms."""
    return [
        schema
        for schema in torch._C._jit_get_schemas_for_operator(f"aten::{name}")
        if not any(argument.is_out for argument in schema.arguments)
        and torch._C._dispatch_has_kernel(f"{schema.name}.{schema.overload_name}".rstrip("."))
    ]


def written_names(schema: torch._C.FunctionSchema) -> set[str]:
    """The tensor arguments that a schema marks as written."""
    return {a.name for a in schema.arguments if a.alias_info is not None and a.alias_info.is_write}


def test_writes_are_those_of_the_schemas():
    checked = 0
    for _, function in OVERRIDABLE:
        kind = classify(function)
        if (
            not isinstance(function, (types.BuiltinFunctionType, types.MethodDescriptorType))
            or not kind.in_graph
        ):
            continue
        names = set().union(*map(written_names, schemas(function.__name__)))
        if names:
            assert kind.mutates, function
            assert {argument.name for argument, _ in kind.writes} == names, function
            checked += 1
        elif kind.mutates:
            assert function.__name__.endswith("_"), function
    assert checked > 150


def test_random_operators_are_those_with_the_tag():
    seeded = set()
    for name in dir(torch._C._VariableFunctions):
        packet = getattr(torch.ops.aten, name, None) if not name.startswith("__") else None
        if isinstance(packet, torch._ops.OpOverloadPacket):
            tags = [getattr(packet, overload).tags for overload in packet.overloads()]
            if any(torch.Tag.nondeterministic_seeded in tag for tag in tags):
                seeded.add(name)
                assert classify(getattr(torch._C._VariableFunctions, name)).draws_random, name
    assert {"rand", "randn", "bernoulli", "dropout", "multinomial", "randperm"} <= seeded


@pytest.mark.parametrize(
    "function",
    [F.dropout, F.dropout2d, F.alpha_dropout, F.feature_alpha_dropout, F.rrelu, F.gumbel_softmax,
     F.fractional_max_pool2d, F.scaled_dot_product_attention, F.multi_head_attention_forward,
     torch.svd_lowrank, torch.rand, torch.randint, torch.normal],
    ids=lambda function: function.__name__,
)  # fmt: skip
def test_functions_that_draw(function):
    assert classify(function).draws_random


@pytest.mark.parametrize(
    "function",
    [F.relu, F.linear, F.layer_norm, F.softmax, F.cross_entropy, F.max_pool2d, F.interpolate, F.pad,
     torch.add, torch.einsum, torch.zeros, torch.arange, torch.cat, torch.functional.norm, torch.tensor],
    ids=lambda function: function.__name__,
)  # fmt: skip
def test_functions_that_do_not_draw(function):
    assert classify(function).in_graph
    assert not classify(function).draws_random


@pytest.mark.parametrize(
    ("function", "args", "kwargs", "draws"),
    [
        (F.dropout, ("x", 0.5), {}, True),
        (F.dropout, ("x", 0.5, False), {}, False),
        (F.dropout, ("x",), {"training": False}, False),
        (F.dropout, ("x",), {"training": object()}, True),
        (torch.dropout, ("x", 0.5, False), {}, False),
        (torch.dropout, ("x", 0.5, True), {}, True),
        (F.scaled_dot_product_attention, ("q", "k", "v"), {}, False),
        (F.scaled_dot_product_attention, ("q", "k", "v"), {"dropout_p": 0.1}, True),
        (F.rrelu, ("x",), {}, False),
        (torch.rand, (3,), {}, True),
        (torch.add, ("x", "y"), {}, False),
    ],
)
def test_whether_a_call_draws(function, args, kwargs, draws):
    assert classify(function).draws(args, kwargs) is draws


@pytest.mark.parametrize(
    ("function", "args", "kwargs", "written"),
    [
        (torch.add, ("x", "y"), {}, []),
        (torch.add, ("x", "y"), {"out": "o"}, ["o"]),
        (torch.relu_, ("x",), {}, ["x"]),
        (torch.Tensor.add_, ("x", "y"), {}, ["x"]),
        (torch.Tensor.__iadd__, ("x", "y"), {}, ["x"]),
        (torch.Tensor.__setitem__, ("x", 0, "y"), {}, ["x"]),
        (torch.Tensor.pow_, ("x", 2), {}, ["x"]),
        (F.relu, ("x",), {}, []),
        (F.relu, ("x", True), {}, ["x"]),
        (F.relu, ("x",), {"inplace": True}, ["x"]),
        (F.dropout, ("x", 0.5, True, True), {}, ["x"]),
        (F.batch_norm, ("x", "m", "v"), {"training": True}, ["m", "v"]),
        (F.batch_norm, ("x", "m", "v"), {}, []),
        (F.batch_norm, ("x", None, None, "w", "b", True), {}, []),
        (torch.batch_norm, ("x", "w", "b", "m", "v", True, 0.1, 1e-5, True), {}, ["m", "v"]),
        (F.instance_norm, ("x", "m", "v"), {}, ["m", "v"]),
        (F.embedding, ("i", "w"), {}, []),
        (F.embedding, ("i", "w"), {"max_norm": 1.0}, ["w"]),
        (torch._foreach_add_, (["a", "b"], 1), {}, [["a", "b"]]),
        (torch.sort, ("x",), {}, []),
    ],
)
def test_what_a_call_writes(function, args, kwargs, written):
    assert classify(function).written(args, kwargs) == written


@pytest.mark.parametrize("function", [F.batch_norm, F.instance_norm, F.embedding])
def test_hidden_writes_happen(function):
    """The rows of the table are true of the operators: what they name does change."""
    x = torch.rand(4, 3, 2) + 5
    args = {
        F.batch_norm: (x, torch.zeros(3), torch.ones(3), None, None, True),
        F.instance_norm: (x, torch.zeros(3), torch.ones(3)),
        F.embedding: (torch.tensor([0]), torch.ones(2, 3), None, 0.5),
    }[function]
    named = classify(function).written(args, {})
    before = [value.clone() for value in named]
    function(*args)
    assert named
    assert not any(torch.equal(old, new) for old, new in zip(before, named, strict=True))


def test_results_that_are_the_first_argument():
    assert classify(torch.relu_).returns_self
    assert tensor_method("add_").returns_self
    assert tensor_method("__iadd__").returns_self
    assert not tensor_method("__setitem__").returns_self
    assert not tensor_method("add").returns_self
    relu = classify(F.relu)
    assert (relu.gives_self(("x",), {}), relu.gives_self(("x", True), {})) == (False, True)
    assert not classify(F.batch_norm).gives_self(("x", "m", "v"), {"training": True})


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (torch.manual_seed, torch_exceptions.WRITES_STATE),
        (torch.set_num_threads, torch_exceptions.WRITES_STATE),
        (torch.set_default_dtype, torch_exceptions.WRITES_STATE),
        (torch.use_deterministic_algorithms, torch_exceptions.WRITES_STATE),
        (torch._C._set_grad_enabled, torch_exceptions.WRITES_STATE),
        (torch.is_grad_enabled, torch_exceptions.READS_STATE),
        (torch.get_default_dtype, torch_exceptions.READS_STATE),
        (torch.are_deterministic_algorithms_enabled, torch_exceptions.READS_STATE),
        (torch.no_grad, torch_exceptions.CONTEXT),
        (torch.set_grad_enabled, torch_exceptions.CONTEXT),
        (torch.save, torch_exceptions.INPUT_OUTPUT),
        (torch.from_numpy, torch_exceptions.MEMORY),
        (torch.equal, torch_exceptions.NEEDS_DATA),
        (torch.Tensor.item, torch_exceptions.NEEDS_DATA),
        (torch.Tensor.is_nonzero, torch_exceptions.NEEDS_DATA),
        (torch.Tensor.backward, torch_exceptions.OBJECT_STATE),
        (torch.Tensor.data.__get__, torch_exceptions.OBJECT_STATE),
        (torch.Tensor.grad.__set__, torch_exceptions.OBJECT_STATE),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_exceptions_have_their_reason(function, reason):
    assert classify(function).reason == reason
    assert not classify(function).in_graph


def test_what_is_not_torchs_is_unknown():
    class Strange:
        def __hash__(self) -> int:
            raise AssertionError("the user's __hash__ was called")

    for value in (
        print,
        len,
        [].append,
        Strange(),
        Strange,
        lambda: 0,
        torch.nn.Linear,
        torch.nn.Linear.forward,
        3,
        torch.Size,
        str.join,
    ):
        assert classify(value) is None, value


def test_nothing_of_the_users_is_kept():
    def function() -> None: ...

    watch = weakref.ref(function)
    assert classify(function) is None
    del function
    gc.collect()
    assert watch() is None


def test_factories_are_in_the_graph():
    names = (
        "zeros ones empty full arange linspace eye rand randn randint randperm tensor as_tensor zeros_like"
    )
    for name in names.split():
        assert getattr(torch, name) in get_ignored_functions() or (torch, getattr(torch, name)) in OVERRIDABLE
        assert classify(getattr(torch, name)).in_graph, name


@pytest.mark.parametrize("name", sorted(GRAPH_ATTRIBUTES))
def test_graph_attributes_are_tensors(name):
    value = getattr(torch.ones(2, 2, dtype=torch.complex64), name)
    assert isinstance(value, torch.Tensor)
    assert tensor_attribute(name) == "graph"


def test_attributes():
    metadata = (
        "shape",
        "dtype",
        "device",
        "ndim",
        "requires_grad",
        "layout",
        "is_cuda",
        "itemsize",
        "nbytes",
        "is_sparse",
    )
    state = ("grad", "data", "grad_fn", "_version", "is_leaf", "_base", "name", "output_nr", "retains_grad")
    assert {tensor_attribute(name) for name in metadata} == {"meta"}
    assert {tensor_attribute(name) for name in state} == {"state"}
    assert {tensor_attribute(name) for name in ("add", "no_such_name", "__class__")} <= {None, "state"}
    assert tensor_attribute("add") is None
    for name in dir(torch.Tensor):
        assert not (tensor_attribute(name) and tensor_method(name)), name


def test_methods_are_told_by_name():
    assert tensor_method("no_such_method") is None
    assert tensor_method("shape") is None
    assert tensor_method("add").in_graph
    assert tensor_method("normal_").draws_random
    assert tensor_method("tolist").reason == torch_exceptions.NEEDS_DATA
    assert tensor_method("split").in_graph


def test_graph_targets():
    assert graph_target(torch.add) == ("call_function", torch.add)
    assert graph_target(torch.Tensor.add) == ("call_method", "add")
    assert graph_target(torch.Tensor.split) == ("call_method", "split")
    assert graph_target(torch.Tensor.__rpow__) == ("call_method", "__rpow__")
    for _, function in OVERRIDABLE:
        kind, target = graph_target(function)
        if kind == "call_method":
            assert getattr(torch.Tensor, target) is function or isinstance(
                function, types.WrapperDescriptorType
            )


def test_operators_and_custom_operators():
    @torch.library.custom_op("minidynamo_test::scale_", mutates_args={"x"})
    def scale_(x: torch.Tensor, factor: float) -> None:
        x.mul_(factor)

    assert classify(scale_).mutates
    assert classify(scale_).written(("x", 2.0), {}) == ["x"]
    assert graph_target(scale_) == ("call_function", scale_._opoverload)
    assert classify(torch.ops.aten.add.Tensor).in_graph
    assert classify(torch.ops.aten.add_).mutates
    assert not classify(torch.ops.aten.bernoulli).mutates
    assert classify(torch.ops.aten.bernoulli).draws_random


def test_custom_operators_are_captured():
    """By the function that `custom_op` gives, by name and by overload; what they write into is seen."""

    @torch.library.custom_op("minidynamo_test::grow_", mutates_args={"x"})
    def grow_(x: torch.Tensor, factor: float) -> None:
        x.mul_(factor)

    @torch.library.custom_op("minidynamo_test::twice", mutates_args=())
    def twice(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    @twice.register_fake
    def _(x):
        return torch.empty_like(x)

    def f(x, y):
        grow_(y, 3.0)
        ops = torch.ops.minidynamo_test
        return twice(x) + y, ops.twice(y), ops.twice.default(x)

    for backend in ("eager", "aot_eager"):
        given, plain = [torch.ones(2), torch.full((2,), 2.0)], [torch.ones(2), torch.full((2,), 2.0)]
        captured = minidynamo.optimize(backend, nopython=True)(f)
        for _ in range(2):
            torch.testing.assert_close(captured(*given), f(*plain))
            torch.testing.assert_close(given, plain)


@pytest.mark.slow
def test_no_heavy_imports():
    program = """
import sys, torch
before = set(sys.modules)
from minidynamo.rules import torch_functions
for function in (torch.relu, torch.nn.functional.dropout, torch.Tensor.add_, torch.manual_seed,
torch.Tensor.T.__get__):
    torch_functions.classify(function)
print([name for name in ("sympy", "torch._dynamo", "torch._inductor") if name in set(sys.modules) - before])
"""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
