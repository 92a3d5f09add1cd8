"""Native program, reference machine and text agree on values made to tell them apart (mode "both" compares each verdict)."""

from __future__ import annotations

import collections
import enum
import math
import weakref

import numpy as np
import pytest
import torch

from minidynamo import config, exc, optimize
from minidynamo.cache import GuardProgram, Validity
from minidynamo.guards.builder import GuardBuilder as B
from minidynamo.guards.check_fn import CheckFunctionManager
from minidynamo.guards.guard import make_guard
from minidynamo.guards.lower import OPS
from minidynamo.guards.native import WEAK, encode
from minidynamo.literals import Ref
from minidynamo.sources import AttrSource, DictItemSource, DictKeySource, ItemSource, LocalSource, SizeSource

X = LocalSource("x")


class Liar:
    """Equal to everything."""

    def __eq__(self, other):
        return True

    def __hash__(self):
        return hash(1)


class Angry(Liar):
    def __eq__(self, other):
        raise RuntimeError("no comparison")


class Loud:
    """Runs code wherever Python lets it."""

    def __getattribute__(self, name):
        raise RuntimeError(f"{name} was asked for")


class Slots:
    __slots__ = ("x", "y")


class Props:
    @property
    def x(self):
        raise RuntimeError("run")


class Box:
    def __init__(self, **values):
        self.__dict__.update(values)


class Int(int):
    def __eq__(self, other):
        return True

    __hash__ = int.__hash__


class Str(str):
    pass


class Tuple(tuple):
    def __len__(self):
        return 7


class Dict(dict):
    def __contains__(self, key):
        raise RuntimeError("asked")

    def __len__(self):
        return 7


class Missing(dict):
    def __missing__(self, key):
        return 1


class Color(enum.Enum):
    RED = 1
    BLUE = 2


class MyTensor(torch.Tensor):
    pass


def slotted(**values):
    made = Slots()
    for name, value in values.items():
        setattr(made, name, value)
    return made


def ordered():
    mapping = collections.OrderedDict(a=1, b=2)
    mapping.move_to_end("a")
    return mapping


KEY = Box()
T = torch.zeros(2, 3)
VALUES = [
    *(None, True, False, 0, 1, 2, -1, 10**5000, -(10**5000), 2**63, Int(1), 0.0, -0.0, 1.0, math.nan, -math.nan, math.inf),
    *(1j, complex(0, -0.0), complex(-0.0, 0), "", "a", "x", Str("a"), b"a", bytearray(b"a"), ..., NotImplemented),
    *((), (1,), (True,), (1.0,), (0.0,), (-0.0,), ((1,), "a"), Tuple((1,)), torch.Size((1,)), (1, Int(1))),
    *([], [1], [1, 2], {}, {"a": 1, "b": 2}, {"b": 2, "a": 1}, {1: 1}, {True: 1}, Dict(a=1), Missing(a=1), ordered()),
    *(collections.OrderedDict(a=1, b=2), collections.defaultdict(int, a=1), collections.Counter("a"), {KEY: 1}),
    *({1, "a"}, {True, "a"}, {1}, set(), frozenset({1, "a"}), frozenset({1}), {Liar()}, {KEY}, {8, 0}, {0, 8}),
    *(range(3), range(0, 3, 1), range(0), range(1, 1), slice(1), slice(True), slice(None)),
    *(Liar(), Angry(), Loud(), Props(), Slots(), slotted(x=1), slotted(x=True), Box(), Box(x=1), Box(x=True), KEY),
    *(int, Box, Color, Color.RED, Color.BLUE, len, max, [].append, Box.__init__, lambda: 1, weakref.ref(KEY)),
    *(iter(()), iter((1,)), iter([1]), iter("a"), iter("\u20ac"), iter(range(2)), iter({1: 2}), collections.deque([1])),
    *(np.int64(1), np.float64(1.0), np.float64(math.nan), np.bool_(True), np.zeros(2)),
    *(torch.float32, torch.float64, torch.strided, torch.device("cpu"), torch.device("meta"), torch.preserve_format),
    *(T, torch.zeros(2, 3), torch.zeros(3, 2).t(), torch.zeros(2, 3, dtype=torch.float64), torch.zeros(2, 3, requires_grad=True)),
    *(torch.nn.Parameter(torch.zeros(2, 3)), torch.zeros(2, 3).as_subclass(MyTensor), torch.zeros(2, 3, device="meta")),
    *(torch.zeros(()), torch.zeros(2, 3).to_sparse(), torch.nn.Linear(2, 2), torch.nn.ReLU()),
]  # fmt: skip
MAKERS = [
    *(make_guard(X, method) for method in (B.TYPE_MATCH, B.ID_MATCH, B.EQUALS_MATCH, B.LENGTH, B.NAME_MATCH)),
    *(
        make_guard(X, method)
        for method in (B.FUNCTION_MATCH, B.WEAKREF_ALIVE, B.ITERATOR_LENGTH, B.DICT_KEYS)
    ),
    *(make_guard(X, method) for method in (B.SET_ITEMS, B.SET_ORDER, B.TENSOR_MATCH)),
    *(make_guard(X, B.HASATTR, name) for name in ("x", "y", "__dict__", "shape", "__name__")),
    make_guard(X, B.LACKS_MEMBERS, ("x", "training")),
    make_guard(X, B.EMPTY_MEMBERS, ("_forward_hooks", "_backward_hooks")),
    *(make_guard(X, B.DICT_CONTAINS, key) for key in ("a", 1, KEY, -0.0)),
    *(make_guard(X, B.SET_CONTAINS, key) for key in ("a", 1, KEY)),
    *(make_guard(AttrSource(X, name), B.EQUALS_MATCH) for name in ("x", "training", "__len__")),
    *(make_guard(ItemSource(X, key), B.EQUALS_MATCH) for key in (0, -1, 1, "a")),
    *(make_guard(DictItemSource(X, key), B.EQUALS_MATCH) for key in ("a", 1)),
    make_guard(DictItemSource(X, Ref.of(KEY)), B.EQUALS_MATCH),
    make_guard(DictKeySource(X, 0), B.EQUALS_MATCH),
    make_guard(SizeSource(X, 0), B.EQUALS_MATCH),
]


