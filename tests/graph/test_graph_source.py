"""The source of a graph's forward: there while it is of use, gone afterwards."""

from __future__ import annotations

import gc
import inspect
import linecache
import traceback

import torch
import torch.fx.graph_module

import minidynamo


def registered() -> set[str]:
    return {name for name in linecache.cache if name.startswith("<eval_with_key>")}


def test_the_source_is_there_while_the_graph_is():
    modules = []

    def backend(gm, example_inputs):
        modules.append(gm)
        return gm.forward

    minidynamo.optimize(backend)(lambda x: x + 1)(torch.ones(2))
    assert "return (" in inspect.getsource(modules[0].forward)
    torch.jit.script(modules[0])  # reads it, too


def test_the_source_goes_with_the_code():
    gc.collect()
    made = []
    before, texts = registered(), len(torch.fx.graph_module._loader.eval_cache)
    for _ in range(5):  # equal codes, each in a file of its own
        scope = {}
        exec("def f(x): return x + 1", scope)
        made.append(minidynamo.optimize("eager")(scope["f"]))
        made[-1](torch.ones(2))
    assert len(registered() - before) == 5
    minidynamo.reset()
    made.clear(), scope.clear()
    gc.collect()
    assert registered() <= before and len(torch.fx.graph_module._loader.eval_cache) <= texts


def test_a_traceback_shows_the_line_of_the_graph():
    @minidynamo.optimize("eager")
    def f(x, y):
        x.add_(1)
        return x @ y

    args = torch.ones(2, 2), torch.ones(2, 2)
    f(*args)
    (entry,) = minidynamo.cache_entries(f)
    forward = entry.direct[0] if entry.direct else entry.handles[0]
    try:
        forward(torch.ones(2, 2), torch.ones(3, 3))
    except RuntimeError as error:
        text = "".join(traceback.format_exception(error))
    assert "matmul" in text and "<eval_with_key>" in text
