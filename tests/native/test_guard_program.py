"""The guard machine on plain objects: what each instruction means, what is refused, who owns what, and re-entrance."""

from __future__ import annotations

import collections
import gc
import sys
import threading
import weakref

import pytest

from tests.native.conftest import C
from tests.native.programs import EQUAL, LITERAL, OBJECT, OPCODES, WEAK, program, weak


class Thing:
    """With an instance dictionary."""

    def method(self):
        return 1


class Slotted:
    __slots__ = ("a", "b", "__weakref__")


class Meta(type):
    flag = 5


class OfMeta(metaclass=Meta):
    own = 6


class Liar:
    """Equal to everything; hashes as told."""

    def __init__(self, hashed=0):
        self.hashed = hashed

    def __eq__(self, other):
        return True

    def __hash__(self):
        return self.hashed


class Angry(Liar):
    def __eq__(self, other):
        raise RuntimeError("no comparison")


class MyList(list):
    def __len__(self):
        return 99


class MyDict(dict):
    def __contains__(self, key):
        raise RuntimeError("not asked")

    def __missing__(self, key):
        return 1


ARG = ("LOAD_LOCAL", 0)
KEEP = Thing()


def thing(**values):
    made = Thing()
    made.__dict__.update(values)
    return made


def fn(a=1, *, b=2):
    return a, b


def closed(n):
    return lambda: n


def ordered(*keys):
    mapping = collections.OrderedDict.fromkeys(keys)
    if keys:
        mapping.move_to_end(keys[0])
    return mapping


def emptied():
    cell_holder = closed(1)
    cell = cell_holder.__closure__[0]
    del cell.cell_contents
    return cell_holder


HUGE = 10**5000


def marked():
    """With an attribute of its own."""


marked.mark = 1

