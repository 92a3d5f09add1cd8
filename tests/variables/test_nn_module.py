"""nn.Modules in captured code: equal to eager before and after every change that a program can make to a module."""

from __future__ import annotations

import copy
import types
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import minidynamo
from minidynamo.testing import CompileCounter
from tests.eager import watching


def state(module: nn.Module) -> dict[str, Any]:
    found: dict[str, Any] = dict(module.state_dict())
    found.update({f"{n}.grad": p.grad for n, p in module.named_parameters() if p.grad is not None})
    return found


def same(left: Any, right: Any) -> None:
    torch.testing.assert_close(left, right, rtol=0, atol=0)


class Twins:
    """A module and its deep copy, of which one is captured: what is done to one is done to both, and they must agree."""

    def __init__(self, module: nn.Module, nopython: bool = True) -> None:
        self.backend = CompileCounter()
        self.plain, self.captured = copy.deepcopy(module), module
        self.call = minidynamo.optimize(self.backend, nopython=nopython)(module)

    @property
    def graphs(self) -> int:
        return self.backend.frame_count

    def __call__(self, *args: Any, backward: bool = False, **kwargs: Any) -> Any:
        results = []
        for call in (self.plain, self.call):
            torch.manual_seed(0)
            results.append(call(*args, **kwargs))
            if backward:
                results[-1].sum().backward()
        same(results[0], results[1])
        same(state(self.plain), state(self.captured))
        return results[1]

    def do(self, change: Callable[[Any], Any]) -> None:
        change(self.plain)
        change(self.captured)


class MLP(nn.Module):
    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.first = nn.Linear(4, width)
        self.second = nn.Linear(width, 2)
        self.scale = 1.0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(torch.relu(self.first(x))) * self.scale


X = torch.linspace(-1, 1, 12).reshape(3, 4)


# --- whole networks -----------------------------------------------------------------------------------------------------


def test_an_mlp_is_one_graph_with_eager_gradients():
    twins = Twins(MLP())
    for _ in range(3):
        twins(X, backward=True)
    assert twins.graphs == 1


def test_parameters_are_graph_inputs():
    seen: list[torch.fx.GraphModule] = []

    def backend(module: torch.fx.GraphModule, inputs: list[torch.Tensor]) -> Any:
        seen.append(module)
        return module.forward

    net = MLP()
    minidynamo.optimize(backend)(net)(X)
    assert len([n for n in seen[0].graph.nodes if n.op == "placeholder"]) == 5
    assert not list(seen[0].parameters()) and not list(seen[0].buffers())


@pytest.mark.parametrize("mode", [True, False])
def test_a_network_with_batch_norm_and_dropout(mode):
    net = nn.Sequential(
        nn.Conv2d(3, 4, 3, padding=1),
        nn.BatchNorm2d(4),
        nn.ReLU(inplace=True),
        nn.MaxPool2d(2),
        nn.Dropout(0.5),
        nn.Flatten(),
        nn.Linear(64, 3),
    )
    twins = Twins(net.train(mode))
    for _ in range(3):
        twins(torch.linspace(0, 1, 384).reshape(2, 3, 8, 8), backward=True)
    assert twins.graphs == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("layer", "inputs"),
    [
        (nn.LayerNorm(4), (X,)),
        (nn.GroupNorm(2, 4), (X,)),
        (nn.InstanceNorm1d(4, track_running_stats=True), (X.reshape(1, 4, 3),)),
        (nn.Embedding(10, 4), (torch.arange(4),)),
        (nn.LSTM(4, 5, num_layers=2), (X.reshape(3, 1, 4),)),
        (nn.GRU(4, 5, bidirectional=True), (X.reshape(3, 1, 4),)),
        (nn.LSTMCell(4, 5), (X,)),
        (nn.MultiheadAttention(4, 2), (X.reshape(3, 1, 4),) * 3),
        (nn.TransformerEncoderLayer(4, 2, 8), (X.reshape(3, 1, 4),)),
        (nn.ConvTranspose2d(1, 2, 2), (X.reshape(1, 1, 3, 4),)),
        (nn.CrossEntropyLoss(), (X, torch.tensor([0, 1, 2]))),
        (nn.BCEWithLogitsLoss(), (X, X.sigmoid())),
        (nn.PReLU(), (X,)),
    ],
    ids=lambda value: type(value).__name__,
)
def test_layers_of_torch(layer, inputs):
    twins = Twins(layer)
    twins(*inputs)
    twins(*inputs)
    twins.do(nn.Module.eval)
    twins(*inputs)


