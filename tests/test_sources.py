"""Each source names its place in guard text, reads it, reloads it and describes it."""

from __future__ import annotations

import builtins
import weakref

import pytest
import torch

from minidynamo import exc
from minidynamo.guards.leaves import helpers
from minidynamo.literals import Ref
from minidynamo.pycode import expr
from minidynamo.sources import (
    AttrSource,
    BuiltinSource,
    CellSource,
    ClosureSource,
    CodeSource,
    ConstantSource,
    DefaultSource,
    DictItemSource,
    DictKeySource,
    FrameValues,
    GlobalSource,
    GlobalsSource,
    GuardSource,
    ItemSource,
    KwDefaultSource,
    LocalSource,
    ModulesSource,
    SizeSource,
    StateSource,
    StorageOffsetSource,
    StrideSource,
    TypeSource,
    WeakRefSource,
    has_plain_items,
    is_local_name,
    item_source,
)

flag = 3


class Box:
    scale = 2


class MyDict(dict):
    pass


class Missing(dict):
    def __missing__(self, key):
        raise AssertionError("user code ran")


KEY = Box()


def outer():
    k = 5

    def inner(x, a=1, *, b=2):
        return x, k

    return inner


INNER = outer()
X = LocalSource("x")


def frame(x):
    return FrameValues({"x": x}, globals(), vars(builtins), INNER.__closure__, ("k",))


BOX = Box()
REF = weakref.ref(BOX)
MODULE = torch.nn.Linear(2, 3)
TENSOR = torch.zeros(4, 6)[1:]
# source, value of x, guard text, expression, words, value
TABLE = [
    (X, 7, "x", "x", "argument x", 7),
    (GlobalSource("flag"), 0, "___globals['flag']", "flag", "global flag", 3),
    (BuiltinSource("len"), 0, "___builtins['len']", "len", "builtin len", len),
    (ClosureSource("k", 0), 0, "___closure[0].cell_contents", "k", "closure variable k", 5),
    (ConstantSource(1.5), 0, "1.5", "1.5", "constant 1.5", 1.5),
    (AttrSource(X, "scale"), BOX, "___attr(x, 'scale')", "x.scale", "x.scale", 2),
    (AttrSource(X, "__dict__"), BOX, "x.__dict__", "x.__dict__", "x.__dict__", {}),
    (ItemSource(X, -1), [1, 2], "x[-1]", "x[-1]", "x[-1]", 2),
    (
        ItemSource(AttrSource(X, "_parameters"), "weight"),
        MODULE,
        "x._parameters['weight']",
        "x._parameters['weight']",
        "x._parameters['weight']",
        MODULE.weight,
    ),
    (
        ItemSource(AttrSource(GlobalSource("torch"), "__dict__"), "nn"),
        0,
        "___globals['torch'].__dict__['nn']",
        "torch.__dict__['nn']",
        "torch.__dict__['nn']",
        torch.nn,
    ),
    (DictItemSource(X, "a"), MyDict(a=1), "___dict_item(x, 'a')", None, "x['a']", 1),
    (DictKeySource(X, 1), {"a": 1, "b": 2}, "___dict_key(x, 1)", None, "key 1 of x", "b"),
    (TypeSource(X), 5, "___type(x)", None, "type of x", int),
    (WeakRefSource(X), REF, "___weakref_target(x)", "x()", "target of x", BOX),
    (CodeSource(X), INNER, "x.__code__", "x.__code__", "code of x", INNER.__code__),
    (DefaultSource(X, 0), INNER, "x.__defaults__[0]", "x.__defaults__[0]", "default 0 of x", 1),
    (KwDefaultSource(X, "b"), INNER, "x.__kwdefaults__['b']", "x.__kwdefaults__['b']", "default b of x", 2),
    (
        CellSource(X, 0),
        INNER,
        "x.__closure__[0].cell_contents",
        "x.__closure__[0].cell_contents",
        "closure variable 0 of x",
        5,
    ),
    (SizeSource(X, 1), TENSOR, "___size(x, 1)", "x.size(1)", "size 1 of x", 6),
    (StrideSource(X, 0), TENSOR, "___stride(x, 0)", "x.stride(0)", "stride 0 of x", 6),
    (StorageOffsetSource(X), TENSOR, "___storage_offset(x)", "x.storage_offset()", "storage offset of x", 6),
]
NAMES = [type(row[0]).__name__ for row in TABLE]


@pytest.mark.parametrize(("source", "x", "text", "code", "words", "value"), TABLE, ids=NAMES)
def test_table(source, x, text, code, words, value):
    assert source.name() == text
    assert source.describe() == words
    made = frame(x)
    read = source.read(made)
    assert read is value or read == value
    scope = helpers() | {
        "x": x,
        "___globals": made.globals,
        "___builtins": made.builtins,
        "___closure": made.closure,
    }
    evaluated = eval(text, scope)
    assert evaluated is value or evaluated == value
    if code is not None:
        assert expr.source(source.expr()) == code