# instruction(s) after "r0 = argument 0", values that hold, values that do not
MEANINGS = [
    ([("CHECK_TYPE_ID", 0, id(int))], [1, HUGE], [True, 1.0, "1", None, Liar()]),
    ([("CHECK_OBJ_ID", 0, id(KEEP))], [KEEP], [Thing(), None]),
    ([("CHECK_CODE_ID", 0, id(fn.__code__))], [fn], [closed(1), Thing, 1]),
    ([("CHECK_IS_CONST", 0, (LITERAL, None))], [None], [0, False, Liar()]),
    ([("CHECK_EQUAL", 0, (LITERAL, 1000))], [1000], [True, 1000.0, 1001, Liar(), Angry()]),
    ([("CHECK_EQUAL", 0, (LITERAL, HUGE))], [10**5000], [-HUGE, HUGE + 1, 0]),
    ([("CHECK_EQUAL", 0, (LITERAL, "key"))], ["".join(["k", "ey"])], ["Key", b"key", Liar()]),
    ([("CHECK_SAME", 0, (LITERAL, 0.0))], [0.0], [-0.0, 0, False, float("nan"), Liar()]),
    ([("CHECK_SAME", 0, (LITERAL, float("nan")))], [float("nan")], [-float("nan"), 0.0]),
    ([("CHECK_SAME", 0, (LITERAL, (1, (2.0, "a"))))], [(1, (2.0, "a"))], [(True, (2.0, "a")), (1, (2, "a")), (1,), [1]]),
    ([("CHECK_SAME", 0, (LITERAL, 1j))], [1j], [complex(-0.0, 1), 1]),
    ([("CHECK_SAME", 0, (EQUAL, 5))], [5], [5.0, True]),
    ([("CHECK_SAME", 0, (OBJECT, KEEP))], [KEEP], [Thing(), Liar()]),
    ([("CHECK_SAME", 0, weak(KEEP))], [KEEP], [Thing(), Liar(), None]),
    ([("CHECK_LENGTH", 0, 2)], [[1, 2], MyList([1, 2]), "ab", b"ab", {1, 2}, range(2), {1: 1, 2: 2},
                                collections.deque([1, 2]), frozenset("ab"), bytearray(2)], [[1], 2, Thing(), None]),
    ([("CHECK_ATTR", 0, "x")], [thing(x=1)], [thing(), 1]),
    ([("CHECK_ATTR", 0, "flag")], [OfMeta], [Thing, OfMeta()]),
    ([("CHECK_ATTR", 0, "a")], [], [Slotted()]),
    ([("CHECK_NO_ATTR", 0, "x")], [thing(), 1, Slotted()], [thing(x=1)]),
    ([("LOAD_ATTR", 0, "x"), ("CHECK_PRESENT", 1)], [thing(x=None)], [thing(), 1]),
    ([("CHECK_OWN", 0, "x")], [thing(x=1)], [thing(), Thing, 1, Slotted()]),
    ([("CHECK_OWN", 0, "mark")], [marked], [closed(1), len]),
    ([("CHECK_NO_OWN", 0, "method")], [Thing(), Thing, 1, Slotted(), closed(1)], [thing(method=1)]),
    ([("CHECK_LACKS", 0, ("x", "y"))], [thing(), thing(z=1)], [thing(x=1), thing(y=1, z=2), 1, Slotted()]),
    ([("CHECK_EMPTY", 0, ("x", "y"))], [thing(x=ordered(), y=ordered())],
     [thing(x=ordered()), thing(x=ordered(), y=ordered(1)), thing(x={}, y=ordered()), 1, Slotted()]),
    ([("CHECK_KEY", 0, (LITERAL, "k"))], [{"k": 1}, MyDict(k=1)], [{}, ["k"], MyDict()]),
    ([("CHECK_KEY", 0, weak(KEEP))], [{KEEP: 1}], [{Thing(): 1}]),
    ([("CHECK_NO_KEY", 0, (LITERAL, "k"))], [{}, MyDict()], [{"k": 1}, ["x"]]),
    ([("CHECK_DICT_KEYS", 0, ((LITERAL, 1), (LITERAL, "b")))], [{1: 0, "b": 0}, MyDict({1: 0, "b": 0}), ordered("b", 1)],
     [{"b": 0, 1: 0}, {True: 0, "b": 0}, {1: 0}, ordered(1, "b"), 5]),
    ([("CHECK_SET_HAS", 0, (LITERAL, 1))], [{1}, frozenset({1, 2})], [{2}, [1], 1]),
    ([("CHECK_SET_LACKS", 0, (LITERAL, 1))], [{2}, [1]], [{1}]),
    ([("CHECK_SET_ITEMS", 0, ((LITERAL, 1), weak(KEEP)))], [{KEEP, 1}], [{KEEP, True}, {1}, {1, Thing()}, {1, Liar(1)}]),
    ([("CHECK_SET_ORDER", 0, ((LITERAL, 0), (LITERAL, 1)))], [{1, 0}], [{0, 2}, {0}, (0, 1)]),
    ([("CHECK_WEAKREF", 0)], [weakref.ref(KEEP)], [weakref.ref(Thing()), KEEP]),
    ([("CHECK_ITERATOR", 0, 2)], [iter((1, 2)), iter([1, 2]), iter(range(2)), iter("ab")], [iter((1,)), [1, 2], iter({1, 2})]),
    ([("CHECK_PY", lambda a, g, c: a == 3)], [3], [4]),
    # loads: what is loaded is compared
    ([("LOAD_ATTR", 0, "x"), ("CHECK_EQUAL", 1, (LITERAL, 7))], [thing(x=7)], [thing(x=8), thing(), 7]),
    ([("LOAD_ATTR", 0, "method"), ("CHECK_OBJ_ID", 1, id(Thing.method))], [Thing()], [thing(method=1), 1]),
    ([("LOAD_ATTR", 0, "flag"), ("CHECK_EQUAL", 1, (LITERAL, 5))], [OfMeta], [OfMeta()]),
    ([("LOAD_ATTR", 0, "own"), ("CHECK_EQUAL", 1, (LITERAL, 6))], [OfMeta, OfMeta()], [Thing]),
    ([("LOAD_ATTR", 0, "__name__"), ("CHECK_EQUAL", 1, (LITERAL, "Thing"))], [Thing], [thing(), marked, OfMeta, int]),
    ([("LOAD_ATTR", 0, "__module__"), ("CHECK_EQUAL", 1, (LITERAL, __name__))], [Thing, OfMeta, marked], [int]),
    ([("LOAD_ATTR", 0, "__defaults__"), ("CHECK_LENGTH", 1, 1)], [fn], [closed(1), len]),
    ([("LOAD_MEMBER", 0, "__dict__"), ("CHECK_KEY", 1, (LITERAL, "x"))], [thing(x=1)], [thing()]),
    ([("LOAD_ITEM", 0, (LITERAL, 1)), ("CHECK_EQUAL", 1, (LITERAL, 7))],
     [[0, 7], (0, 7), {1: 7}], [[7], (7,), {}, [0, 8], {True: 8}, 5]),
    ([("LOAD_ITEM", 0, (LITERAL, -1)), ("CHECK_EQUAL", 1, (LITERAL, 7))], [[0, 7], (7,), {-1: 7}], [[7, 0]]),
    ([("LOAD_ITEM", 0, (LITERAL, "k")), ("CHECK_EQUAL", 1, (LITERAL, 7))], [{"k": 7}], [{"k": 8}, {}]),
    ([("LOAD_ITEM", 0, (LITERAL, 1)), ("CHECK_EQUAL", 1, (LITERAL, "b"))], ["abc"], ["acc"]),
    ([("LOAD_ITEM", 0, (LITERAL, [])), ("CHECK_EQUAL", 1, (LITERAL, 7))], [], [{}, {1: 7}]),
    ([("LOAD_DICT_ITEM", 0, weak(KEEP)), ("CHECK_EQUAL", 1, (LITERAL, 7))], [{KEEP: 7}, MyDict({KEEP: 7})], [{}, MyDict(), []]),
    ([("LOAD_DICT_KEY", 0, 1), ("CHECK_EQUAL", 1, (LITERAL, "b"))], [{1: 0, "b": 0}, ordered("b", 1)], [{"b": 0}, ordered(1, "b"), []]),
    ([("LOAD_TYPE", 0), ("CHECK_OBJ_ID", 1, id(Thing))], [Thing()], [Thing, 1]),
    ([("LOAD_WEAKREF", 0), ("CHECK_OBJ_ID", 1, id(KEEP))], [weakref.ref(KEEP)], [weakref.ref(Thing), KEEP]),
    ([("LOAD_CODE", 0), ("CHECK_OBJ_ID", 1, id(fn.__code__))], [fn], [closed(1), 5]),
    ([("LOAD_DEFAULT", 0, 0), ("CHECK_EQUAL", 1, (LITERAL, 1))], [fn], [closed(1), len]),
    ([("LOAD_KWDEFAULT", 0, "b"), ("CHECK_EQUAL", 1, (LITERAL, 2))], [fn], [closed(1), len]),
    ([("LOAD_CELL", 0, 0), ("CHECK_EQUAL", 1, (LITERAL, 1))], [closed(1)], [closed(2), fn, emptied()]),
    ([ARG, ("CHECK_IS", 0, 1)], [1], []),
    ([ARG, ("CHECK_IS_NOT", 0, 1)], [], [1]),
    ([("LOAD_TYPE", 0), ("CHECK_DISTINCT", (2, 0, 1))], [1], [type]),
]  # fmt: skip


