"""The words of a snapshot are compared in order: none is read before others have shown that its object is alive."""

from __future__ import annotations

import sys

import pytest

from tests.native.conftest import C
from tests.native.programs import LITERAL, program

DEEP, WIDE = 12, 9


class Node:
    """Objects with a value, and with others below them."""

    def __init__(self, value, below=()):
        self.value = value
        for number, node in enumerate(below):
            setattr(self, f"n{number}", node)


def chain(depth=DEEP):
    """A node with `WIDE` nodes below it, the last of which has as many, and so on."""
    if depth == 0:
        return Node(70_000)
    return Node(depth + 70_000, [*(Node(80_000 + n) for n in range(WIDE - 1)), chain(depth - 1)])


def guards_of(root):
    """Every value in the tree, depth first from the last to the first: deep words are found early."""
    code, registers = [("LOAD_LOCAL", 0), ("CHECK_TYPE_ID", 0, id(Node))], 1

    def visit(node, register):
        nonlocal registers
        names = [name for name in vars(node) if name != "value"]
        for name in reversed(names):
            code.append(("LOAD_ATTR", register, name))
            mine, registers = registers, registers + 1
            code.append(("CHECK_TYPE_ID", mine, id(Node)))
            visit(getattr(node, name), mine)
        code.append(("LOAD_ATTR", register, "value"))
        code.append(("CHECK_SAME", registers, (LITERAL, node.value)))
        registers += 1

    visit(root, 0)
    return program(*code, arguments=1)


def at_depth(root, depth):
    for _ in range(depth):
        root = getattr(root, f"n{WIDE - 1}")
    return root


@pytest.fixture
def tree():
    root = chain()
    guards = guards_of(root)
    for _ in range(200):
        before = C.stats()["guards_remembered"]
        assert guards(root, {}, None)
        if C.stats()["guards_remembered"] > before:
            break
    assert guards.snapshot is not None
    return root, guards


versions = pytest.mark.skipif(
    sys.version_info >= (3, 12), reason="watchers stand for most words from 3.12 on"
)


@versions
def test_types_and_pointers_to_dictionaries_are_all_that_no_version_of_a_dictionary_covers(tree):
    _, guards = tree
    nodes = 1 + DEEP * WIDE
    counts = guards.snapshot
    assert counts["words"] >= 3 * nodes  # type, pointer, version
    assert 2 * nodes <= counts["fixed"] <= 2 * nodes + 4


@pytest.mark.parametrize("depth", range(DEEP))
def test_a_subtree_that_is_gone_is_not_read(tree, depth):
    root, guards = tree
    delattr(at_depth(root, depth), f"n{WIDE - 1}")  # frees all that is below
    filler = [bytes(64) for _ in range(100)]
    assert not guards(root, {}, None)
    at_depth(root, depth).n8 = chain(DEEP - depth - 1)
    assert guards(root, {}, None) and filler


@pytest.mark.parametrize("depth", range(DEEP))
@pytest.mark.parametrize("member", ["value", "n0", f"n{WIDE - 2}"])
def test_a_change_on_any_level_is_seen(tree, depth, member):
    root, guards = tree
    node = at_depth(root, depth)
    old = getattr(node, member)
    setattr(node, member, 1 if member == "value" else Node(1))
    assert not guards(root, {}, None)
    setattr(node, member, old)
    assert guards(root, {}, None)


@pytest.mark.parametrize("depth", range(0, DEEP, 3))
def test_a_dictionary_that_is_replaced_is_seen(tree, depth):
    root, guards = tree
    node = at_depth(root, depth)
    node.__dict__ = dict(vars(node), value=2)
    assert not guards(root, {}, None)
    node.__dict__ = dict(vars(node), value=DEEP - depth + 70_000)
    assert guards(root, {}, None)
