"""The program means what the text means; its instructions come from one file."""

from __future__ import annotations

import random
import weakref

import pytest
import torch

from minidynamo import exc
from minidynamo.guards import program as machine
from minidynamo.guards.builder import GuardBuilder as B
from minidynamo.guards.guard import make_guard
from minidynamo.guards.lower import OPS, OPS_FILE, lower, read_ops, row_of
from minidynamo.guards.program import run_program
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
    ItemSource,
    KwDefaultSource,
    LocalSource,
    ModulesSource,
    SizeSource,
    StateSource,
    TypeSource,
    WeakRefSource,
)

X, Y = LocalSource("x"), LocalSource("y")


class Box:
    def __init__(self, **values):
        self.__dict__.update(values)


class Key:
    pass


class MyDict(dict):
    pass


KEY = Key()
factor = 2


def outer(k):
    def inner(x, y, z=None):
        return x, y, z, k

    return inner


def default(a=1, *, b=2):
    return a, b


def other_default(a=1, *, b=3):
    return a, b


def closed(n):
    return lambda: n


def values(rnd):
    """Random arguments, few enough that the recorded ones come up again."""
    pick = rnd.choice
    box = Box(items=[pick("aab"), pick([1.0, 1.0, 3])][: pick([2, 2, 1])], cfg=pick([None, None, 1]))
    if pick([0, 0, 0, 1]):
        del box.cfg
    if pick([0, 0, 0, 1]):
        box.extra = 1
    mapping = MyDict(a=pick([0.0, 0.0, -0.0]), b=pick([1, 1, True]))
    if pick([0, 0, 1]):
        mapping["c"] = 3
    mapping[KEY if pick([1, 1, 0]) else Key()] = 1
    fn = pick([default, default, other_default])
    x = pick([box, box, box, 5])
    z = pick([torch.zeros(2, 3)] * 6 + [torch.zeros(3, 3), torch.zeros(2, 3).double(), None, box])
    group = pick(
        [{1, "a", KEY}, {1, "a", KEY}, frozenset({1}), {True, "a", KEY}, {1, "a"}, [1], {1, "a", Key()}]
    )
    ref = weakref.ref(pick([KEY, KEY, Key]))
    left = iter(pick([(1, 2), (1, 2), [1, 2], (1,)]))
    more = (group, ref if rnd.random() < 0.8 else weakref.ref(Key()), left)
    return {"x": x, "y": (mapping, fn, closed(pick([1, 1, 2])), pick([len, len, max]), *more), "z": z}


def item(index, *path):
    source = ItemSource(Y, index)
    for step in path:
        source = step(source)
    return source


