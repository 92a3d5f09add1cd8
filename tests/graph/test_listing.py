"""Graphs as reports keep them."""

from __future__ import annotations

import operator

import pytest
import torch
import torch.fx

from minidynamo.graph.listing import Listing, places_of


def nested() -> torch.fx.Graph:
    graph = torch.fx.Graph()
    x, y = graph.placeholder("x"), graph.placeholder("y", default_value=None)
    cat = graph.call_function(torch.cat, ([x, y],), {"dim": -1})
    part = graph.call_function(operator.getitem, (cat, (slice(None, None, 2), slice(0, 3))))
    named = graph.create_node("call_method", "view", (part, -1), {}, name="odd_name")
    graph.call_function(torch.stack, (), {"tensors": (named, {"a": named}["a"])})
    graph.output((named, x, 1, "text"))
    return graph


def test_the_text_is_that_of_the_graph():
    graph = nested()
    listing = Listing(places_of(graph))
    assert str(listing) == str(graph)
    listing.graph().lint()


def test_it_keeps_no_node():
    listing = Listing(places_of(nested()))
    assert not any(isinstance(value, torch.fx.Node) for row in listing.rows for value in row)


@pytest.mark.parametrize("names", [("add_1", "add"), ("sum", "add_3")])
def test_names_are_kept_whatever_they_are(names):
    graph = torch.fx.Graph()
    x = graph.placeholder("x")
    for name in names:
        x = graph.create_node("call_function", torch.add, (x, x), name=name)
    graph.output(x)
    assert str(Listing(places_of(graph))) == str(graph)
