"""What a backend finds in the graph it is given (decision 18)."""

from __future__ import annotations

import copy
import gc
import pickle
import subprocess
import sys
import weakref
from pathlib import Path

import pytest
import torch
import torch._guards

import minidynamo
from minidynamo.graph.node_meta import NodeMeta
from tests.eager import T

ROOT = Path(__file__).resolve().parents[2]


class Kept:
    """A backend that runs graphs as they are and keeps what it saw."""

    def __init__(self, look=lambda gm, inputs: None):
        self.look = look
        self.seen = []

    def __call__(self, gm, inputs):
        self.gm, self.inputs = gm, inputs
        self.seen.append(self.look(gm, inputs))
        return gm.forward


def nodes(gm, op):
    return [node for node in gm.graph.nodes if node.op.startswith(op)]


class Scaled(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU())
        self.register_buffer("scale", torch.full((4,), 2.0))

    def forward(self, x):
        return self.layers(x) * self.scale


def test_the_inputs_are_the_real_tensors_in_placeholder_order():
    backend = Kept(lambda gm, inputs: [id(t) for t in inputs])
    w = T(3)
    x, y = T(3), T(3) + 1

    def f(a, b):
        return b * w + a

    minidynamo.optimize(backend)(f)(x, y)
    names = [node.name for node in nodes(backend.gm, "placeholder")]
    assert len(names) == 3
    by_name = dict(zip(names, backend.inputs))
    assert by_name["a"] is x and by_name["b"] is y


def test_placeholders_come_first():
    backend = Kept()

    def f(a, b):
        c = a + 1
        return c * b

    minidynamo.optimize(backend)(f)(T(3), T(3))
    assert [node.op for node in backend.gm.graph.nodes] == ["placeholder"] * 2 + ["call_function"] * 2 + [
        "output"
    ]


def test_sources_and_ids_for_aotautograd():
    def look(gm, inputs):
        sources = [node._dynamo_source for node in nodes(gm, "placeholder")]
        assert len({*sources}) == len(sources) == len(inputs)
        assert all(isinstance(source, torch._guards.Source) for source in sources)
        assert gm._param_name_to_source == {}
        assert gm.meta["dynamo_compile_id"] == torch._guards.CompileContext.current_compile_id()
        return [source.name for source in sources]

    backend = Kept(look)
    minidynamo.optimize(backend)(Scaled())(T(2, 3))
    (names,) = backend.seen
    assert names[0] == "args[0]" and "_parameters['weight']" in names[1] and "_buffers['scale']" in names[3]


def test_parameters_and_buffers_are_static_inputs_and_arguments_are_not():
    backend = Kept()
    minidynamo.optimize(backend)(Scaled())(T(2, 3))
    kinds = [
        node.meta["tensor_dict"].get("_dynamo_static_input_type") for node in nodes(backend.gm, "placeholder")
    ]
    assert kinds == [None, "unguarded", "unguarded", "unguarded"]


def test_meta_of_nodes():
    backend = Kept()
    minidynamo.optimize(backend)(Scaled())(T(2, 3))
    linear, _, mul = nodes(backend.gm, "call")
    assert isinstance(linear.meta["example_value"], torch._subclasses.FakeTensor)
    assert linear.meta["example_value"].shape == (2, 4) and linear.meta["example_value"].requires_grad
    assert linear.meta["source_fn_stack"] == [("linear", linear.target)]
    paths = [path for path, _ in linear.meta["nn_module_stack"].values()]
    assert paths == ["self", "self.layers", "self.layers.0"]
    assert [cls for _, cls in linear.meta["nn_module_stack"].values()] == [
        Scaled,
        torch.nn.Sequential,
        torch.nn.Linear,
    ]
    trace = mul.meta["stack_trace"].splitlines()
    assert len(trace) == 2 and trace[0].endswith(", in forward") and "test_contract.py" in trace[0]
    assert trace[1].strip() == "return self.layers(x) * self.scale"
    assert len(linear.meta["stack_trace"].splitlines()) == 6


def test_example_values_follow_the_grad_mode():
    def f(x, w):
        x.mul_(2)
        with torch.no_grad():
            y = x + w
        return x * w, y

    backend = Kept()
    minidynamo.optimize(backend)(f)(T(3), T(3, requires_grad=True))
    values = {node.name: node.meta.get("example_value") for node in backend.gm.graph.nodes}
    assert not values["x"].requires_grad and values["w"].requires_grad
    assert not values["add"].requires_grad and values["mul"].requires_grad