GUARDS = [
    make_guard(StateSource(), B.GLOBAL_STATE),
    make_guard(GlobalSource("factor"), B.EQUALS_MATCH),
    make_guard(BuiltinSource("len"), B.BUILTIN_MATCH),
    make_guard(ClosureSource("k", 0), B.EQUALS_MATCH),
    make_guard(X, B.TYPE_MATCH),
    make_guard(X, B.HASATTR, "extra"),
    make_guard(X, B.LACKS_MEMBERS, ("extra", "more")),
    make_guard(X, B.OWN_ATTRIBUTE, "extra"),
    make_guard(X, B.OWN_ATTRIBUTE, "cfg"),
    make_guard(AttrSource(X, "cfg"), B.PRESENT),
    make_guard(X, B.HASATTR, "cfg"),
    make_guard(AttrSource(X, "cfg"), B.CONSTANT_MATCH),
    make_guard(AttrSource(X, "items"), B.LIST_LENGTH),
    make_guard(ItemSource(AttrSource(X, "items"), 0), B.EQUALS_MATCH),
    make_guard(ItemSource(AttrSource(X, "items"), 1), B.EQUALS_MATCH),
    make_guard(ItemSource(AttrSource(X, "__dict__"), "items"), B.TYPE_MATCH),
    make_guard(TypeSource(X), B.ID_MATCH),
    make_guard(item(0), B.DICT_CONTAINS, "c"),
    make_guard(item(0), B.DICT_CONTAINS, KEY),
    make_guard(item(0), B.DICT_KEYS),
    make_guard(DictItemSource(item(0), "a"), B.EQUALS_MATCH),
    make_guard(ItemSource(item(0), "b"), B.EQUALS_MATCH),
    make_guard(DictKeySource(item(0), 1), B.EQUALS_MATCH),
    make_guard(item(1), B.FUNCTION_MATCH),
    make_guard(DefaultSource(item(1), 0), B.EQUALS_MATCH),
    make_guard(KwDefaultSource(item(1), "b"), B.EQUALS_MATCH),
    make_guard(CellSource(item(2), 0), B.EQUALS_MATCH),
    make_guard(item(3), B.BUILTIN_MATCH),
    make_guard(item(3), B.NAME_MATCH),
    make_guard(item(4), B.SET_CONTAINS, 1),
    make_guard(item(4), B.SET_CONTAINS, KEY),
    make_guard(item(4), B.SET_CONTAINS, "b"),
    make_guard(item(4), B.SET_ITEMS),
    make_guard(item(4), B.SET_ORDER),
    make_guard(item(5), B.WEAKREF_ALIVE),
    make_guard(WeakRefSource(item(5)), B.ID_MATCH),
    make_guard(item(6), B.ITERATOR_LENGTH),
    make_guard(ModulesSource(), B.DICT_CONTAINS, "no_such_module"),
    make_guard(CodeSource(item(1)), B.ID_MATCH),
    make_guard(X, B.DISTINCT, (X, Y), (item(0), item(1))),
    make_guard(X, B.NO_ALIAS, LocalSource("z")),
    make_guard(X, B.DISTINCT, (X, item(0)), (Y, LocalSource("z"))),
    make_guard(LocalSource("z"), B.TENSOR_MATCH),
    make_guard(SizeSource(LocalSource("z"), 0), B.SHAPE_ENV, "{0} < 5", SizeSource(LocalSource("z"), 0)),
]
RECORDED = {
    "x": Box(items=["a", 1.0], cfg=None),
    "y": (
        *(MyDict({"a": 0.0, "b": 1, KEY: 1}), default, closed(1), len),
        *({1, "a", KEY}, weakref.ref(KEY), iter((1, 2))),
    ),
    "z": torch.zeros(2, 3),
}


def test_text_and_program_agree_on_random_values(build, frame):
    """Each guard alone (all together would nearly always fail), and now and then all of them. `both` compares the native
    machine with the two."""
    fn = outer(7)
    rnd = random.Random(0)
    both = {"mode": "both"}
    made = [build(fn, [guard], options=both, **RECORDED)[0] for guard in GUARDS]
    made.append(build(fn, GUARDS, options=both, **RECORDED)[0])
    programs = [lower(check.rows, check.names) for check in made]
    verdicts = [set() for _ in made]
    for _ in range(200):
        candidate = frame(outer(rnd.choice([7, 7, 8])), **values(rnd))
        for check, program, seen in zip(made, programs, verdicts, strict=True):
            verdict = check.run(candidate)
            assert run_program(program, check, candidate) is verdict, check.source_text
            seen.add(verdict)
    both_ways = [seen == {True, False} for seen in verdicts]
    assert (
        sum(both_ways) >= len(GUARDS) - 8
    )  # some facts (global state, globals, sys.modules, ...) do not vary here
    used = {opcode for program in programs for opcode, _, _ in program.code}
    assert len(used) >= len(OPS) - 5


def test_state_and_aliases_agree(build, frame):
    fn = outer(7)
    a = [1]
    guards = [make_guard(X, B.DUPLICATE_INPUT, Y), make_guard(StateSource(), B.GLOBAL_STATE)]
    check, same, _ = build(fn, guards, x=a, y=a)
    program = lower(check.rows, check.names)
    assert run_program(program, check, same)
    with torch.no_grad():
        assert not run_program(program, check, same)
    different = frame(fn, x=a, y=[1])
    assert not run_program(program, check, different) and not check.run(different)


def test_weakref_and_code_paths(build):
    fn = outer(7)
    check, values, _ = build(fn, [make_guard(WeakRefSource(X), B.ID_MATCH)], x=weakref.ref(KEY))
    program = lower(check.rows, check.names)
    assert "LOAD_WEAKREF" in program.listing() and run_program(program, check, values)


