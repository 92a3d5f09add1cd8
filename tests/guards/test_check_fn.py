"""Guards become one expression that is true on its own frame, false when something changed, and holds nothing
alive.
"""

from __future__ import annotations

import gc
import re
import types
import weakref
from collections import OrderedDict

import pytest
import torch

from minidynamo import exc
from minidynamo.guards.builder import GuardBuilder as B
from minidynamo.guards.builder import can_id_match
from minidynamo.guards.diagnose import explain_failure
from minidynamo.guards.guard import Guard, make_guard
from minidynamo.sources import (
    AttrSource,
    BuiltinSource,
    CellSource,
    ClosureSource,
    CodeSource,
    DefaultSource,
    DictItemSource,
    DictKeySource,
    GlobalSource,
    GlobalsSource,
    ItemSource,
    KwDefaultSource,
    LocalSource,
    SizeSource,
    StateSource,
    TypeSource,
    WeakRefSource,
    item_source,
)

X, Y = LocalSource("x"), LocalSource("y")
flag = 3


def fn(x, y=None):
    return x, y


def with_(frame, **changes):
    return type(frame)(frame.locals | changes, frame.globals, frame.builtins, frame.closure, frame.freevars)


def test_the_seeds_example(build):
    guards = [make_guard(X, B.TENSOR_MATCH), make_guard(Y, B.TYPE_MATCH), make_guard(Y, B.EQUALS_MATCH)]
    check, frame, validity = build(fn, guards, x=torch.ones(4, 8), y=2)
    assert re.fullmatch(
        r"___guarded_code\.valid and ___check_type_id\(y, \d+\) and y == 2 and "
        r"___check_tensors\(x, \d+, \d+, 'float32', 'cpu', False, \(4, 8\), \(8, 1\)\)",
        check.source_text,
    )
    args = (frame.locals["x"], 2, frame.globals, None)
    assert check.fn(*args) is True and check(*args) is True
    assert check.fn.__code__.co_filename == "<minidynamo guards of fn>"
    assert not check.fn(torch.ones(5, 8), 2, frame.globals, None)
    validity.valid = False
    assert not check.run(frame)


EQUAL_BUT_DIFFERENT = [
    (2, 2.0),
    (1, True),
    (True, 1),
    (0.0, -0.0),
    (-0.0, 0.0),
    ("a", "b"),
    (b"a", "a"),
    (1.5, 1.25),
]
EQUAL_BUT_DIFFERENT += [((1, 2), (1, 2.0)), ((1, 2), [1, 2]), (None, 0), (torch.float32, torch.float64)]
EQUAL_BUT_DIFFERENT += [
    (float("nan"), 1.0),
    (range(3), range(4)),
    (torch.device("cpu"), "cpu"),
    (10**5000, 10**5000 + 1),
]
EQUAL_BUT_DIFFERENT += [(..., None), (slice(1, 2), slice(1, 3)), (frozenset({1}), frozenset({True})), (1j, 1)]


@pytest.mark.parametrize(("value", "other"), EQUAL_BUT_DIFFERENT, ids=lambda v: type(v).__name__)
def test_equals_match_tells_constants_apart(build, value, other):
    check, frame, _ = build(fn, [make_guard(X, B.EQUALS_MATCH)], x=value)
    assert check.run(frame)
    assert not check.run(with_(frame, x=other))


def test_equals_match_comes_after_a_type_match(build):
    check, _, _ = build(fn, [make_guard(X, B.EQUALS_MATCH)], x=2)
    assert [row.kind for row in check.rows] == ["TYPE_MATCH", "EQUALS_MATCH"]


class Box:
    def __init__(self, **values):
        self.__dict__.update(values)


class Slotted:
    __slots__ = ("a",)


def slotted(value):
    made = Slotted()
    made.a = value
    return made


def f0(a=1, *, b=2):
    return a + b


def f1(a=5, *, b=2):
    return a + b


def f2(a=1, *, b=7):
    return a + b


def adder(n):
    return lambda x: x + n