@pytest.mark.parametrize(
    "code, holding, failing", MEANINGS, ids=["-".join(ins[0] for ins in row[0]) for row in MEANINGS]
)
def test_meanings(code, holding, failing):
    guards = program(ARG, *code)
    for value in holding:
        assert guards(value, {}, None) is True, value
        assert guards.failed(value, {}, None) == -1
    for value in failing:
        assert not verdict(guards, value, {}, None), value
        assert 0 < guards.failed(value, {}, None) <= len(code)


def verdict(guards, *args):
    """A guard that raises is a failed guard."""
    try:
        return guards(*args)
    except Exception:
        return False


def test_each_instruction_has_a_row_above_or_below():
    tested = {ins[0] for code, _, _ in MEANINGS for ins in code}
    elsewhere = {
        "LOAD_GLOBALS",
        "LOAD_GLOBAL",
        "LOAD_BUILTIN",
        "LOAD_MODULES",
        "LOAD_CLOSURE",
        "CHECK_NO_GLOBAL",
    }
    assert tested | elsewhere | {"LOAD_LOCAL", "CHECK_TENSOR", "CHECK_STATE"} == set(OPCODES)


def test_globals_builtins_modules_closure():
    guards = program(
        ("LOAD_GLOBAL", "g"),
        ("CHECK_EQUAL", 0, (LITERAL, 1)),
        ("CHECK_NO_GLOBAL", "len"),
        ("LOAD_BUILTIN", "len"),
        ("CHECK_OBJ_ID", 1, id(len)),
        ("LOAD_MODULES",),
        ("CHECK_KEY", 2, (LITERAL, "sys")),
        ("LOAD_CLOSURE", 0),
        ("CHECK_EQUAL", 3, (LITERAL, 5)),
        ("LOAD_GLOBALS",),
        ("CHECK_KEY", 4, (LITERAL, "g")),
        arguments=0,
        builtins=vars(__import__("builtins")),
    )
    assert guards({"g": 1}, closed(5).__closure__)
    assert guards.failed({"g": 2}, closed(5).__closure__) == 1
    assert guards.failed({}, closed(5).__closure__) == 0
    assert guards.failed({"g": 1, "len": 1}, closed(5).__closure__) == 2
    assert guards.failed({"g": 1}, None) == 7
    assert guards.failed({"g": 1}, emptied().__closure__) == 7
    assert guards.failed({"g": 1}, closed(6).__closure__) == 8


