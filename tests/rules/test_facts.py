"""`id`, of objects that are guarded to be the same."""

from __future__ import annotations

import gc

import pytest
import torch

import minidynamo
from tests.eager import check

TABLE: dict[int, torch.Tensor] = {}


def remembers(x, key):
    if id(key) not in TABLE:
        TABLE[id(key)] = x * 2
    return TABLE[id(key)] + 1


class Key:
    pass


@pytest.mark.parametrize("make", [Key, lambda: torch.nn.Linear(1, 1)], ids=["object", "module"])
def test_each_object_has_its_own(make):
    fn = minidynamo.optimize("eager", nopython=True)(remembers)
    one, two, x = make(), make(), torch.ones(2)
    TABLE.clear()
    for key in (one, two, one):
        assert torch.equal(fn(x, key), x * 2 + 1)
    assert set(TABLE) == {id(one), id(two)}


def test_an_entry_dies_with_its_object():
    fn = minidynamo.optimize("eager", nopython=True)(remembers)
    x, key = torch.ones(2), Key()
    TABLE.clear()
    fn(x, key)
    del key
    gc.collect()
    TABLE.clear()
    assert not any(entry.valid for entry in minidynamo.cache_entries(fn))
    keys = [Key() for _ in range(8)]  # one of them may lie where the first one lay
    for key in keys[:3]:
        fn(x, key)
    assert set(TABLE) == {id(key) for key in keys[:3]}


def test_functions_and_classes():
    seen = check(
        "import math\ndef f(x):\n    return x + (id(math.sqrt) != id(math.log)) + (id(dict) == id(dict))\n",
        "f(T(2))",
    )
    assert seen.reasons == []


@pytest.mark.parametrize("value", ["x", "[1]", "(lambda: 1)"])
def test_what_is_made_in_each_call_is_plain_pythons(value):
    source = f"def f(x):\n    y = x + 1\n    return y + (id({value}) != 0)\n"
    assert check(source, "f(T(2))").reasons == ["MD220"]
