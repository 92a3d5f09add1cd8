"""While no dict at all has changed, a snapshot does not look at any. Every way to change one is seen all the same, and so is
what changes though no dict does."""

from __future__ import annotations

import collections
import gc
import pickle
import sys
import types

import pytest

from tests.native.conftest import C
from tests.native.programs import LITERAL, program

pytestmark = pytest.mark.skipif(
    sys.version_info >= (3, 12), reason="watchers tell of changes from 3.12 on, so that no dict is looked at"
)

NODES = 20  # more than are looked at one by one without the question


class Node:
    def __init__(self, value):
        vars(self).update(value=value, table={"k": value, "l": 0}, hooks=collections.OrderedDict())


class Other(Node):
    pass


class Slotted:
    __slots__ = ("__dict__", "tag")


class Root:
    pass


def root_of(nodes):
    root = Root()
    for i, node in enumerate(nodes):
        vars(root)[f"n{i}"] = node
    root.slotted = Slotted()
    root.slotted.tag = 31337
    vars(root.slotted)["value"] = 1
    return root


def guards_of():
    code, registers = [("LOAD_LOCAL", 0)], 1
    for i in range(NODES):
        code += [
            ("LOAD_ATTR", 0, f"n{i}"),
            ("CHECK_TYPE_ID", registers, id(Node)),
            ("LOAD_ATTR", registers, "value"),
            ("CHECK_SAME", registers + 1, (LITERAL, 70_000 + i)),
            ("LOAD_ATTR", registers, "table"),
            ("LOAD_ITEM", registers + 2, (LITERAL, "k")),
            ("CHECK_SAME", registers + 3, (LITERAL, 70_000 + i)),
            ("CHECK_LENGTH", registers + 2, 2),
            ("CHECK_EMPTY", registers, ("hooks",)),
        ]
        registers += 4
    code += [("LOAD_ATTR", 0, "slotted"), ("LOAD_ATTR", registers, "tag")]
    code += [("CHECK_SAME", registers + 1, (LITERAL, 31337)), ("CHECK_NO_ATTR", registers, "late")]
    code += [("CHECK_NO_GLOBAL", "made later")]
    return program(*code, arguments=1)


@pytest.fixture
def settled():
    """(root, globals, guards), after enough runs for a snapshot that asks whether any dict has changed."""
    root, scope, guards = root_of([Node(70_000 + i) for i in range(NODES)]), {"x": 1}, guards_of()
    before = C.stats()["dicts_unchanged"]
    for _ in range(20):
        assert guards(root, scope, None)
    assert C.stats()["dicts_unchanged"] - before >= 15
    return root, scope, guards


def stored_by_specialised_code(root):
    def store(node, value):
        node.value = value

    other = Node(1)
    for i in range(200):
        store(other, i)
    store(root.n3, 1)


def stored_in_a_table_by_specialised_code(root):
    def store(table, value):
        table["k"] = value

    other = {"k": 1}
    for i in range(200):
        store(other, i)
    store(root.n3.table, 1)


def state_set(root):
    state = pickle.dumps(Node(5))
    root.n7.__dict__.update(pickle.loads(state).__dict__)