class MyDict(dict):
    def __missing__(self, key):
        raise AssertionError("user code ran")

    def __getitem__(self, key):
        raise AssertionError("user code ran")

    def __contains__(self, key):
        raise AssertionError("user code ran")


TARGET = Box()


def guard(create_fn, *args, source=X):
    return make_guard(source, create_fn, *args)


OTHER_TENSOR = torch.ones(2)
CASES = {
    "list length": (guard(B.LIST_LENGTH), [1, 2], [1]),
    "tuple length": (guard(B.TUPLE_LENGTH), (1, 2), (1, 2, 3)),
    "dict length": (guard(B.DICT_LENGTH), {1: 2}, {}),
    "item of a list": (guard(B.EQUALS_MATCH, source=ItemSource(X, 1)), [1, 2], [1, 3]),
    "item of a tuple": (guard(B.EQUALS_MATCH, source=ItemSource(X, -1)), (1, 2), (1, 3)),
    "missing item": (guard(B.EQUALS_MATCH, source=ItemSource(X, "k")), {"k": 1}, {}),
    "attribute": (guard(B.EQUALS_MATCH, source=AttrSource(X, "a")), Box(a=1), Box(a=2)),
    "missing attribute": (guard(B.EQUALS_MATCH, source=AttrSource(X, "a")), Box(a=1), Box()),
    "slot": (guard(B.EQUALS_MATCH, source=AttrSource(X, "a")), slotted(1), slotted(2)),
    "hasattr": (guard(B.HASATTR, "a"), Box(a=1), Box()),
    "no attr": (guard(B.HASATTR, "a"), Box(), Box(a=1)),
    "present": (guard(B.PRESENT, source=AttrSource(X, "a")), Box(a=None), Box()),
    "own attribute": (guard(B.OWN_ATTRIBUTE, "a"), Box(a=1), Box()),
    "no own attribute": (guard(B.OWN_ATTRIBUTE, "a"), Box(), Box(a=1)),
    "lacks": (guard(B.LACKS_MEMBERS, ("a", "b")), Box(c=1), Box(b=1)),
    "empty": (guard(B.EMPTY_MEMBERS, ("a",)), Box(a=OrderedDict()), Box(a=OrderedDict(k=1))),
    "empty, another type": (guard(B.EMPTY_MEMBERS, ("a",)), Box(a=OrderedDict()), Box(a={})),
    "key": (guard(B.DICT_CONTAINS, "a"), {"a": 1}, {"b": 1}),
    "no key": (guard(B.DICT_CONTAINS, "a"), {"b": 1}, {"a": 1}),
    "key of a dict with its own `in`": (guard(B.DICT_CONTAINS, "a"), MyDict(a=1), MyDict()),
    "no key of a dict with its own `in`": (guard(B.DICT_CONTAINS, "a"), MyDict(), MyDict(a=1)),
    "item of a dict with its own []": (
        guard(B.EQUALS_MATCH, source=DictItemSource(X, "a")),
        MyDict(a=1),
        MyDict(),
    ),
    "keys": (guard(B.DICT_KEYS), {"a": 1, "b": 2}, {"b": 2, "a": 1}),
    "keys that are objects": (guard(B.DICT_KEYS), {Box: 1}, {Slotted: 1}),
    "nth key": (guard(B.EQUALS_MATCH, source=DictKeySource(X, 1)), {"a": 1, "b": 2}, {"a": 1, "c": 2}),
    "type": (guard(B.TYPE_MATCH), 1, True),
    "identity": (guard(B.ID_MATCH), TARGET, Box()),
    "module": (guard(B.MODULE_MATCH), torch, types),
    "builtin": (guard(B.BUILTIN_MATCH), len, max),
    "method descriptor": (guard(B.BUILTIN_MATCH), list.append, list.pop),
    "nn module": (guard(B.NN_MODULE), torch.nn.functional, torch.nn),
    "function": (guard(B.FUNCTION_MATCH), f0, f1),
    "closure": (guard(B.EQUALS_MATCH, source=CellSource(X, 0)), adder(1), adder(2)),
    "code": (guard(B.ID_MATCH, source=CodeSource(X)), f0, f1),
    "default": (guard(B.EQUALS_MATCH, source=DefaultSource(X, 0)), f0, f1),
    "keyword default": (guard(B.EQUALS_MATCH, source=KwDefaultSource(X, "b")), f0, f2),
    "name": (guard(B.NAME_MATCH), f0, f1),
    "name of a class": (guard(B.NAME_MATCH), Box, Slotted),
    "class attribute": (guard(B.ID_MATCH, source=AttrSource(TypeSource(X), "__init__")), Box(), Slotted()),
    "weakref": (guard(B.WEAKREF_ALIVE), weakref.ref(TARGET), weakref.ref(Box())),
    "weakref target": (guard(B.ID_MATCH, source=WeakRefSource(X)), weakref.ref(TARGET), weakref.ref(Box())),
    "tuple iterator": (guard(B.TUPLE_ITERATOR_LEN), iter((1, 2)), iter((1,))),
    "parameter": (
        guard(B.TENSOR_MATCH, source=ItemSource(AttrSource(X, "_parameters"), "weight")),
        torch.nn.Linear(2, 3),
        torch.nn.Linear(2, 4),
    ),
    "relation": (guard(B.SHAPE_ENV, "{0} % 2 == 0", SizeSource(X, 0)), torch.ones(4), torch.ones(3)),
    "free dimension": (guard(B.TENSOR_MATCH, (0,), ()), torch.ones(4, 2), torch.ones(4, 3)),
    "dtype": (guard(B.CONSTANT_MATCH), torch.float32, torch.float16),
}