def test_many_registers_and_many_distinct_objects():
    items = [Thing() for _ in range(300)]
    loads = [("LOAD_ITEM", 0, (LITERAL, i)) for i in range(300)]
    guards = program(ARG, *loads, ("CHECK_DISTINCT", (200, *range(1, 301))))
    assert guards(items, {}, None)
    for i, j in ((0, 1), (0, 299), (199, 250), (5, 199)):
        shared = list(items)
        shared[i] = shared[j]
        assert not guards(shared, {}, None)
    shared = list(items)
    shared[250] = shared[260]
    assert guards(shared, {}, None)  # those may be the same


@pytest.mark.parametrize(
    "code, arguments, message",
    [
        ((5,), 1, "tuple .opcode, register, operand"),
        (((999, -1, None),), 1, "no opcode 999"),
        (((OPCODES["LOAD_LOCAL"], -1, 1),), 1, "no such argument"),
        (((OPCODES["LOAD_LOCAL"], -1, -1),), 1, "non-negative"),
        (((OPCODES["CHECK_TYPE_ID"], 0, 1),), 1, "used before it is loaded"),
        (((OPCODES["LOAD_LOCAL"], -1, 0), (OPCODES["CHECK_IS"], 0, 1)), 1, "used before it is loaded"),
        (((OPCODES["LOAD_LOCAL"], -1, 0), (OPCODES["CHECK_EQUAL"], 0, 5)), 1, "tuple .kind, object"),
        (((OPCODES["LOAD_LOCAL"], -1, 0), (OPCODES["CHECK_EQUAL"], 0, (WEAK, 5))), 1, "weakref.ref"),
        (((OPCODES["LOAD_LOCAL"], -1, 0), (OPCODES["CHECK_EQUAL"], 0, (9, 5))), 1, "no such kind"),
        (((OPCODES["LOAD_LOCAL"], -1, 0), (OPCODES["CHECK_DICT_KEYS"], 0, 5)), 1, "tuple of constants"),
        (((OPCODES["LOAD_LOCAL"], -1, 0), (OPCODES["CHECK_DICT_KEYS"], 0, ((0, 1), 5))), 1, "tuple .kind"),
        (((OPCODES["CHECK_DISTINCT"], -1, ()),), 1, "count, register"),
        (((OPCODES["CHECK_DISTINCT"], -1, (0, 3)),), 1, "used before it is loaded"),
        (((OPCODES["CHECK_NO_GLOBAL"], -1, 5),), 1, "a str is needed"),
        (((OPCODES["CHECK_PY"], -1, "text"),), 1, "compiled text is needed"),
    ],
)
def test_malformed_programs_are_refused(code, arguments, message):
    with pytest.raises(ValueError, match=message):
        C.GuardProgram(code, arguments)


def test_arguments_of_calls_and_of_the_constructor():
    guards = program(arguments=2)
    assert guards(1, 2, {}, None) and (guards.arguments, guards.registers, guards.instructions) == (2, 0, 0)
    with pytest.raises(TypeError, match=r"takes 2 argument\(s\), globals and closure"):
        guards(1, {}, None)
    with pytest.raises(TypeError, match="no keyword"):
        guards(1, 2, {}, closure=None)
    for options in ({"builtins": 5}, {"validity": 5}, {"witness": 5}):
        with pytest.raises(TypeError, match="GuardProgram"):
            program(**options)
    validity = C.Validity()
    guards = program(validity=validity)
    assert guards(1, {}, None)
    validity.valid = False
    assert not guards(1, {}, None)


