"""Tensors that are no plain ones, modes of torch functions and of dispatch, and functorch's transforms: captured or a break with its
reason, and always eager's result, whatever was compiled before."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.overrides import TorchFunctionMode
from torch.testing._internal.two_tensor import TwoTensor
from torch.utils._python_dispatch import TorchDispatchMode

import minidynamo
from tests.eager import watching

X = torch.arange(4.0)


class Overriding(torch.Tensor):
    """Adds one to what torch.mul gives."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        result = super().__torch_function__(func, types, args, kwargs or {})
        return result + 1 if func in (torch.mul, torch.Tensor.mul) else result


class Dispatching(torch.Tensor):
    """Has no inner tensors to be taken apart into."""

    @staticmethod
    def __new__(cls, x):
        return torch.Tensor._make_subclass(cls, x)

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        with torch._C._DisableTorchDispatch():
            return func(*args, **(kwargs or {}))


class FunctionMode(TorchFunctionMode):
    """Adds one to what torch.add gives."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        return result + 1 if func is torch.add else result


class DispatchMode(TorchDispatchMode):
    """Doubles what aten.add gives."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        return result * 2 if func is torch.ops.aten.add.Tensor else result


def use(t, x):
    return torch.mul(t, 2), torch.add(x, x), type(t).__name__


def multiply(t, x):
    return t @ x, torch.add(x, x)


def dequantized(t, x):
    return t.dequantize() + x, torch.add(x, x)


def dense(t, x):
    return t.to_dense() + x, torch.add(x, x)


def named(t, x):
    return type(t).__name__, isinstance(t, torch.nn.Parameter), torch.add(x, x)


def transforms(t, x):
    return torch.vmap(lambda a: a * 2)(x), torch.func.grad(lambda a: (a * a).sum())(x), torch.add(x, x)


def forward_mode(t, x):
    return torch.func.jvp(torch.sin, (x,), (torch.ones_like(x),)), torch.add(x, x)


def function_mode_inside(t, x):
    with FunctionMode():
        y = torch.add(x, x)
    return y, torch.add(x, x)


def dispatch_mode_inside(t, x):
    with DispatchMode():
        y = torch.add(x, x)
    return y, torch.add(x, x)


def made_inside(t, x):
    return x.as_subclass(Overriding) * 2, torch.nn.Parameter(x) * 2, torch.nn.Buffer(x) * 2, torch.add(x, x)


def quantized_inside(t, x):
    q = torch.quantize_per_tensor(x, 0.1, 0, torch.qint8)
    return q.int_repr(), q.dequantize() * 2, q.q_scale(), torch.add(x, x)


def values(t, x):
    v = t.values()
    return torch.add(x, x), v + 1


def lazily(t, x):
    return t(x.reshape(1, 4)).shape, type(t) is torch.nn.Linear, t(x.reshape(1, 4) + 1).shape, torch.add(x, x)


CASES: dict[str, tuple[Callable[..., Any], Callable[[], Any]]] = {
    "plain": (use, lambda: X.clone()),
    "torch_function": (use, lambda: X.clone().as_subclass(Overriding)),
    "torch_dispatch": (use, lambda: Dispatching(X.clone())),
    "traceable wrapper": (use, lambda: TwoTensor(X.clone(), X + 1)),
    "parameter": (use, lambda: torch.nn.Parameter(X.clone())),
    "buffer": (use, lambda: torch.nn.Buffer(X.clone())),
    "uninitialized parameter": (named, torch.nn.UninitializedParameter),
    "sparse": (multiply, lambda: torch.eye(4).to_sparse()),
    "sparse rows": (multiply, lambda: torch.eye(4).to_sparse_csr()),
    "quantized": (dequantized, lambda: torch.quantize_per_tensor(X, 0.1, 0, torch.quint8)),
    "nested": (use, lambda: torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])),
    "jagged": (use, lambda: torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], layout=torch.jagged)),
    "mkldnn": (dense, lambda: X.clone().to_mkldnn()),
    "conjugated": (use, lambda: (X + 1j).conj()),
    "inference tensor": (use, torch.inference_mode()(lambda: torch.arange(4.0))),
    "vmap and grad": (transforms, lambda: None),
    "jvp": (forward_mode, lambda: None),
    "function mode inside": (function_mode_inside, lambda: None),
    "dispatch mode inside": (dispatch_mode_inside, lambda: None),
    "made inside": (made_inside, lambda: None),
    "quantized inside": (quantized_inside, lambda: None),
    "values of sparse rows": (values, lambda: torch.eye(4).to_sparse_csr()),
}


