"""What `optimize(backend)(module)` gives: a module whose state is the original's."""

from __future__ import annotations

import copy
import pickle
import traceback
from typing import Any

import pytest
import torch
from torch import nn

import minidynamo
from minidynamo.exc import Unsupported
from minidynamo.optimized_module import OptimizedModule
from minidynamo.testing import CompileCounter


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(2, 2)
        self.register_buffer("offset", torch.ones(2))
        self.calls: list[str] = []

    def forward(self, x: torch.Tensor, *, scale: float = 1.0) -> torch.Tensor:
        return self.linear(x) * scale + self.offset

    def train(self, mode: bool = True) -> Any:
        self.calls.append("train")
        return super().train(mode)

    def describe(self) -> str:
        return f"{type(self).__name__} {self.training}"


X = torch.ones(3, 2)


@pytest.fixture
def net() -> Net:
    return Net()


@pytest.fixture
def optimized(net: Net) -> Any:
    return minidynamo.optimize("eager", nopython=True)(net)


def test_it_is_a_module_over_the_original(net, optimized):
    assert isinstance(optimized, nn.Module) and type(optimized) is OptimizedModule
    assert optimized._orig_mod is net
    assert torch.equal(optimized(X, scale=2.0), net(X, scale=2.0))
    assert torch.equal(optimized.forward(X), net(X))
    assert torch.equal(OptimizedModule.__call__(optimized, X), net(X))


def test_compile_gives_the_same_kind():
    assert type(minidynamo.compile(Net(), backend="eager")) is OptimizedModule
    assert type(minidynamo.compile(backend="eager")(Net())) is OptimizedModule


def test_an_optimized_module_is_not_wrapped_twice(net, optimized):
    again = minidynamo.optimize("eager")(optimized)
    assert again._orig_mod is net


def test_keys_of_the_state_dict_are_the_original_ones(net, optimized):
    assert list(optimized.state_dict()) == ["offset", "linear.weight", "linear.bias"]
    assert [name for name, _ in optimized.named_parameters()] == ["linear.weight", "linear.bias"]
    other = Net()
    optimized.load_state_dict(other.state_dict())
    assert torch.equal(net.linear.weight, other.linear.weight)
    assert torch.equal(optimized(X), other(X))


def test_inside_another_module_the_keys_are_the_original_ones_too(optimized):
    outer = nn.Sequential(optimized, nn.ReLU())
    assert list(outer.state_dict()) == ["0.offset", "0.linear.weight", "0.linear.bias"]
    assert len(list(outer.parameters())) == 2
    captured = minidynamo.optimize("eager", nopython=True)(outer)
    assert torch.equal(captured(X), outer(X))
    assert outer[0] is optimized


def test_attributes_pass_both_ways(net, optimized):
    optimized.extra = 5
    net.more = 6
    assert (net.extra, optimized.more) == (5, 6)
    optimized.linear = nn.Linear(2, 3)
    assert net.linear.out_features == 3
    optimized.kept = nn.Parameter(torch.ones(1))
    assert "kept" in net._parameters
    del optimized.kept
    assert not hasattr(net, "kept") and not hasattr(optimized, "kept")
    assert "describe" in dir(optimized) and optimized.describe() == "Net True"
    with pytest.raises(AttributeError):
        optimized.nothing  # noqa: B018


def test_modes_and_conversions_act_on_the_original_and_give_the_optimized(net, optimized):
    assert optimized.eval() is optimized and not net.training and not optimized.training
    assert net.calls == ["train"]  # the class's own override ran
    assert optimized.train() is optimized and net.training
    assert optimized.to(torch.float64) is optimized and net.linear.weight.dtype is torch.float64
    assert optimized(X.double()).dtype is torch.float64
    assert optimized.requires_grad_(False) is optimized and not net.linear.weight.requires_grad
    assert optimized.apply(lambda module: None) is optimized


def test_hooks_of_the_optimized_are_those_of_the_original(net, optimized):
    before = optimized(X)
    handle = optimized.register_forward_hook(lambda module, args, out: out + (module is net))
    assert torch.equal(optimized(X), before + 1)
    handle.remove()
    assert torch.equal(optimized(X), before)


def test_containers():
    empty = minidynamo.optimize("eager")(nn.ModuleList())
    assert (bool(empty), len(empty)) == (False, 0)
    chain = minidynamo.optimize("eager")(nn.Sequential(nn.Linear(2, 2), nn.ReLU()))
    assert (bool(chain), len(chain)) == (True, 2)
    assert [type(m).__name__ for m in chain] == ["Linear", "ReLU"]
    chain[1] = nn.Tanh()
    assert torch.equal(chain(X), chain._orig_mod(X))
    del chain[1]
    assert len(chain._orig_mod) == 1 and chain[0] in chain
    assert bool(minidynamo.optimize("eager")(Net()))


def test_repr(net, optimized):
    assert repr(optimized) == f"OptimizedModule({net!r})"