def test_what_a_guard_raises_the_call_raises_and_an_entry_counts_as_failed(kit):
    def angry(a, *_):
        raise KeyError("flag")

    guards = program(("CHECK_PY", angry))
    with pytest.raises(KeyError, match="flag"):
        guards(1, {}, None)
    f = kit.define("def f(a): return 'plain'")
    entry = kit.add(f, kit.define("def f(a): return 'new'"), guards)
    assert kit.optimized(f)(1) == "plain" and entry.last_error == "KeyError: 'flag'"
    guards = program(ARG, ("LOAD_ITEM", 0, (LITERAL, "k")), ("CHECK_IS_CONST", 1, (LITERAL, None)))
    entry = kit.add(f, kit.define("def f(a): return 'new'"), guards)
    assert kit.optimized(f)({"k": None}) == "new"
    assert kit.optimized(f)({}) == "plain" and entry.last_error is None
    assert kit.optimized(f)("x") == "plain" and entry.last_error.startswith("TypeError: ")


def test_an_interrupt_in_a_guard_is_no_failure(kit):
    def interrupt(*_):
        raise KeyboardInterrupt

    f = kit.define("def f(a): return 'plain'")
    kit.add(f, kit.define("def f(a): return 'new'"), program(("CHECK_PY", interrupt)))
    with pytest.raises(KeyboardInterrupt):
        kit.optimized(f)(1)


def test_an_entry_takes_programs_for_its_own_arguments_only(kit):
    f = kit.define("def f(a, b=1): return 'plain'")
    with pytest.raises(ValueError, match="takes 1 flat arguments, the code has 2"):
        kit.add(f, kit.define("def f(a, b=1): return 'new'"), program())


def test_the_cache_runs_it_on_the_arguments_of_the_call(kit):
    f = kit.define("def f(a, *, b, **rest): return 'plain'")
    guards = program(
        ("LOAD_LOCAL", 1),
        ("CHECK_EQUAL", 0, (LITERAL, 2)),
        ("LOAD_LOCAL", 2),
        ("CHECK_KEY", 1, (LITERAL, "c")),
        ("LOAD_GLOBAL", "__name__"),
        ("CHECK_EQUAL", 2, (LITERAL, "user_module")),
        arguments=3,
    )
    kit.add(f, kit.define("def f(a, *, b, **rest): return 'new'"), guards)
    run = kit.optimized(f)
    assert run(1, b=2, c=3) == "new" == kit.hooked(f, 1, b=2, c=3)
    assert run(1, b=3, c=3) == "plain" == kit.hooked(f, 1, b=2)
    assert kit.counted("guards", "guards_python", "guard_errors") == (4, 0, 0)


def test_nothing_is_captured_while_a_guard_runs(kit):
    inner = kit.define("def inner(a): return 'plain'")
    kit.add(inner, kit.define("def inner(a): return 'new'"))
    run_inner, seen = kit.optimized(inner), []
    f = kit.define("def f(a): return 'plain'")
    guards = program(("CHECK_PY", lambda a, *_: seen.append(run_inner(a)) is None))
    kit.add(f, kit.define("def f(a): return 'new'"), guards)
    assert kit.optimized(f)(1) == "new" and seen == ["plain"]
    assert run_inner(1) == "new"


def test_the_witness_is_told_each_verdict():
    told = []

    def witness(verdict, *args):
        told.append((verdict, args))

    guards = program(ARG, ("CHECK_TYPE_ID", 0, id(int)), witness=witness)
    assert guards(1, {}, None) and not guards("a", {}, None)
    assert told == [(True, (1, {}, None)), (False, ("a", {}, None))]

    def liar(*args):
        raise RuntimeError("they differ")

    with pytest.raises(RuntimeError, match="differ"):
        program(ARG, ("CHECK_TYPE_ID", 0, id(int)), witness=liar)(1, {}, None)


def test_dead_weak_constants_equal_nothing():
    key = Thing()
    mapping = {key: 1}
    guards = program(ARG, ("CHECK_KEY", 0, weak(key)))
    lacks = program(ARG, ("CHECK_NO_KEY", 0, weak(key)))
    assert guards(mapping, {}, None) and not lacks(mapping, {}, None)
    mapping.clear()
    assert lacks(mapping, {}, None)
    del key
    gc.collect()
    assert not guards(mapping, {}, None) and not lacks(mapping, {}, None)