CHANGES = {
    "an attribute": lambda root, scope: setattr(root.n5, "value", 1),
    "an attribute of the first": lambda root, scope: setattr(root.n0, "value", 1),
    "an attribute of the last": lambda root, scope: setattr(root.n19, "value", 1),
    "object.__setattr__": lambda root, scope: object.__setattr__(root.n5, "value", 1),
    "vars()": lambda root, scope: vars(root.n5).__setitem__("value", 1),
    "dict.__setitem__": lambda root, scope: dict.__setitem__(root.n5.table, "k", 1),
    "update": lambda root, scope: root.n5.table.update(k=1),
    "|=": lambda root, scope: root.n5.table.__ior__({"k": 1}),
    "__init__": lambda root, scope: root.n5.table.__init__(k=1),
    "setdefault": lambda root, scope: root.n5.table.setdefault("m", 1),
    "pop": lambda root, scope: root.n5.table.pop("k"),
    "popitem": lambda root, scope: root.n5.table.popitem(),
    "clear": lambda root, scope: root.n5.table.clear(),
    "del": lambda root, scope: root.n5.table.__delitem__("k"),
    "delattr": lambda root, scope: delattr(root.n5, "value"),
    "specialised code": lambda root, scope: stored_by_specialised_code(root),
    "specialised code, an item": lambda root, scope: stored_in_a_table_by_specialised_code(root),
    "a hook": lambda root, scope: root.n5.hooks.__setitem__(1, 2),
    "a hook by dict": lambda root, scope: dict.__setitem__(root.n5.hooks, 1, 2),
    "a hook by update": lambda root, scope: root.n5.hooks.update({1: 2}),
    "a hook by setdefault": lambda root, scope: root.n5.hooks.setdefault(1, 2),
    "hooks cloned into": lambda root, scope: dict.update(root.n5.hooks, {1: 2, 3: 4}),
    "a state": lambda root, scope: state_set(root),
    "a global": lambda root, scope: exec("globals()['made later'] = 1", scope),
    "another object": lambda root, scope: setattr(root, "n5", Node(1)),
    "another dict": lambda root, scope: setattr(root.n5, "__dict__", {"value": 1}),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_each_way_to_change_a_dict_is_seen(settled, change):
    root, scope, guards = settled
    change(root, scope)
    assert not guards(root, scope, None)
    assert not guards(root, scope, None)


def swapped_dicts(root, spare):
    root.n5.__dict__ = spare


def other_class(root, spare):
    root.n5.__class__ = Other


def other_slot(root, spare):
    root.slotted.tag = spare


NO_DICT = {
    "another dictionary that was there": (swapped_dicts, dict(vars(Node(1)))),
    "another class": (other_class, None),
    "a slot": (other_slot, 5),
}


@pytest.mark.parametrize(("change", "spare"), NO_DICT.values(), ids=NO_DICT)
def test_what_changes_though_no_dict_does(settled, change, spare):
    root, scope, guards = settled
    before = C.stats()["dicts_unchanged"]
    for _ in range(3):
        assert guards(root, scope, None)
    change(root, spare)
    after = guards(root, scope, None)
    assert after is False
    assert (
        C.stats()["dicts_unchanged"] - before >= 3
    )  # the run that failed has not looked at dictionaries either


def test_a_dictionary_that_dies_is_not_read(settled):
    root, scope, guards = settled
    spare = dict(vars(root.n5))
    for _ in range(3):
        assert guards(root, scope, None)
    root.n5.__dict__ = spare  # the one that was there dies: no dict has changed
    assert guards(root, scope, None)
    spare["value"] = 1
    assert not guards(root, scope, None)


def test_an_address_that_is_used_again(settled):
    root, scope, guards = settled
    for i in range(200):
        node = Node(70_005 if i % 2 else 1)
        root.n5 = node
        del node
        gc.collect(0)
        for _ in range(3):
            assert guards(root, scope, None) is bool(i % 2)


def test_roots_in_turn_and_the_epoch():
    """What one snapshot has asked is no answer for another: the version goes on with each question."""
    roots = [root_of([Node(70_000 + i) for i in range(NODES)]) for _ in range(3)]
    scope, guards, more = {"x": 1}, guards_of(), guards_of()
    for i in range(60):
        assert guards(roots[i % 3], scope, None) and more(roots[i % 2], scope, None)
    before = C.stats()["dicts_unchanged"]
    for i in range(30):
        assert guards(roots[i % 3], scope, None) and more(roots[i % 2], scope, None)
    assert C.stats()["dicts_unchanged"] - before >= 50
    roots[1].n4.value = 1
    assert [guards(root, scope, None) for root in roots] == [True, False, True]
    assert [more(root, scope, None) for root in roots] == [True, False, True]


def test_dictionaries_of_types_and_modules(settled):
    root, scope, guards = settled
    module = types.ModuleType("scope of these")
    vars(module).update(x=1)
    for _ in range(90):
        assert guards(root, vars(module), None)
    setattr(module, "made later", 1)
    assert not guards(root, vars(module), None)
    Node.late = property(lambda self: 1)
    try:
        assert guards(root, scope, None)
        Slotted.late = 1
        assert not guards(root, scope, None)
    finally:
        del Node.late, Slotted.late
    assert guards(root, scope, None)
