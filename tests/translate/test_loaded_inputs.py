"""Frames that need code: what their graphs take is what the guards have loaded, whatever the code then makes of the outputs."""

from __future__ import annotations

import dataclasses
import threading
import traceback

import pytest
import torch
from torch import nn

import minidynamo

SCALE = torch.full((3,), 3.0)


@dataclasses.dataclass
class Out:
    hidden: torch.Tensor
    total: torch.Tensor


class Net(nn.Module):
    """`end(self, h)` makes the result."""

    def __init__(self, end):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(3, 3) for _ in range(3)])
        self.register_buffer("shift", torch.ones(3))
        self.norm = nn.BatchNorm1d(3)
        self.drop = nn.Dropout(0.5)
        self.calls, self.seen, self.last = 0, [], None
        self.end = end

    def forward(self, x):
        for layer in self.layers:
            x = torch.relu(layer(x)) + self.shift * SCALE
        return self.end(self, x)


def broken(net, h):
    print(end="")
    return net.layers[0](h) + net.shift


def counting(net, h):
    net.calls += 1
    net.seen.append(net.calls)
    net.last = h
    return h + net.shift


ENDS = {
    "a dict": lambda net, h: {"h": h, "total": h.sum()},
    "a dataclass": lambda net, h: Out(h, h.sum()),
    "one list twice": lambda net, h: (lambda items: (items, items))([h]),
    "a parameter": lambda net, h: (h, net.layers[0].weight),
    "effects": counting,
    "an input that is written": lambda net, h: net.shift.add_(0.5) + h,
    "batch norm": lambda net, h: net.norm(h),
    "dropout": lambda net, h: net.drop(h),
    "a break": broken,
    "a closure": lambda net, h: (lambda: h)(),
}


def flat(value):
    """The tensors in a result, and what else there is."""
    if dataclasses.is_dataclass(value):
        value = vars(value)
    if isinstance(value, dict):
        return [part for key, item in value.items() for part in (key, *flat(item))]
    if isinstance(value, (tuple, list)):
        return [part for item in value for part in flat(item)]
    return [value]


def same(got, want):
    got, want = flat(got), flat(want)
    assert len(got) == len(want)
    for one, other in zip(got, want, strict=True):
        assert torch.equal(one, other) if isinstance(other, torch.Tensor) else one == other


def loads(run):
    """How many inputs the guards of each entry load for the graph its code calls."""
    return [
        len(handle.loaded)
        for entry in minidynamo.cache_entries(run)
        for handle in entry.handles
        if handle.n_outputs >= 0
    ]


CHANGES = {
    "nothing": lambda net: None,
    "the data of a parameter": lambda net: net.layers[0].weight.data.mul_(2),
    "another parameter": lambda net: net.layers[1].register_parameter("bias", nn.Parameter(torch.ones(3))),
    "another layer": lambda net: net.layers.__setitem__(2, seeded_linear()),
    "a buffer": lambda net: setattr(net, "shift", torch.zeros(3)),
    "another shape": lambda net: setattr(net, "shift", torch.zeros(1)),
    "a hook": lambda net: net.layers[1].register_forward_hook(lambda m, i, o: o * 2),
    "evaluation": lambda net: net.eval(),
    "frozen": lambda net: net.layers[0].weight.requires_grad_(False),
}


def seeded_linear():
    torch.manual_seed(5)
    return nn.Linear(3, 3)


@pytest.mark.slow
@pytest.mark.parametrize("end", ENDS)
def test_what_is_handed_over_is_what_is_there_now(end):
    for change in CHANGES.values():
        torch.manual_seed(0)
        plain, net = Net(ENDS[end]), Net(ENDS[end])
        net.load_state_dict(plain.state_dict())
        run = minidynamo.optimize("eager")(net)
        x = torch.randn(4, 3)
        for step in range(5):
            if step == 3:
                change(plain)
                change(net)
            torch.manual_seed(step)
            want = plain(x)
            torch.manual_seed(step)
            same(run(x), want)
        assert (net.calls, net.seen) == (plain.calls, plain.seen)
        same(list(net.state_dict().values()), list(plain.state_dict().values()))
        minidynamo.reset()


def test_the_code_does_not_walk_the_module():
    net = Net(ENDS["a dict"])
    run = minidynamo.optimize("eager")(net)
    run(torch.randn(4, 3))
    (entry,) = minidynamo.cache_entries(run)
    assert entry.direct is None and loads(run) == [9]  # x in *args, weights, biases, buffer, global
    assert "_parameters" not in entry.guarded.output_text
    assert entry.code.co_consts and not {"layers", "weight", "_modules"} & set(entry.code.co_names)


def test_text_alone_hands_nothing_over():
    with minidynamo.config.patch(guards="text"):
        net = Net(ENDS["a dict"])
        run = minidynamo.optimize("eager")(net)
        x = torch.randn(4, 3)
        for _ in range(3):
            same(run(x), net(x))
        assert loads(run) == [0]