@pytest.mark.parametrize(
    "twin", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))], ids=["copy", "pickle"]
)
def test_copies_are_optimized_and_independent(net, optimized, twin):
    before = optimized(X)
    made = twin(optimized)
    assert type(made) is OptimizedModule and made._orig_mod is not net
    with torch.no_grad():
        made.offset.add_(1)
    torch.testing.assert_close(made(X), before + 1)
    assert torch.equal(optimized(X), before)


def test_a_shallow_copy_shares_parameters(net, optimized):
    made = copy.copy(optimized)
    assert made._orig_mod is not net and made.linear.weight is net.linear.weight


def test_disabled_is_the_module_itself(net):
    assert minidynamo.optimize("eager", disable=True)(net) is net
    off = minidynamo.disable(minidynamo.optimize("eager")(net))
    assert torch.equal(off(X), net(X))
    assert not minidynamo.cache_entries(net)


def test_modules_of_different_classes_do_not_share_a_frame():
    class First(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x + 1

    class Second(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x + 2

    first, second = (minidynamo.optimize("eager")(cls()) for cls in (First, Second))
    assert torch.equal(first(X), X + 1) and torch.equal(second(X), X + 2)
    assert [len(minidynamo.cache_entries(m)) for m in (first, second)] == [1, 1]
    (entry,) = minidynamo.cache_entries(second)
    assert entry.guarded.original_name.endswith("Second.forward")
    assert str(entry.guarded.where).startswith(__file__)


def test_second_instance_reuses_the_entry():
    backend = CompileCounter()
    optimized = [minidynamo.optimize(backend)(Net()) for _ in range(3)]
    for each in optimized:
        assert torch.equal(each(X), each._orig_mod(X))
    assert backend.frame_count == 1


class Breaks(Net):
    def forward(self, x: torch.Tensor) -> torch.Tensor:  # type: ignore[override]
        y = self.linear(x)
        minidynamo.graph_break()
        return y * 2


def test_a_break_in_forward_is_captured_around_in_forward_itself():
    net = Breaks()
    optimized = minidynamo.optimize("eager")(net)
    for _ in range(8):
        assert torch.equal(optimized(X), net(X))
    frames = [entry for _, entry in minidynamo.compiled_frames(optimized)]
    assert [entry.guarded.ops for entry in frames] == [1, 1]
    assert [entry.hits for entry in frames] == [7, 7]
    made = minidynamo.explain(optimized)(X)
    assert made.graph_break_count == 1 and not made.skipped and not made.compiled


def test_nopython_names_the_line_of_the_break():
    optimized = minidynamo.optimize("eager", nopython=True)(Breaks())
    with pytest.raises(Unsupported, match=r"graph_break\(\) was called \[MD222\]"):
        optimized(X)


def test_decorated_forward_and_called_class():
    class Decorated(Net):
        @torch.no_grad()
        def forward(self, x: torch.Tensor) -> torch.Tensor:  # type: ignore[override]
            return self.linear(x)

    class Called(Net):
        def __call__(self, x: torch.Tensor) -> torch.Tensor:
            return super().__call__(x + 1)

    for cls in (Decorated, Called):
        net = cls()
        optimized = minidynamo.optimize("eager")(net)
        for _ in range(2):
            assert torch.equal(optimized(X), net(X))
            assert optimized(X).requires_grad == net(X).requires_grad


def test_grad_mode_outside():
    net = Net()
    optimized = minidynamo.optimize("eager", nopython=True)(net)
    with torch.no_grad():
        assert not optimized(X).requires_grad
    result = optimized(X)
    result.sum().backward()
    assert net.linear.weight.grad is not None
    with torch.inference_mode():
        assert not minidynamo.optimize("eager")(net)(X).requires_grad


def test_an_error_in_forward_is_eagers_own():
    net = Net()
    optimized = minidynamo.optimize("eager")(net)
    errors = []
    for call in (net, optimized):
        with pytest.raises(RuntimeError) as caught:
            call(torch.ones(3, 5))
        errors.append(caught.value)
    assert str(errors[0]) == str(errors[1])
    lines = [
        [(f.name, f.lineno) for f in traceback.extract_tb(e.__traceback__) if f.filename == __file__][-1]
        for e in errors
    ]
    assert lines[0] == lines[1]


def test_arguments_that_forward_refuses():
    optimized = minidynamo.optimize("eager")(Net())
    with pytest.raises(TypeError, match="unexpected keyword argument 'nothing'"):
        optimized(X, nothing=1)


def test_a_module_without_python_forward():
    scripted = torch.jit.trace(nn.Linear(2, 2), X)
    optimized = minidynamo.optimize("eager")(scripted)
    assert torch.equal(optimized(X), scripted(X))


def test_lazy_modules():
    net = nn.Sequential(nn.LazyLinear(2), nn.ReLU())
    optimized = minidynamo.optimize("eager")(net)
    first = optimized(X)
    assert torch.equal(optimized(X), first) and net[0].in_features == 2


def test_cache_limit_counts_per_object():
    backend = CompileCounter()
    for width in range(1, 13):
        net = nn.Sequential(nn.Linear(2, width))
        optimized = minidynamo.optimize(backend)(net)
        assert torch.equal(optimized(X), net(X))
    assert backend.frame_count == 12