@pytest.mark.parametrize("case", CASES)
def test_every_guard_holds_on_its_frame_and_fails_on_another_value(build, case):
    made, value, other = CASES[case]
    check, frame, _ = build(fn, [made], x=value)
    assert check.run(frame)
    assert not check.run(with_(frame, x=other))


@pytest.mark.parametrize("case", CASES)
def test_python_leaves_agree(build, case):
    made, value, other = CASES[case]
    check, frame, _ = build(fn, [made], options={"python_leaves": True}, x=value)
    assert check.run(frame) and not check.run(with_(frame, x=other))


def test_a_free_dimension_may_vary(build):
    check, frame, _ = build(fn, [guard(B.TENSOR_MATCH, (0,), ())], x=torch.ones(4, 2))
    assert check.run(with_(frame, x=torch.ones(9, 2)))


def test_aliasing_both_ways(build):
    a, b = [1], [1]
    same, frame, _ = build(fn, [guard(B.DUPLICATE_INPUT, Y)], x=a, y=a)
    assert same.run(frame) and not same.run(with_(frame, y=b))
    different, frame, _ = build(fn, [guard(B.NO_ALIAS, Y)], x=a, y=b)
    assert different.run(frame) and not different.run(with_(frame, y=a))


def test_many_different_objects_are_one_row(build):
    a, b, c = [1], [1], [1]
    check, frame, _ = build(
        fn,
        [make_guard(X, B.DISTINCT, (X, ItemSource(Y, 0)), (ItemSource(Y, 1), ItemSource(Y, 2)))],
        x=a,
        y=(b, c, c),
    )
    assert check.parts[-1] == "___distinct((x, y[0],), (y[1], y[2],))"
    assert check.run(frame) and check.run(with_(frame, y=(c, b, b)))
    for together in ((a, c, c), (b, a, c), (b, c, a), (b, b, c), (b, c, b)):
        assert not check.run(with_(frame, y=together))


def test_storage_layout(build):
    base = torch.arange(10.0)
    check, frame, _ = build(fn, [guard(B.STORAGE_LAYOUT, Y)], x=base[0:4], y=base[2:6])
    assert check.run(with_(frame, x=base[1:5], y=base[3:7]))
    assert not check.run(with_(frame, y=base[4:8]))
    assert not check.run(with_(frame, y=torch.ones(4)))