def test_training_with_an_optimizer_outside():
    twins = Twins(nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Tanh(), nn.Linear(8, 1)))
    optimizers = [
        torch.optim.SGD(m.parameters(), lr=0.1, momentum=0.9) for m in (twins.plain, twins.captured)
    ]
    losses = []
    for _ in range(5):
        for optimizer in optimizers:
            optimizer.zero_grad()
        losses.append(twins(X, backward=True).sum().item())
        for optimizer in optimizers:
            optimizer.step()
    assert losses[-1] < losses[0]
    assert twins.graphs == 1


def test_a_step_in_a_function_around_the_module():
    nets = MLP(), MLP()
    nets[1].load_state_dict(nets[0].state_dict())

    def loss(net: nn.Module, x: torch.Tensor) -> torch.Tensor:
        return F.mse_loss(net(x), x[:, :2])

    captured = minidynamo.optimize("eager", nopython=True)(loss)
    for fn, net in ((loss, nets[0]), (captured, nets[1])):
        fn(net, X).backward()
    same(state(nets[0]), state(nets[1]))


# --- containers ---------------------------------------------------------------------------------------------------------


class Containers(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(4))
        self.named = nn.ModuleDict({"up": nn.Linear(4, 4), "down": nn.Tanh()})
        self.weights = nn.ParameterList([nn.Parameter(torch.ones(4) * i) for i in range(3)])
        self.table = nn.ParameterDict({"a": nn.Parameter(torch.ones(4))})
        self.chain = nn.Sequential(nn.ReLU(), nn.Linear(4, 4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for index, layer in enumerate(self.layers):
            x = layer(x) + index
        for layer in self.layers[1:3]:
            x = layer(x)
        x = self.layers[-1](x) * len(self.layers)
        for name, module in self.named.items():
            x = module(x) + len(name)
        if "up" in self.named and "left" not in self.named:
            x = self.named["up"](x)
        for weight in self.weights:
            x = x + weight
        return self.chain[1](x) * self.weights[1] + self.table["a"] * len(self.chain)


def test_containers():
    twins = Twins(Containers())
    twins(X, backward=True)
    twins(X, backward=True)
    assert twins.graphs == 1


@pytest.mark.parametrize(
    "change",
    [
        lambda m: m.layers.append(nn.Identity()),
        lambda m: m.layers.__setitem__(0, nn.Tanh()),
        lambda m: m.layers.__delitem__(1),
        lambda m: m.named.update({"left": nn.Tanh()}),
        lambda m: m.named.move_to_end("up") if hasattr(m.named, "move_to_end") else m.named.pop("down"),
        lambda m: m.chain.append(nn.Tanh()),
        lambda m: m.weights.append(nn.Parameter(torch.ones(4))),
        lambda m: m.table.update({"a": nn.Parameter(torch.full((4,), 3.0))}),
    ],
)
def test_a_changed_container_is_seen(change):
    twins = Twins(Containers())
    twins(X)
    twins.do(change)
    twins(X)
    twins(X)


# --- changes between calls ----------------------------------------------------------------------------------------------


def data(module: MLP) -> None:
    module.first.weight.data = module.first.weight.data * 2


def halved(module: MLP) -> None:
    with torch.no_grad():
        module.first.weight.mul_(0.5)


def bound_forward(module: MLP) -> None:
    module.first.forward = types.MethodType(lambda self, x: F.linear(x, self.weight * 2), module.first)


def instance_attribute(module: MLP) -> None:
    object.__setattr__(module, "first", nn.Linear(4, 8, bias=False))
    module.first.weight.data.fill_(0.5)


def plain_function(module: MLP) -> None:
    object.__setattr__(module, "second", lambda x: x[:, :2] * 50)


CHANGES: dict[str, Callable[[Any], Any]] = {
    "attribute": lambda m: setattr(m, "scale", 2.0),
    "parameter": lambda m: setattr(m.first, "weight", nn.Parameter(torch.full((8, 4), 0.5))),
    "data": data,
    "in place": halved,
    "no bias": lambda m: setattr(m.first, "bias", None),
    "frozen": lambda m: m.first.requires_grad_(False),
    "loaded": lambda m: m.load_state_dict({k: v * 2 for k, v in m.state_dict().items()}),
    "assigned": lambda m: m.load_state_dict({k: v * 2 for k, v in m.state_dict().items()}, assign=True),
    "submodule": lambda m: setattr(m, "first", nn.Sequential(m.first, nn.Tanh())),
    "submodules of other classes": lambda m: (setattr(m, "second", nn.Tanh()), m.second.eval()),
    "forward hook": lambda m: m.first.register_forward_hook(lambda module, args, out: out * 10),
    "hook without result": lambda m: m.first.register_forward_hook(lambda module, args, out: None),
    "pre-hook": lambda m: m.first.register_forward_pre_hook(lambda module, args: (args[0] + 1,)),
    "pre-hook, one value": lambda m: m.first.register_forward_pre_hook(lambda module, args: args[0] + 1),
    "hook with keywords": lambda m: m.register_forward_hook(
        lambda module, args, kwargs, out: out + len(kwargs), with_kwargs=True
    ),
    "pre-hook with keywords": lambda m: m.register_forward_pre_hook(
        lambda module, args, kwargs: (args, {"x": kwargs["x"] * 2}) if kwargs else ((args[0] * 2,), {}),
        with_kwargs=True,
    ),
    "backward hook": lambda m: m.first.register_full_backward_hook(lambda module, gin, gout: (gin[0],)),
    "backward pre-hook": lambda m: m.first.register_full_backward_pre_hook(lambda module, g: (g[0] * 3,)),
    "always called": lambda m: m.first.register_forward_hook(lambda m, a, o: o * 2, always_call=True),
    "tensor hook": lambda m: m.first.weight.register_hook(lambda grad: grad * 7),
    "forward of the instance": bound_forward,
    "shadowed": instance_attribute,
    "shadowed by a function": plain_function,
    "compile()": lambda m: setattr(m.first, "_compiled_call_impl", lambda x: F.linear(x, m.first.weight)),
    "double": lambda m: m.second.to(torch.float64).to(torch.float32),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_between_calls_is_seen(name):
    twins = Twins(MLP(), nopython=False)
    twins(X, backward=True)
    twins.do(CHANGES[name])
    twins(X, backward=True)
    twins(X, backward=True)


@pytest.mark.parametrize("name", [n for n in CHANGES if "hook" in n and n != "tensor hook"])
def test_hooks_that_are_there_before_the_first_call(name):
    net = MLP()
    CHANGES[name](net)
    twins = Twins(net, nopython=False)
    twins(X, backward=True)
    twins(x=X, backward=True)


def test_a_removed_hook_no_longer_runs():
    seen: list[int] = []
    net = MLP()
    captured = minidynamo.optimize("eager", nopython=True)(net)
    before = captured(X)
    handle = net.first.register_forward_hook(lambda module, args, out: (seen.append(1), out * 2)[1])
    assert not torch.equal(captured(X), before) and len(seen) == 1
    handle.remove()
    same(captured(X), before)
    assert len(seen) == 1


def test_hooks_that_forward_itself_takes_away():
    class Net(MLP):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = self.first(x)
            hooks = self.first._forward_hooks
            for key in list(hooks):
                del hooks[key]
            return y + self.first(x)

    net = Net()
    net.first.register_forward_hook(lambda module, args, out: out * 2)
    twins = Twins(net, nopython=False)
    twins(X)
    assert not twins.captured.first._forward_hooks
    twins(X)


def test_hooks_of_all_modules():
    twins = Twins(MLP())
    before = twins(X)
    handle = nn.modules.module.register_module_forward_hook(lambda module, args, out: out + 1)
    try:
        assert not torch.equal(twins(X), before)
    finally:
        handle.remove()
    same(twins(X), before)


def test_training_flags():
    twins = Twins(nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5), nn.BatchNorm1d(4)))
    for change in (nn.Module.eval, nn.Module.train, lambda m: m[1].eval(), lambda m: m[2].train(False)):
        twins.do(change)
        twins(X)
        twins(X)
    assert twins.graphs == 3  # the last is the first again


def test_a_changed_class_is_seen():
    class Net(nn.Module):
        factor = 2

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * self.factor

    captured = minidynamo.optimize("eager", nopython=True)(Net())
    same(captured(X), X * 2)
    Net.factor = 3
    same(captured(X), X * 3)
    Net.forward = lambda self, x: x - 1  # type: ignore[method-assign]
    same(captured(X), X - 1)
    Net.__call__ = lambda self, x: x + 5  # type: ignore[method-assign]
    same(captured(X), X + 5)


def test_a_class_attribute_that_appears_later_does_not_hide_a_parameter():
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.ones(4))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * self.weight

    captured = minidynamo.optimize("eager", nopython=True)(Net())
    same(captured(X), X)
    Net.weight = 3.0  # type: ignore[assignment]
    same(captured(X), X * 3)