def everything():
    """A program with every kind of operand, and arguments that it holds on."""
    guards = program(
        ARG,
        ("LOAD_ATTR", 0, "x"),
        ("CHECK_SAME", 1, (LITERAL, ("a", 1.5))),
        ("LOAD_ATTR", 0, "d"),
        ("CHECK_DICT_KEYS", 2, ((LITERAL, "k"), weak(KEEP))),
        ("LOAD_ITEM", 2, weak(KEEP)),
        ("CHECK_IS_NOT", 3, 0),
        ("CHECK_DISTINCT", (2, 0, 1, 2)),
        ("LOAD_ATTR", 0, "method"),
        ("LOAD_DICT_KEY", 2, 0),
        ("LOAD_ATTR", 0, "s"),
        ("CHECK_SET_ITEMS", 6, ((LITERAL, "a"), (LITERAL, "b"))),
        ("CHECK_PY", lambda a, g, c: True),
        builtins={},
        witness=lambda verdict, *_: None,
    )
    return guards, thing(x=("a", 1.5), d={"k": 1, KEEP: 2}, s={"a", "b"})


def test_references_are_given_back():
    guards, arg = everything()
    assert guards(arg, {}, None)
    watched = [arg, arg.x, arg.d, KEEP, Thing.method, None, "k", arg.s]
    before = [sys.getrefcount(obj) for obj in watched]
    for _ in range(200):
        guards(arg, {}, None)
        guards(5, {}, None)
        guards.failed(thing(x=1), {}, None)
    now = [sys.getrefcount(obj) for obj in watched]
    assert all(abs(a - b) < 50 for a, b in zip(before, now))


def test_a_program_dies_with_what_it_holds():
    class Big(str):
        """A constant that can be watched."""

    constant, called = Big("k"), Thing()
    guards = program(ARG, ("CHECK_SAME", 0, (OBJECT, constant)), ("CHECK_PY", called.method))
    refs = [weakref.ref(constant), weakref.ref(called)]
    del constant, called
    assert all(ref() is not None for ref in refs)
    del guards
    assert all(ref() is None for ref in refs)


def test_a_cycle_through_a_program_is_collected():
    def make():
        def guard(a, *_):
            return guard.program is not None

        guard.program = program(("CHECK_PY", guard))
        assert guard.program(1, {}, None)
        return weakref.ref(guard)

    ref = make()
    gc.collect()
    assert ref() is None


RESET = """
import gc
from tests.native.programs import program, LITERAL
from tests.native.conftest import Guarded, define
ctx = C.OptimizeContext(C.CompileKey("reset"))
class Thing: pass
def rounds(call):
    f = define("def f(a): return 'plain'")
    def guard(a, *_):
        C.reset_code(f.__code__)
        a.d.clear()
        a.d = None
        gc.collect()
        junk = [bytearray(200) for _ in range(50)]
        return answer
    for answer in (True, False) * 3:
        guards = program(("LOAD_LOCAL", 0), ("LOAD_ATTR", 0, "d"), ("LOAD_ITEM", 1, (LITERAL, "k")),
                         ("CHECK_LENGTH", 2, 3), ("CHECK_PY", guard))
        C.add_entry(f.__code__, ctx, Guarded(define("def f(a): return 'new'").__code__, guards))
        del guards
        a = Thing()
        a.d = {"k": [1, 2, 3]}
        assert call(f, a) == "plain"  # the entry is out, whatever its guard says
        assert C.cache_entries(f.__code__) == []
def hooked(f, a):
    before = C.swap_active(ctx)
    try:
        return f(a)
    finally:
        C.swap_active(before)
rounds(lambda f, a: C.OptimizedFunction(f, ctx)(a))
rounds(hooked)
"""


@pytest.mark.parametrize("malloc", ["debug", "malloc_debug"])
def test_a_guard_that_resets_its_own_code(python, malloc):
    python(RESET, PYTHONMALLOC=malloc)


def test_threads_run_one_program(kit):
    """Guards in Python let other threads run in the middle of a program."""
    guards = program(
        ARG,
        ("LOAD_ATTR", 0, "d"),
        ("LOAD_ITEM", 1, (LITERAL, "k")),
        ("CHECK_LENGTH", 2, 2),
        ("CHECK_PY", lambda a, *_: sum(range(50)) > 0),
        ("CHECK_PY", lambda a, *_: a.d["k"] is not None),
    )
    f = kit.define("def f(a): return 'plain'")
    kit.add(f, kit.define("def f(a): return 'new'"), guards)
    run, wrong = kit.optimized(f), []

    def work(good):
        for _ in range(300):
            arg = thing(d={"k": [1, 2] if good else [1]})
            if run(arg) != ("new" if good else "plain"):
                wrong.append(good)

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        threads = [threading.Thread(target=work, args=(i % 2 == 0,)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(before)
    assert wrong == []