def test_globals_and_builtins(build):
    guards = [
        make_guard(GlobalSource("flag"), B.EQUALS_MATCH),
        make_guard(BuiltinSource("len"), B.BUILTIN_MATCH),
    ]
    check, frame, _ = build(fn, guards, x=1)
    assert "'len' not in ___globals" in check.parts
    changed = dict(frame.globals)
    other = type(frame)(frame.locals, changed, frame.builtins)
    assert check.run(other)
    changed["len"] = max
    assert not check.run(other)
    del changed["len"]
    changed["flag"] = 4
    assert not check.run(other)
    del changed["flag"]
    assert not check.run(other)


def test_absent_global_has_one_row(build):
    guards = [
        make_guard(BuiltinSource("len"), B.GLOBAL_ABSENT),
        make_guard(GlobalsSource(), B.DICT_CONTAINS, "len"),
    ]
    check, _, _ = build(fn, guards, x=1)
    assert check.parts.count("'len' not in ___globals") == 1
    assert "DICT_NOT_CONTAINS" not in {row.kind for row in check.rows}


def test_closure_variables(build):
    f = adder(5)
    check, frame, _ = build(f, [make_guard(ClosureSource.of(f.__code__, "n"), B.EQUALS_MATCH)], x=1)
    assert check.parts[-1] == "___closure[0].cell_contents == 5"
    other = type(frame)(frame.locals, frame.globals, frame.builtins, adder(6).__closure__, ("n",))
    assert not check.run(other)
    empty = type(frame)(frame.locals, frame.globals, frame.builtins, (types.CellType(),), ("n",))
    assert not check.run(empty)


def test_global_state(build):
    check, frame, _ = build(
        fn, [make_guard(StateSource(), B.GRAD_MODE), make_guard(StateSource(), B.AUTOCAST)], x=1
    )
    assert len(check.rows) == 1
    assert check.run(frame)
    with torch.no_grad():
        assert not check.run(frame)
    with torch.autocast("cpu"):
        assert not check.run(frame)


def test_equal_guards_are_checked_once(build):
    guards = [make_guard(X, B.TYPE_MATCH, user=("a.py", line)) for line in (1, 2)] + [
        make_guard(X, B.EQUALS_MATCH)
    ]
    check, _, _ = build(fn, guards, x=2)
    assert [row.kind for row in check.rows] == ["TYPE_MATCH", "EQUALS_MATCH"]
    assert check.users[check.rows[0]] == ("a.py", 1)


def test_guards_of_modules_can_be_left_out(build):
    guards = [make_guard(X, B.NN_MODULE, nn_module=True), make_guard(Y, B.TYPE_MATCH)]
    assert guards[0].is_nn_module()
    check, _, _ = build(fn, guards, options={"guard_nn_modules": False}, x=torch.nn.ReLU(), y=1)
    assert [row.path for row in check.rows] == [Y]


# ------------------------------------------------------------------------------------------------- failures


def line_text(build, create_fn, match, value, **kwargs):
    with pytest.raises(exc.InternalError, match=match):
        build(fn, [make_guard(X, create_fn, user=("user.py", 7), **kwargs)], x=value)


def test_a_guard_that_is_false_on_its_own_frame_names_itself_and_the_users_line(build):
    def WRONG(builder, guard):
        builder.emit(guard, "LENGTH", guard.origin, 3, expected="length 3")

    line_text(
        build, WRONG, r"`___len\(x\) == 3` of fn .*user\.py:7.*expected length 3, found length 2", [1, 2]
    )


def test_a_guard_that_raises_on_its_own_frame_is_told(build):
    def RAISES(builder, guard):
        builder.emit(guard, "NAME_MATCH", guard.origin, "a", expected="named a")

    line_text(build, RAISES, r"`___check_name\(x, 'a'\)`.*AttributeError", 5)


def test_a_text_that_does_not_compile_is_found(build):
    def DEEP(builder, guard):
        source = guard.origin
        for _ in range(300):
            source = TypeSource(source)
        builder.emit(guard, "CONSTANT_MATCH", source, None, expected="None")

    line_text(build, DEEP, r"`___type\(___type\(.* of fn .*does not compile", 5)