# --- stores in forward ----------------------------------------------------------------------------------------------------


class Stores(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.register_buffer("running", torch.zeros(4))
        self.register_buffer("hidden", torch.zeros(4), persistent=False)
        self.register_buffer("none", None)
        self.last: Any = None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.linear(x)
        self.running = self.running * 0.5 + y.mean(0).detach()
        self.hidden = self.hidden + 1
        self.last = y
        self.shape = tuple(y.shape)
        self.last = self.last + self.running
        return y + self.last + self.running + self.hidden


def test_attributes_and_buffers_are_stored():
    twins = Twins(Stores())
    for _ in range(3):
        twins(X)
        for module in (twins.plain, twins.captured):
            assert module.shape == (3, 4) and "shape" in module.__dict__
            assert list(module._buffers) == ["running", "hidden", "none"] and "running" not in module.__dict__
        same(twins.plain.last, twins.captured.last)
        same(twins.plain.hidden, twins.captured.hidden)
    assert twins.graphs == 1


class Counts(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.step = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.step += 1
        return x * self.step


def test_a_counter():
    twins = Twins(Counts())
    for _ in range(4):
        twins(X)
    assert twins.captured.step == 4


def program(body: str) -> type[nn.Module]:
    names: dict[str, Any] = {"nn": nn, "torch": torch}
    exec(f"def forward(self, x):\n    y = x + 1\n    {body}\n    return y * 2\n", names)
    return type("Program", (MLP,), {"forward": names["forward"]})


@pytest.mark.parametrize(
    "body",
    [
        "self.new = nn.Parameter(torch.ones(2))",
        "self.new = self.first",
        "self.new = self.first.weight",
        "self.first = None",
        "self.register_buffer('new', y)",
        "del self.scale",
    ],
)
def test_what_registers_something_breaks_and_is_done_by_plain_python(body):
    twins = Twins(program(body)(), nopython=False)
    twins(X)
    assert list(twins.plain._modules) == list(twins.captured._modules)
    assert list(twins.plain.__dict__) == list(twins.captured.__dict__)


def test_a_setattr_of_the_class_runs_once():
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            object.__setattr__(self, "seen", [])

        def __setattr__(self, name: str, value: Any) -> None:
            if name == "last":
                self.seen.append(name)
            super().__setattr__(name, value)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.last = x + 1
            return self.last * 2

    twins = Twins(Net())
    twins(X)
    assert twins.captured.seen == ["last"] == twins.plain.seen
    same(twins.captured.last, X + 1)


def test_a_marked_buffer_is_registered_by_plain_python():
    class Net(nn.Module):
        def forward(self, x: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
            y = x + 1
            self.kept = b
            return y * 2

    twins = Twins(Net(), nopython=False)
    twins(X, torch.ones(2))
    assert "kept" in twins.captured.__dict__
    twins.do(lambda m: delattr(m, "kept"))
    twins(X, nn.Buffer(torch.ones(2)))
    assert "kept" in twins.captured._buffers and "kept" in twins.plain._buffers


# --- sharing, reuse -------------------------------------------------------------------------------------------------------


def test_shared_parameters_and_modules():
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.encode = nn.Linear(4, 4, bias=False)
            self.decode = nn.Linear(4, 4, bias=False)
            self.decode.weight = self.encode.weight
            self.again = self.encode

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.again(self.decode(self.encode(x)))

    twins = Twins(Tied())
    twins(X, backward=True)
    twins.do(lambda m: setattr(m.decode, "weight", nn.Parameter(torch.eye(4) * 2)))
    twins(X, backward=True)
    twins.do(lambda m: setattr(m, "again", nn.Linear(4, 4, bias=False).requires_grad_(False)))
    twins.do(lambda m: m.again.weight.fill_(0.1))
    twins(X, backward=True)
    assert twins.graphs == 3


def test_another_instance_of_the_class_uses_the_same_code():
    backend = CompileCounter()
    captured = minidynamo.optimize(backend)(lambda net, x: net(x) + 1)
    for _ in range(3):
        net = MLP()
        same(captured(net, X), net(X) + 1)
        same(minidynamo.optimize(backend)(net)(X), net(X))
    assert backend.frame_count == 2
    wider = MLP(5)
    same(captured(wider, X), wider(X) + 1)
    assert backend.frame_count == 3


def test_one_module_given_twice_and_then_two():
    def f(a: Counts, b: Counts, x: torch.Tensor) -> torch.Tensor:
        a.step = 5
        return x * b.step

    captured = minidynamo.optimize("eager", nopython=True)(f)
    one, two = Counts(), Counts()
    same(captured(one, one, X), X * 5)
    same(captured(two, Counts(), X), X * 0)
    same(captured(two, two, X), X * 5)


def test_batch_norm_given_one_buffer_twice():
    twins = Twins(nn.BatchNorm1d(4))
    twins(X)
    twins.do(lambda m: m._buffers.update(running_var=m._buffers["running_mean"]))
    twins(X)


def test_hooks_break_only_where_they_must():
    net = MLP()
    net.first.register_full_backward_hook(lambda module, gin, gout: None)
    captured = minidynamo.optimize("eager")(net)
    with watching() as seen:
        same(captured(X), net(X))
    assert seen.graphs > 0


def test_attribute_access_of_modules_outside():
    net = MLP()

    @minidynamo.optimize("eager", nopython=True)
    def f(x: torch.Tensor) -> Any:
        return x @ net.first.weight.T + net.first.bias, net.scale, net.training, net.first.in_features

    same(f(X)[0], net.first(X))
    assert f(X)[1:] == (1.0, True, 4)
    net.scale = 2.0
    net.eval()
    assert f(X)[1:] == (2.0, False, 4)


def test_methods_and_properties():
    class Net(MLP):
        @property
        def doubled(self) -> torch.Tensor:
            return self.first.bias * 2

        def helper(self, x: torch.Tensor, *, add: float = 0.5) -> torch.Tensor:
            return super().forward(x) + add

        @staticmethod
        def fixed(x: torch.Tensor) -> torch.Tensor:
            return x + 3

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.fixed(self.helper(x)) + self.helper(x, add=self.scale) + self.doubled.sum()

    Twins(Net())(X, backward=True)


def test_a_getattr_of_the_class():
    class Net(MLP):
        def __getattr__(self, name: str) -> Any:
            if name == "virtual":
                return 3
            return super().__getattr__(name)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return super().forward(x) * self.virtual

    Twins(Net())(X, backward=True)


@pytest.mark.slow
def test_nothing_is_kept_alive():
    import gc
    import weakref

    gc.collect()
    gc.disable()
    try:
        net = Stores()
        captured = minidynamo.optimize("eager")(net)
        for _ in range(2):
            captured(X)
        dead = [weakref.ref(o) for o in (net, captured, net.linear, net.linear.weight, net.last)]
        del net, captured
        assert [ref() for ref in dead] == [None] * len(dead)
    finally:
        gc.enable()


class Alike(nn.Module):
    """Layers of one class, called one after the other."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = layer(x)
        return x


def shadow(name: str) -> Callable[[Any], None]:
    def change(net: Any) -> None:
        layer = net.layers[2]
        usual = getattr(layer, name) or layer._call_impl
        layer.__dict__[name] = lambda x: usual(x) + 1

    return change


ODD_ONES: dict[str, Callable[[Any], Any]] = {
    "forward": shadow("forward"),
    "_call_impl": shadow("_call_impl"),
    "_compiled_call_impl": shadow("_compiled_call_impl"),
    "a hook": lambda net: net.layers[2].register_forward_hook(lambda module, args, out: out * 2),
    "a pre-hook": lambda net: net.layers[2].register_forward_pre_hook(lambda module, args: (args[0] * 2,)),
    "no bias": lambda net: setattr(net.layers[2], "bias", None),
    "a weight that is no parameter": lambda net: (
        net.layers[2]._parameters.pop("weight"),
        net.layers[2].__dict__.update(weight=torch.ones(4, 4)),
    ),
    "a weight that is a buffer": lambda net: (
        net.layers[2]._parameters.pop("weight"),
        net.layers[2].register_buffer("weight", torch.ones(4, 4)),
    ),
}


@pytest.mark.parametrize("name", ODD_ONES)
@pytest.mark.parametrize("called_before", [False, True])
def test_one_of_many_modules_of_a_class_differs(name, called_before):
    """What holds for a class is worked out at its first instance; the others are looked at all the same."""
    twins = Twins(Alike(), nopython=False)
    if called_before:
        twins(X)
    twins.do(ODD_ONES[name])
    twins(X)
    twins(X)
    graphs = twins.graphs
    twins(X)
    assert twins.graphs == graphs


def test_a_name_is_registered_where_there_was_none():
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.ModuleList([nn.ReLU(), nn.ReLU()])

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            for layer in self.layers:
                x = layer(x) + getattr(layer, "offset", 0)
            return x

    twins = Twins(Net())
    twins(X)
    twins.do(lambda net: net.layers[1].register_buffer("offset", torch.ones(4)))
    twins(X)
    twins.do(lambda net: net.layers[0].register_parameter("offset", nn.Parameter(torch.ones(4))))
    twins(X)
    twins.do(lambda net: net.layers[1]._buffers.clear())
    twins(X)


def test_the_class_is_changed_between_calls():
    class Layer(nn.Linear):
        pass

    class Net(Alike):
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.ModuleList(Layer(4, 4) for _ in range(3))

    twins = Twins(Net(), nopython=False)
    twins(X)
    usual = Layer.__call__
    Layer.__call__ = lambda self, x: usual(self, x) + 1
    twins(X)
    del Layer.__call__
    twins(X)
    Layer._call_impl = lambda self, x: self.forward(x) * 3
    twins(X)
    del Layer._call_impl
    handle = nn.modules.module.register_module_forward_hook(lambda module, args, out: out * 2)
    twins(X)
    handle.remove()
    twins(X)
    Layer.__getattr__ = lambda self, name: (
        torch.ones(4, 4) if name == "weight" else nn.Module.__getattr__(self, name)
    )
    twins(X)