def shown(value: Any) -> Any:
    if isinstance(value, TwoTensor):
        return "TwoTensor", value.a.tolist(), value.b.tolist()
    if isinstance(value, torch.Tensor):
        if value.is_nested:
            return type(value).__name__, [part.tolist() for part in value.unbind()]
        plain = value.to_dense() if value.layout is not torch.strided else value
        return type(value).__name__, plain.tolist(), value.requires_grad, value.layout, value.is_inference()
    return tuple(map(shown, value)) if isinstance(value, tuple) else value


def outcome(fn: Callable[..., Any], t: Any, around: Callable[[], Any]) -> Any:
    with around():
        try:
            result = fn(t, X)
        except Exception as error:  # eager's own
            return type(error).__name__, str(error)
    return shown(result)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.filterwarnings("ignore")
def test_as_eager(name):
    fn, make = CASES[name]
    captured = minidynamo.optimize("eager")(fn)
    with watching() as seen, minidynamo.config.patch(cache_size_limit=20):
        for around in (contextlib.nullcontext, FunctionMode, DispatchMode, contextlib.nullcontext):
            for _ in range(2):
                assert outcome(captured, make(), around) == outcome(fn, make(), around)
    assert name != "plain" or seen.graphs


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
@pytest.mark.filterwarnings("ignore")
def test_as_eager_with_a_compiler(name):
    """What compilers get are plain tensors and wrappers of them."""
    fn, make = CASES[name]
    captured = minidynamo.optimize("aot_eager")(fn)
    for _ in range(2):
        assert outcome(captured, make(), contextlib.nullcontext) == outcome(
            fn, make(), contextlib.nullcontext
        )


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.filterwarnings("ignore")
def test_a_lazy_module(backend):
    """Its first call makes its parameters, and another class of it."""
    captured, module = minidynamo.optimize(backend)(lazily), torch.nn.LazyLinear(2)
    for _ in range(3):
        got = captured(module, X)
        assert got[0] == got[2] == (1, 2) and got[1] and got[3].tolist() == (X + X).tolist()


@pytest.mark.filterwarnings("ignore")
def test_one_entry_never_serves_another_kind():
    """The same function with every kind in turn, twice."""
    kinds = [make for fn, make in CASES.values() if fn is use]
    captured = minidynamo.optimize("eager")(use)
    with minidynamo.config.patch(cache_size_limit=100):
        for make in [*kinds, *reversed(kinds)]:
            expected = outcome(use, make(), contextlib.nullcontext)
            assert outcome(captured, make(), contextlib.nullcontext) == expected


TRANSFORMS: dict[str, Callable[[Any], Any]] = {
    "vmap": torch.vmap,
    "grad": lambda f: torch.func.grad(lambda x: f(x).sum()),
    "jvp": lambda f: lambda x: torch.func.jvp(f, (x,), (x,)),
    "vjp": lambda f: lambda x: torch.func.vjp(f, x)[1](x),
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_transforms_of_a_captured_function(name):
    def f(x):
        return x * x + 1

    captured = minidynamo.optimize("eager")(f)
    for _ in range(2):
        assert shown(captured(X)) == shown(f(X))
        assert shown(TRANSFORMS[name](captured)(X)) == shown(TRANSFORMS[name](f)(X))