def test_arguments_in_cells_are_reloaded_from_their_cells():
    def fn(x):
        return lambda: x

    assert LocalSource("x").expr(fn.__code__) == expr.Deref("x")
    assert ClosureSource.of(INNER.__code__, "k").expr(INNER.__code__) == expr.Deref("k")


def test_depth_prefixes_and_parents():
    a = AttrSource(X, "a")
    source = ItemSource(a, 0)
    assert [s.depth() for s in (X, a, source)] == [0, 1, 2]
    assert source.prefixes() == [X, a] and source.parent() is a and X.parent() is None
    assert source.base is a


def test_equal_paths_are_equal_keys():
    assert len({ItemSource(X, 0), ItemSource(LocalSource("x"), 0), ItemSource(X, "0")}) == 2
    assert ClosureSource("k", 0) == ClosureSource("", 0) != ClosureSource("k", 1)


@pytest.mark.parametrize(
    ("source", "scope"),
    [
        (ItemSource(X, 0), GuardSource.LOCAL),
        (ClosureSource("k", 0), GuardSource.LOCAL),
        (AttrSource(GlobalSource("flag"), "real"), GuardSource.GLOBAL),
        (BuiltinSource("len"), GuardSource.GLOBAL),
        (GlobalsSource(), GuardSource.GLOBAL),
        (ModulesSource(), GuardSource.GLOBAL),
        (StateSource(), GuardSource.STATE),
        (ConstantSource(1), GuardSource.CONSTANT),
    ],
)
def test_scopes(source, scope):
    assert source.guard_source() is scope
    assert scope.is_local() is (scope is GuardSource.LOCAL)
    assert scope.nn_module().is_nn_module() is (scope in (GuardSource.LOCAL, GuardSource.GLOBAL))


def test_plain_steps_name_the_base_whose_type_must_be_guarded():
    assert ItemSource(X, 0).plain_base() is X and CodeSource(X).plain_base() is X
    assert AttrSource(X, "_parameters").plain_base() is X
    for source in (AttrSource(X, "a"), DictItemSource(X, 0), TypeSource(X), X, GlobalSource("flag")):
        assert source.plain_base() is None


@pytest.mark.parametrize(
    ("source", "x", "error"),
    [
        (LocalSource("y"), 0, KeyError),
        (GlobalSource("no_such_global"), 0, KeyError),
        (AttrSource(X, "nothing"), BOX, AttributeError),
        (ItemSource(X, 5), [1], IndexError),
        (ItemSource(X, "a"), Missing(), TypeError),
        (DictItemSource(X, "a"), Missing(), KeyError),
        (CodeSource(X), len, TypeError),
        (DefaultSource(X, 3), INNER, IndexError),
        (KwDefaultSource(X, "c"), INNER, KeyError),
        (CellSource(X, 9), INNER, IndexError),
        (WeakRefSource(X), lambda: BOX, TypeError),
        (SizeSource(X, 0), [1], TypeError),
        (SizeSource(X, 9), TENSOR, IndexError),
    ],
)
def test_a_place_that_is_gone_raises(source, x, error):
    with pytest.raises(error):
        source.read(frame(x))


def test_keys_without_literals_are_refs():
    source = ItemSource(X, Ref.of(KEY))
    made = {KEY: 1}
    assert source.read(frame(made)) == 1
    assert source.name() == f"x[___ref[{source.key.number}]]"
    assert eval(source.name(), helpers() | {"x": made}) == 1
    assert source.expr() == expr.Item(expr.Local("x"), expr.Const(KEY))


def test_item_source_chooses_the_safe_step():
    assert item_source(X, 0, [1]) == ItemSource(X, 0) == item_source(X, 0, torch.Size([1]))
    assert item_source(X, "a", MyDict()) == ItemSource(X, "a")
    assert item_source(X, "a", Missing()) == DictItemSource(X, "a")
    with pytest.raises(exc.Unsupported, match="Box"):
        item_source(X, 0, BOX)
    assert not has_plain_items(Missing) and not has_plain_items(Box) and has_plain_items(torch.Size)


@pytest.mark.parametrize("name", [".0", "___globals", "___v0", "class", "__debug__", "a b", "ﬁ", ""])
def test_names_that_guards_cannot_write(name):
    assert not is_local_name(name)
    with pytest.raises(exc.Unsupported, match="no ordinary Python name"):
        LocalSource(name).name()


@pytest.mark.parametrize(
    "name", ["x", "_", "__x", "len", "match", "___stack12", "___free0", "___handled", "имя"]
)
def test_ordinary_names(name):
    assert LocalSource(name).name() == name


def test_state_is_never_loaded():
    with pytest.raises(exc.InternalError, match="guarded only"):
        StateSource().expr()