@pytest.mark.parametrize(
    ("create_fn", "value", "match"),
    [
        (B.ID_MATCH, object(), "have no weak references"),
        (B.EQUALS_MATCH, [1], "is no constant"),
        (B.FUNCTION_MATCH, len, "is no Python function"),
        (B.DICT_KEYS, [1], "is no dict"),
        (B.TENSOR_MATCH, 1, "needs a tensor"),
        (B.TENSOR_MATCH, torch.eye(2).to_sparse(), "guard its type and its parts instead"),
        (B.ITERATOR_LENGTH, [1], "no iterator"),
        (B.LENGTH, 5, "TypeError: no builtin length"),
        (B.NAME_MATCH, 5, "AttributeError"),
    ],
)
def test_guards_that_cannot_be_made_say_why(build, create_fn, value, match):
    line_text(
        build, create_fn, rf"{create_fn.__name__} on argument x \(needed by user\.py:7\): .*{match}", value
    )


@pytest.mark.parametrize("name", [".0", "___globals", "___len", "class", "ﬁ"])
def test_names_that_guards_cannot_write_are_unsupported(build, name):
    code = fn.__code__.replace(co_varnames=(name, "y"))
    with pytest.raises(exc.Unsupported, match="rename it"):
        build(types.FunctionType(code, globals()), [], **{name: 1, "y": 2})


def test_parameters_of_resume_functions_are_names_like_any_other(build):
    code = fn.__code__.replace(co_varnames=("___stack0", "y"))
    resumed = types.FunctionType(code, globals())
    check, frame, _ = build(resumed, [make_guard(LocalSource("___stack0"), B.EQUALS_MATCH)], ___stack0=1, y=2)
    assert check.parts[-1] == "___stack0 == 1" and check.run(frame)


def test_hidden_helpers(build):
    """Arguments may be called like builtins that guards use."""

    def shadows(type, len, max, NotImplemented):
        return type

    guards = [
        make_guard(LocalSource("len"), B.LIST_LENGTH),
        make_guard(TypeSource(LocalSource("max")), B.ID_MATCH),
    ]
    check, frame, _ = build(shadows, guards, type=1, len=[1], max=Box(), NotImplemented=2)
    assert check.run(frame)


# ------------------------------------------------------------------------------------------------ lifetimes


def test_an_entry_dies_with_the_object_that_it_identifies(build):
    target = Box()
    check, frame, validity = build(fn, [guard(B.ID_MATCH)], x=target)
    frame.locals.clear()
    assert validity.valid
    del target
    gc.collect()
    assert not validity.valid and not check.fn(Box(), None, {}, None)


def test_an_entry_dies_with_a_type_or_a_code_object(build):
    local_type = type("Local", (), {})
    _, frame, validity = build(fn, [guard(B.TYPE_MATCH)], x=local_type())
    frame.locals.clear()
    del local_type
    gc.collect()
    assert not validity.valid

    made = types.FunctionType(adder.__code__.replace(co_name="copy"), globals())
    _, frame, validity = build(fn, [guard(B.FUNCTION_MATCH)], x=made)
    frame.locals.clear()
    del made
    gc.collect()
    assert not validity.valid


def test_check_fn_keeps_no_user_object_alive(build):
    module, tensor, key = torch.nn.Linear(2, 2), torch.ones(2), Box()
    guards = [
        make_guard(X, B.NN_MODULE),
        make_guard(ItemSource(AttrSource(X, "_parameters"), "weight"), B.TENSOR_MATCH),
        make_guard(Y, B.DICT_KEYS),
        make_guard(item_source(Y, "t", {}), B.TENSOR_MATCH),
    ]
    check, frame, _ = build(fn, guards, x=module, y={"t": tensor, key: 1})
    alive = [weakref.ref(o) for o in (module, module.weight, tensor, key)]
    frame.locals.clear()
    del module, tensor, key, frame
    gc.collect()
    assert [ref() for ref in alive] == [None] * 4
    assert check.rows