def function(x):
    return x


def test_every_guard_that_a_value_can_have_on_every_other_value(build, frame):
    """A fifth of the whole matrix; `check.run` raises when text, reference machine and native machine differ."""
    frames = [frame(function, x=value) for value in VALUES]
    made, used, fired = 0, set(), 0
    for value in VALUES:
        for guard in MAKERS:
            try:
                check, _, _ = build(function, [guard], options={"mode": "both"}, x=value)
            except (exc.InternalError, exc.Unsupported):
                continue  # this value has no such guard
            except Exception as error:
                assert type(value) is Loud or isinstance(error, RuntimeError), (guard, value)
                continue
            made += 1
            used |= {opcode for opcode, _, _ in check.program.code}
            fired += sum(not check.run(other) for other in frames[made % 5 :: 5])
    assert made > 450 and fired > 5_000
    names = {op.name for op in OPS.values() if op.opcode in used}
    assert {"CHECK_SET_ITEMS", "CHECK_SAME", "CHECK_TENSOR", "LOAD_DICT_ITEM", "CHECK_ITERATOR"} <= names


def test_attributes_that_come_and_go(build, frame):
    box = Box(x=1)
    check, values, _ = build(
        function, [make_guard(AttrSource(X, "x"), B.EQUALS_MATCH)], options={"mode": "both"}, x=box
    )
    assert check.run(values)
    del box.x
    assert not check.run(values)
    box.x = 1
    assert check.run(values)
    box.__dict__ = {"x": 2}
    assert not check.run(values)
    box.__dict__ = {"x": 1}
    assert check.run(values)
    Box.x = property(lambda self: 1)
    try:
        assert not check.run(values)
    finally:
        del Box.x
    assert check.run(values)
    slots = slotted(x=1)
    check, values, _ = build(
        function, [make_guard(AttrSource(X, "x"), B.EQUALS_MATCH)], options={"mode": "both"}, x=slots
    )
    del slots.x
    assert not check.run(values)


def test_text_is_compiled_when_somebody_asks(build, monkeypatch):
    check, values, _ = build(function, [make_guard(X, B.EQUALS_MATCH)], options={"mode": "native"}, x=2)
    assert isinstance(check.entry_point, GuardProgram) and check._fn is None and check._parts is None
    assert check(2, values.globals, None) and not check(3, values.globals, None)
    assert check._fn is None
    assert check.fn(2, values.globals, None) and check.source_text.endswith("x == 2")


def test_constants_of_refs_are_weak_unless_immutable():
    assert encode(Ref.of(len)) == (2, len)
    kind, ref = encode(Ref.of(KEY))
    assert kind == WEAK and ref() is KEY


def test_a_dead_object_invalidates(frame):
    box = Box()
    values = frame(function, x=box)
    validity = Validity()
    guards = [make_guard(X, B.ID_MATCH)]
    check = CheckFunctionManager(guards, values, function.__code__, validity, mode="both").compile_check_fn()
    assert check.run(values)
    other = frame(function, x=Box())
    assert not check.run(other)
    del box, values
    assert not validity.valid and not check.run(other)


@pytest.mark.parametrize("mode", ["native", "text", "both"])
def test_modes_end_to_end(mode):
    with config.patch(guards=mode):
        run = optimize("eager")(lambda x, n: x * n)
        assert run(torch.ones(2), 3).tolist() == [3, 3]
        assert run(torch.ones(2), 4).tolist() == [4, 4]
        assert run(torch.ones(3), 3).tolist() == [3, 3, 3]
        assert run(torch.ones(2), 3).tolist() == [3, 3]


def test_torchs_part_is_optional(build, monkeypatch):
    from minidynamo.guards import leaves

    monkeypatch.setattr(leaves, "native", None)
    monkeypatch.setattr(leaves, "native_helpers", {})
    check, values, _ = build(function, [make_guard(X, B.TENSOR_MATCH)], options={"mode": "both"}, x=T)
    assert check.program.in_python() == 1 and check.run(values)
    assert isinstance(check.entry_point, GuardProgram)