def test_example_values_of_placeholders_that_a_compiler_renames():
    def look(gm, inputs):
        for node in nodes(gm, "placeholder"):
            node._rename("other")
        return [node.meta["example_value"].shape for node in gm.graph.nodes if node.op != "output"]

    backend = Kept(look)
    minidynamo.optimize(backend)(lambda x: x.sum(0))(T(2, 3))
    assert backend.seen == [[(2, 3), (3,)]]


def test_what_fakes_cannot_run_has_no_example():
    def needs_data(x):
        return T(int(x.sum()))

    backend = Kept()
    minidynamo.optimize(backend)(lambda x: x + 1)(T(3))
    (add,) = nodes(backend.gm, "call")
    with backend.gm.graph.inserting_after(add):
        odd = backend.gm.graph.call_function(needs_data, (add,))
    odd.meta = NodeMeta(odd, add.meta.facts)
    assert "example_value" not in odd.meta and "source_fn_stack" in odd.meta


@pytest.mark.parametrize(
    "read",
    [
        dict,
        lambda meta: {**meta},
        lambda meta: dict(meta.items()),
        lambda meta: {key: meta[key] for key in meta},
        lambda meta: meta | {},
        lambda meta: {} | meta,
        lambda meta: copy.deepcopy({key: value for key, value in meta.items() if key != "example_value"}),
        lambda meta: dict(copy.copy(meta)),
        lambda meta: dict(zip(meta.keys(), meta.values())),
    ],
)
def test_meta_reads_as_a_plain_dict(read):
    backend = Kept()
    minidynamo.optimize(backend)(lambda x: x + 1)(T(3))
    (add,) = nodes(backend.gm, "call")
    assert {"stack_trace", "source_fn_stack"} <= set(read(add.meta))
    assert len(add.meta) == 3 and add.meta == {key: add.meta[key] for key in add.meta}


def test_meta_keeps_what_is_stored_and_deleted():
    backend = Kept()
    minidynamo.optimize(backend)(lambda x: x + 1)(T(3))
    (add,) = nodes(backend.gm, "call")
    add.meta["stack_trace"] = "mine"
    del add.meta["source_fn_stack"]
    assert add.meta.pop("nn_module_stack", None) is None
    again = copy.deepcopy(backend.gm)
    for gm in (backend.gm, again):
        meta = nodes(gm, "call")[0].meta
        assert meta["stack_trace"] == "mine" and "source_fn_stack" not in meta
    add.meta.clear()
    assert dict(add.meta) == {} and not add.meta
    assert pickle.loads(pickle.dumps(add.meta)) == {}


def test_the_context_is_there_for_the_call_of_the_backend_only():
    backend = Kept(lambda gm, inputs: torch._guards.TracingContext.get().fake_mode)
    minidynamo.optimize(backend)(lambda x: x + 1)(T(3))
    (mode,) = backend.seen
    (add,) = nodes(backend.gm, "call")
    assert add.meta["example_value"].fake_mode is mode
    assert torch._guards.TracingContext.try_get() is None
    assert torch._guards.CompileContext.try_get() is None


@pytest.mark.parametrize("backend", ["eager", "aot_eager", Kept()])
def test_no_tensor_is_kept_alive(backend):
    f = minidynamo.optimize(backend)(lambda x: (x + 1).sum())
    x = T(3)
    f(x)
    if isinstance(backend, Kept):
        del backend.inputs
    gone = weakref.ref(x)
    del x
    gc.collect()
    assert gone() is None and len(minidynamo.cache_entries(f)) == 1


@pytest.mark.slow
def test_a_backend_that_does_not_look_costs_no_fake_tensors():
    """In a process of its own: nothing of torch's compiler is loaded by the first compilation."""
    program = (
        "import sys, torch, minidynamo\n"
        "f = minidynamo.optimize(lambda gm, inputs: gm.forward)(lambda x: torch.relu(x) + 1)\n"
        "f(torch.ones(3))\n"
        "assert minidynamo.cache_entries(f)\n"
        "print([name for name in ('sympy', 'torch._dynamo') if name in sys.modules])"
    )
    environment = {"PYTHONPATH": str(ROOT), "PATH": ""}
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, env=environment
    )
    assert done.stdout.strip() == "[]"