def test_immutable_objects_are_identified_without_weak_references():
    assert can_id_match(len) and can_id_match(list.append) and can_id_match(None) and can_id_match(Box)
    assert not can_id_match(object()) and not can_id_match([]) and not can_id_match(1)


# ------------------------------------------------------------------------------------------- no user code


class Trap(type):
    def __getattribute__(cls, name):
        raise AssertionError("user code ran")

    def __instancecheck__(cls, obj):
        raise AssertionError("user code ran")

    __subclasscheck__ = __eq__ = __hash__ = __call__ = __repr__ = __instancecheck__


def trap(*args, **kwargs):
    raise AssertionError("user code ran")


HOOKS = [
    "getattribute",
    "getattr",
    "eq",
    "ne",
    "len",
    "hash",
    "getitem",
    "contains",
    "iter",
    "bool",
    "call",
    "repr",
]
Hostile = Trap("Hostile", (), {f"__{hook}__": trap for hook in HOOKS} | {"__class__": property(trap)})


def hostile():
    return object.__new__(Hostile)


@pytest.mark.parametrize("case", CASES)
def test_no_guard_runs_code_of_the_value_it_meets(build, case):
    """Guards run on arbitrary values: whatever is in the place, none of its methods is called."""
    made, value, _ = CASES[case]
    check, frame, _ = build(fn, [made], x=value)
    victim = with_(frame, x=hostile())
    try:
        holds = check.fn(victim.locals["x"], None, frame.globals, None)
    except (TypeError, AttributeError, LookupError):
        holds = False
    assert holds is (case in ("no attr", "no own attribute", "lacks"))
    failure = explain_failure(check, victim)
    assert (failure is None) is (case in ("no attr", "no own attribute", "lacks"))


@pytest.mark.parametrize(
    "create_fn",
    [B.TYPE_MATCH, B.ID_MATCH, B.CONSTANT_MATCH, B.EQUALS_MATCH, B.TENSOR_MATCH, B.DICT_KEYS, B.LENGTH],
)
@pytest.mark.parametrize("source", [X, TypeSource(X), ItemSource(X, 0), AttrSource(X, "a")])
def test_making_guards_runs_no_user_code(build, create_fn, source):
    try:
        check, frame, _ = build(fn, [make_guard(source, create_fn)], x=hostile())
    except exc.InternalError:
        return
    assert check.run(frame)


def test_a_class_that_reads_attributes_itself_is_refused(build):
    class Reads:
        def __getattribute__(self, name):
            raise AssertionError("user code ran")

    with pytest.raises(exc.InternalError, match="would run user code: .*Reads defines __getattribute__"):
        build(fn, [guard(B.TYPE_MATCH, source=AttrSource(X, "__dict__"))], x=Reads())
    with pytest.raises(exc.InternalError, match="read by code of its own"):
        build(fn, [guard(B.TYPE_MATCH, source=ItemSource(X, "a"))], x=MyDict(a=1))


def test_a_key_that_hashes_itself_is_refused(build):
    class Key:
        def __hash__(self):
            return 1

    key = Key()
    with pytest.raises(exc.InternalError, match="__hash__ is Python code"):
        build(fn, [guard(B.DICT_CONTAINS, key)], x={key: 1})


def test_plain_steps_get_a_type_guard_below_them(build):
    source = ItemSource(AttrSource(X, "_parameters"), "weight")
    check, _, _ = build(fn, [guard(B.TENSOR_MATCH, source=source)], x=torch.nn.Linear(2, 2))
    assert [(row.kind, row.path) for row in check.rows] == [
        ("TYPE_MATCH", X),
        ("TYPE_MATCH", AttrSource(X, "_parameters")),
        ("TENSOR_MATCH", source),
    ]


def test_guards_sort_by_cost_then_depth():
    guards = [
        make_guard(ItemSource(X, 0), B.TYPE_MATCH),
        make_guard(X, B.TENSOR_MATCH),
        make_guard(X, B.TYPE_MATCH),
    ]
    assert sorted(guards, key=Guard.sort_key) == [guards[2], guards[0], guards[1]]