def failing_backend(fails):
    def backend(gm, _inputs):
        def call(*inputs):
            if fails:
                raise RuntimeError("the graph failed")
            return gm.forward(*inputs)

        return call

    return backend


def test_a_graph_that_raises_runs_plain():
    fails = []
    net = Net(ENDS["a dataclass"])
    run = minidynamo.optimize(failing_backend(fails))(net)
    x = torch.randn(4, 3)
    run(x)
    same(run(x), net(x))
    fails.append(1)
    with pytest.warns(UserWarning, match="the graph failed"):
        same(run(x), net(x))
    fails.clear()
    same(run(x), net(x))


def test_a_graph_that_raises_and_writes():
    """It cannot be run again: its error comes, from the line of the frame."""
    fails = []

    def f(x, box):
        x.add_(box.weight)
        return {"x": x}

    class Box:
        weight = torch.ones(2)

    run = minidynamo.optimize(failing_backend(fails))(f)
    x, box = torch.zeros(2), Box()
    for step in range(1, 4):
        assert torch.equal(run(x, box)["x"], torch.full((2,), float(step)))
    fails.append(1)
    with pytest.raises(RuntimeError, match="the graph failed") as raised:
        run(x, box)
    frames = [frame for frame in traceback.extract_tb(raised.value.__traceback__) if frame.name == "f"]
    assert [frame.lineno for frame in frames] == [f.__code__.co_firstlineno + 1]
    fails.clear()
    assert torch.equal(run(x, box)["x"], torch.full((2,), 4.0))


def test_calls_in_the_graph_of_the_same_function():
    depth = []

    def backend(gm, _inputs):
        def call(*inputs):
            if len(depth) < 3:
                depth.append(1)
                inner = run(x, boxes[len(depth)])
                depth.pop()
                assert torch.equal(inner["y"], x * boxes[len(depth) + 1].weight)
            return gm.forward(*inputs)

        return call

    class Box:
        def __init__(self, weight):
            self.weight = torch.full((2,), float(weight))

    def f(x, box):
        return {"y": x * box.weight}

    run = minidynamo.optimize(backend)(f)
    x, boxes = torch.ones(2), [Box(i) for i in range(4)]
    for _ in range(4):
        assert torch.equal(run(x, boxes[0])["y"], x * boxes[0].weight)


def test_recursion_of_the_frame():
    def f(x, box, n):
        y = x * box.weight
        print(end="")
        if n == 0:
            return {"y": y}
        return {"y": f(y, box.next, n - 1)["y"] + box.weight}

    class Box:
        def __init__(self, weight, after):
            self.weight, self.next = torch.full((2,), float(weight)), after

    box = None
    for weight in (2, 3, 5, 7):
        box = Box(weight, box)
    want = f(torch.ones(2), box, 3)
    f = minidynamo.optimize("eager")(f)
    for _ in range(4):
        assert torch.equal(f(torch.ones(2), box, 3)["y"], want["y"])


def test_threads():
    run = minidynamo.optimize("eager")(lambda net, x: {"y": net.layers[0](x) + net.shift})
    x = torch.randn(4, 3)
    nets = [Net(None) for _ in range(4)]
    for net in nets:
        run(net, x)
    wrong = []

    def work(net):
        for _ in range(50):
            if not torch.equal(run(net, x)["y"], net.layers[0](x) + net.shift):
                wrong.append(net)

    threads = [threading.Thread(target=work, args=(net,)) for net in nets]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_gradients():
    torch.manual_seed(0)
    net = Net(ENDS["a dict"])
    run = minidynamo.optimize("eager")(net)
    x = torch.randn(4, 3)
    run(x)["total"].backward()
    net.zero_grad()
    run(x)["total"].backward()
    got = [p.grad.clone() for p in net.layers.parameters()]
    net.zero_grad()
    net(x)["total"].backward()
    assert all(torch.equal(a, b.grad) for a, b in zip(got, net.layers.parameters(), strict=True))


def test_what_was_read_and_not_used_is_guarded_to_be_there():
    class Box:
        weight = torch.ones(2)

    def f(x, box):
        box.unused  # noqa: B018
        return {"y": x * box.weight}

    box = Box()
    box.unused = 1
    run = minidynamo.optimize("eager")(f)
    x = torch.randn(2)
    run(x, box)
    (entry,) = minidynamo.cache_entries(run)
    assert "___present(___attr(box, 'unused'))" in entry.guarded.check.source_text
    box.unused = "another value"
    assert torch.equal(run(x, box)["y"], x) and len(minidynamo.cache_entries(run)) == 1
    del box.unused
    with pytest.raises(AttributeError, match="unused"):
        run(x, box)