def test_shared_paths_are_loaded_once(build):
    fn = outer(7)
    source = ItemSource(AttrSource(X, "_parameters"), "weight")
    guards = [
        make_guard(source, B.TENSOR_MATCH),
        make_guard(ItemSource(AttrSource(X, "_parameters"), "bias"), B.TENSOR_MATCH),
        make_guard(AttrSource(X, "training"), B.CONSTANT_MATCH),
        make_guard(LocalSource("z"), B.NO_ALIAS, X),
    ]
    check, _, _ = build(fn, guards, x=torch.nn.Linear(2, 3))
    program = lower(check.rows, check.names)
    lines = program.listing().splitlines()
    assert [line for line in lines if "LOAD" in line] == [
        "r0 = LOAD_LOCAL 0",
        "r1 = LOAD_MEMBER r0, '_parameters'",
        "r2 = LOAD_LOCAL 2",
        "r3 = LOAD_ATTR r0, 'training'",
        "r4 = LOAD_ITEM r1, 'weight'",
        "r5 = LOAD_ITEM r1, 'bias'",
    ]
    assert "CHECK_IS_NOT r2, 0" in lines and "CHECK_IS_CONST r3, True" in lines
    assert program.registers == 6
    assert len(program.checks) == len(check.rows)
    assert all(lines[index].startswith("CHECK_") for index in program.checks)


def test_what_the_program_lacks_is_the_same_text_and_comes_last(build):
    fn = outer(7)
    size = SizeSource(X, 0)
    guards = [make_guard(size, B.SHAPE_ENV, "{0} < 5", size), make_guard(Y, B.LIST_LENGTH)]
    check, _, _ = build(fn, guards, x=torch.zeros(3), y=[frozenset({1})])
    program = lower(check.rows, check.names)
    assert program.listing().splitlines()[-1] == "CHECK_PY '___holds(___size(x, 0) < 5)'"
    assert program.in_python() == 1
    assert [check.rows[row_of(program.checks, i)].kind for i in range(len(program.code))] == [
        *["TYPE_MATCH", "TYPE_MATCH"],
        *["LENGTH"],
        "SHAPE_ENV",
    ]


def test_the_table_and_the_reference_machine_have_the_same_instructions():
    names = [op.name for op in sorted(OPS.values(), key=lambda op: op.opcode)]
    assert names[0] == "LOAD_LOCAL" and names == list(OPS)
    tables = (machine._REGISTER_OPS, machine._FRAME_OPS, machine._PAIR_OPS)
    implemented = [name for table in tables for name in table]
    assert sorted(implemented) == sorted(names)
    for op in OPS.values():
        assert op.input in ("REG", "NONE") and (op.input == "REG") == (op.name not in machine._FRAME_OPS)
        assert op.operand in (
            "INDEX",
            "STR",
            "PTR",
            "CONST",
            "CONSTS",
            "REG",
            "SPEC",
            "TEXT",
            "REGS",
            "NAMES",
            "NONE",
        )
        assert op.doc


def test_a_row_that_cannot_be_read_is_an_error():
    text = OPS_FILE.read_text()
    assert len(read_ops(text)) == text.count("\nGUARD_OP(")
    with pytest.raises(exc.InternalError, match="cannot be read"):
        read_ops('GUARD_OP(A, REG, PTR, "x")\nGUARD_OP(B, REG, "forgot the operand")\n')


def test_both_runs_all_three_and_finds_a_difference(build, monkeypatch):
    fn = outer(7)
    check, values, validity = build(fn, [make_guard(X, B.EQUALS_MATCH)], options={"mode": "both"}, x=2)
    args = (2, None, None, values.globals, values.closure)
    assert check(*args) and not check(3, *args[1:])
    monkeypatch.setattr(machine, "disagreements", [])
    monkeypatch.setitem(machine._REGISTER_OPS, "CHECK_EQUAL", lambda value, constant: True)
    with pytest.raises(exc.InternalError, match="disagree: text False, program True, native False"):
        check(3, *args[1:])
    assert len(machine.disagreements) == 1
    validity.valid = False
    assert not check.fn(*args)
