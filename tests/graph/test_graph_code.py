"""The code of a graph is torch.fx's, made without it; what is not known here torch.fx makes."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import pytest
import torch

import minidynamo
from minidynamo import config
from minidynamo.exc import InternalError
from minidynamo.graph import graph_code


def captured(program: Callable[..., Any], *args: Any) -> torch.fx.GraphModule:
    found: list[torch.fx.GraphModule] = []

    def keep(gm: torch.fx.GraphModule, _inputs: list[torch.Tensor]) -> Callable[..., Any]:
        found.append(gm)
        return gm.forward

    minidynamo.optimize(keep)(program)(*args)
    return found[-1]


def arithmetic(x: torch.Tensor, y: torch.Tensor) -> Any:
    return (x + 1) * -y / 2.5 // float("inf"), x @ y, ~(x > y), x ** float("nan")


def in_place(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    x = x.clone()
    x += y
    x *= 2
    x[0] = y[1]
    x.mul_(y)
    return x


def indices(x: torch.Tensor, y: torch.Tensor) -> Any:
    return x[1:], x[..., None], x[:, ::2], x[[0, 1]], y[x > 0], x[(0,)]


def attributes(x: torch.Tensor, y: torch.Tensor) -> Any:
    return x.T, y.mT + x.real


def keywords(x: torch.Tensor, y: torch.Tensor) -> Any:
    made = torch.zeros(2, 3, dtype=torch.float64, device=torch.device("cpu"))
    return (
        torch.cat([x, y], dim=-1),
        made,
        torch.nn.functional.layer_norm(x, (3,), eps=1e-3),
        x.sum(dim=0, keepdim=True),
    )


def several_results(x: torch.Tensor, y: torch.Tensor) -> Any:
    values, at = torch.max(x, 1)
    one, *_ = torch.split(y, 1)
    return values, at, one, torch.special.expit(x), x.to(torch.float16, memory_format=torch.preserve_format)


def unused_results(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    torch.sin(x)
    torch.empty(3)
    return y.cos()


def names_of_python(lambda_: torch.Tensor, getattr: torch.Tensor) -> torch.Tensor:
    device = lambda_ + 1
    return torch.add(device, getattr, alpha=2)


PROGRAMS = [
    arithmetic, in_place, indices, attributes, keywords, several_results, unused_results,
]  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_it_is_what_torch_fx_makes(program: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Any] = []
    original = graph_code.python_code
    monkeypatch.setattr(graph_code, "python_code", lambda graph: made.append(original(graph)) or made[-1])
    gm = captured(program, torch.rand(3, 3), torch.rand(3, 3))
    theirs = gm.graph.python_code("self")
    assert made[0] is not None and gm.code == made[0].src == theirs.src
    assert made[0].globals.keys() == theirs.globals.keys()
    assert made[0]._lineno_map == theirs._lineno_map and gm._lineno_map == theirs._lineno_map


def test_inputs_come_first_and_have_names_that_python_takes() -> None:
    x, y = torch.rand(3), torch.rand(3)
    gm = captured(names_of_python, x, y)
    names = [node.target for node in gm.graph.nodes if node.op == "placeholder"]
    assert names == ["lambda_", "getattr"] and torch.equal(gm(x, y)[0], names_of_python(x, y))
    gm = captured(keywords, torch.rand(3, 3), torch.rand(3, 3))
    assert [node.op for node in gm.graph.nodes][:3] == ["placeholder", "placeholder", "call_function"]


def graph_of(target: Any, *args: Any) -> torch.fx.Graph:
    graph = torch.fx.Graph()
    x = graph.placeholder("x")
    graph.output((graph.call_function(target, (x, *args)),))
    return graph


class Callee:
    __name__ = "callee"

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        return x

    def __hash__(self) -> int:
        return 0


def of_the_user(x: torch.Tensor) -> torch.Tensor:
    return x


@pytest.mark.parametrize(
    "graph",
    [
        graph_of(of_the_user),
        graph_of(Callee()),
        graph_of(torch.ops.aten.sin.default),
        graph_of(operator.attrgetter),
        graph_of(torch.add, {"a": 1}),
    ],
    ids=["a function", "an object", "an overload", "another builtin", "a dictionary"],
)
def test_torch_fx_makes_the_rest(graph: torch.fx.Graph) -> None:
    assert graph_code.python_code(graph) is None
    with graph_code.code_made_here(graph):
        assert "python_code" not in vars(graph)


def test_a_graph_that_is_changed_is_written_by_torch_fx() -> None:
    gm = captured(arithmetic, torch.rand(3, 3), torch.rand(3, 3))
    first = next(node for node in gm.graph.nodes if node.target is operator.add)
    with gm.graph.inserting_after(first):
        gm.graph.call_function(of_the_user, (first,))
    gm.recompile()
    assert "of_the_user" in gm.code


def test_differences_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(graph_code.SYMBOLS, operator.add, ("{} - {}", False))
    graph = graph_of(operator.add, 1)
    with config.patch(verify=True), pytest.raises(InternalError, match="src of a graph's code"):
        with graph_code.code_made_here(graph):
            pass
