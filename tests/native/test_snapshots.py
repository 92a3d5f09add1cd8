"""State that rarely changes is not read at each run, and every change of it is seen all the same. The oracle of each verdict is
a program that has never run before."""

from __future__ import annotations

import collections
import gc
import random
import sys
import types

import pytest

from tests.native.conftest import C
from tests.native.programs import LITERAL, OBJECT, instructions, program

NAME = "user_module_of_snapshots"


class Slotted:
    __slots__ = ("tag",)


class Base:
    kind = "base"

    def method(self):
        return 1


class Leaf(Base):
    limit = 5


class Other(Base):
    limit = 5


def helper(a=1000, *, b=2000):
    return a, b


def other_helper(a=1000, *, b=2000):
    return a, b, 1


def closing(value):
    def inner():
        return value

    return inner


class World:
    """What the guards below are about; `root` is the argument, `module` has the globals."""

    def __init__(self):
        self.classes = [type("Leaf", (Leaf,), {"level": 3}), type("Root", (Base,), {"level": 4})]
        leaf, root = self.classes
        self.module = types.ModuleType(NAME)
        self.globals = vars(self.module)
        self.globals.update(
            SCALE=1234, helper=types.FunctionType(helper.__code__, globals(), "helper", (1000,))
        )
        self.globals["helper"].__kwdefaults__ = {"b": 2000}
        self.cell = closing(4321)
        self.closure = self.cell.__closure__
        self.root = root()
        self.root.__dict__.update(
            name="r", size=5678, rate=0.25, hooks=collections.OrderedDict(), items=[1, 2]
        )
        self.root.__dict__["parts"] = {"a": leaf(), "b": leaf()}
        self.root.__dict__["shape"] = (1, 2)
        for part in self.root.parts.values():
            part.__dict__.update(weight=object(), hooks=collections.OrderedDict(), size=77777)
        self.root.__dict__["fn"] = closing(999)
        self.root.__dict__["nested"] = closing(closing(555))
        self.slotted = Slotted()
        self.slotted.tag = 31337
        self.root.__dict__["slotted"] = self.slotted
        self.code = self.guards()
        self.program = program(*self.code, arguments=1)

    def guards(self):
        """Loads and checks of everything above, registers by name."""
        registers, code = {}, []

        def load(name, *ins):
            code.append((ins[0], *(registers.get(x, x) if i == 0 and isinstance(x, str) and x in registers else x
                                   for i, x in enumerate(ins[1:]))))  # fmt: skip
            registers[name] = len(registers)

        def check(op, register, *operand):
            code.append((op, registers[register], *operand))

        def equal(name, value):
            check("CHECK_TYPE_ID", name, id(type(value)))
            check("CHECK_SAME", name, (LITERAL, value))

        load("root", "LOAD_LOCAL", 0)
        check("CHECK_TYPE_ID", "root", id(self.classes[1]))
        load("type", "LOAD_TYPE", "root")
        load("level", "LOAD_ATTR", "type", "level")
        equal("level", 4)
        load("kind", "LOAD_ATTR", "root", "kind")
        equal("kind", "base")
        load("method", "LOAD_ATTR", "type", "method")
        check("CHECK_CODE_ID", "method", id(Base.method.__code__))
        for name, value in (("name", "r"), ("size", 5678), ("rate", 0.25), ("shape", (1, 2))):
            load(name, "LOAD_ATTR", "root", name)
            equal(name, value)
        check("CHECK_NO_ATTR", "root", "extra")
        check("CHECK_ATTR", "root", "method")
        load("dict", "LOAD_MEMBER", "root", "__dict__")
        check("CHECK_NO_KEY", "dict", (LITERAL, "forward"))
        check("CHECK_KEY", "dict", (LITERAL, "name"))
        load("hooks", "LOAD_ATTR", "root", "hooks")
        check("CHECK_LENGTH", "hooks", 0)
        load("items", "LOAD_ATTR", "root", "items")
        check("CHECK_LENGTH", "items", 2)
        load("first", "LOAD_ITEM", "items", (LITERAL, 0))
        equal("first", 1)
        load("parts", "LOAD_ATTR", "root", "parts")
        check("CHECK_TYPE_ID", "parts", id(dict))
        check("CHECK_DICT_KEYS", "parts", ((LITERAL, "a"), (LITERAL, "b")))
        load("key", "LOAD_DICT_KEY", "parts", 1)
        equal("key", "b")
        for name in ("a", "b"):
            load(name, "LOAD_ITEM", "parts", (LITERAL, name))
            check("CHECK_TYPE_ID", name, id(self.classes[0]))
            load(name + "limit", "LOAD_ATTR", name, "limit")
            equal(name + "limit", 5)
            load(name + "size", "LOAD_ATTR", name, "size")
            equal(name + "size", 77777)
            load(name + "hooks", "LOAD_ATTR", name, "hooks")
            check("CHECK_LENGTH", name + "hooks", 0)
            load(name + "weight", "LOAD_ATTR", name, "weight")
            check("CHECK_IS_NOT", name + "weight", 0)
        load("slotted", "LOAD_ATTR", "root", "slotted")
        load("tag", "LOAD_ATTR", "slotted", "tag")
        equal("tag", 31337)
        load("fn", "LOAD_ATTR", "root", "fn")
        check("CHECK_TYPE_ID", "fn", id(types.FunctionType))
        load("content", "LOAD_CELL", "fn", 0)
        equal("content", 999)
        load("nested", "LOAD_ATTR", "root", "nested")
        load("inside", "LOAD_CELL", "nested", 0)
        check("CHECK_CODE_ID", "inside", id(self.root.nested.__code__))
        load("inside it", "LOAD_CELL", "inside", 0)
        equal("inside it", 555)
        code.append(("LOAD_GLOBAL", "SCALE"))
        registers["SCALE"] = len(registers)
        equal("SCALE", 1234)
        code.append(("CHECK_NO_GLOBAL", "len"))
        code.append(("LOAD_GLOBAL", "helper"))
        registers["helper"] = len(registers)
        check("CHECK_CODE_ID", "helper", id(helper.__code__))
        load("default", "LOAD_DEFAULT", "helper", 0)
        equal("default", 1000)
        load("kwdefault", "LOAD_KWDEFAULT", "helper", "b")
        equal("kwdefault", 2000)
        load("helper's name", "LOAD_ATTR", "helper", "__name__")
        equal("helper's name", "helper")
        load("defaults", "LOAD_ATTR", "helper", "__defaults__")
        check("CHECK_LENGTH", "defaults", 1)
        check("CHECK_NO_OWN", "helper", "mark")
        check("CHECK_NO_OWN", "root", "mark")
        check("CHECK_OWN", "root", "size")
        for name, value in (("__name__", "Root"), ("__qualname__", "Root"), ("__module__", __name__)):
            load(name, "LOAD_ATTR", "type", name)
            equal(name, value)
        load("space", "LOAD_MEMBER", "helper", "__globals__")
        check("CHECK_OBJ_ID", "space", id(globals()))
        code.append(("LOAD_CLOSURE", 0))
        registers["free"] = len(registers)
        equal("free", 4321)
        self.registers = registers
        return code

    def args(self):
        return self.root, self.globals, self.closure

    def verdict(self):
        return self.program(*self.args())

    def truth(self):
        return program(*self.code, arguments=1)(*self.args())

    def settled(self):
        """Runs until a snapshot answers."""
        for _ in range(200):
            before = C.stats()["guards_remembered"]
            assert self.verdict()
            if C.stats()["guards_remembered"] > before:
                return
        raise AssertionError("no snapshot")

    def check(self):
        assert verdict(self.verdict) == verdict(self.truth)


def verdict(call):
    try:
        return call()
    except Exception:
        return False


def inside(world):
    return world.root.nested.__closure__[0].cell_contents


# name -> (mutation, the verdict afterwards)
MUTATIONS = {
    "store an attribute": (lambda w: setattr(w.root, "size", 1), False),
    "store an equal attribute": (lambda w: setattr(w.root, "size", int("5678")), True),
    "store an attribute that is not read": (lambda w: setattr(w.root, "unread", 1), True),
    "store through vars()": (lambda w: vars(w.root).__setitem__("rate", 0.5), False),
    "update": (lambda w: vars(w.root).update(name="s"), False),
    "delete": (lambda w: delattr(w.root, "name"), False),
    "an attribute that was absent": (lambda w: setattr(w.root, "extra", 1), False),
    "a key that was absent": (lambda w: w.root.__dict__.__setitem__("forward", 1), False),
    "an attribute that was absent and that its like has": (
        lambda w: (setattr(w.twin(), "extra", 1), setattr(w.root, "extra", 1)),
        False,
    ),
    "an attribute that was absent and that only its like has": (
        lambda w: setattr(w.twin(), "extra", 1),
        True,
    ),
    "an attribute that was absent for one that was not read": (
        lambda w: (setattr(w.root, "unread", 1), delattr(w.root, "unread"), setattr(w.root, "extra", 1)),
        False,
    ),
    "an attribute deleted and stored again": (
        lambda w: (delattr(w.root, "name"), setattr(w.root, "name", "r")),
        True,
    ),
    "attributes cleared": (lambda w: vars(w.root).clear(), False),
    "attributes popped": (lambda w: [vars(w.root).popitem() for _ in list(vars(w.root))], False),
    "attributes merged": (lambda w: vars(w.root).__ior__({"size": 1}), False),
    "an attribute by setdefault": (lambda w: vars(w.root).setdefault("extra", 1), False),
    "a key that is no str": (lambda w: vars(w.root).update({1: 2}), True),
    "more attributes than lie in an object": (
        lambda w: [setattr(w.root, f"more_{i}", i) for i in range(40)],
        True,
    ),
    "an attribute that was absent, after more than lie in an object": (
        lambda w: [
            setattr(w.root, name, i) for i, name in enumerate([*(f"more_{i}" for i in range(40)), "extra"])
        ],
        False,
    ),
    "shadow a class attribute": (lambda w: setattr(w.root, "kind", "mine"), False),
    "another __dict__": (lambda w: setattr(w.root, "__dict__", {"size": 1}), False),
    "an equal __dict__": (lambda w: setattr(w.root, "__dict__", dict(w.root.__dict__)), True),
    "another __class__": (lambda w: setattr(w.root, "__class__", Other), False),
    "another __class__ of a part": (lambda w: setattr(w.root.parts["b"], "__class__", Other), False),
    "a part replaced by its like": (lambda w: w.root.parts.update(a=w.part()), True),
    "a part replaced by another": (lambda w: w.root.parts.update(a=Other()), False),
    "a part more": (lambda w: w.root.parts.update(c=w.part()), False),
    "a part less": (lambda w: w.root.parts.pop("b"), False),
    "parts in another order": (lambda w: w.root.parts.update(a=w.root.parts.pop("a")), False),
    "parts cleared": (lambda w: w.root.parts.clear(), False),
    "an attribute of a part": (lambda w: setattr(w.root.parts["b"], "size", 3), False),
    "a hook": (lambda w: w.root.hooks.update(x=1), False),
    "a hook of a part": (lambda w: w.root.parts["a"].hooks.update(x=1), False),
    "a list appended to": (lambda w: w.root.items.append(3), False),
    "a list changed in place": (lambda w: w.root.items.__setitem__(0, 7), False),
    "a list changed where nobody looks": (lambda w: w.root.items.__setitem__(1, 7), True),
    "a slot": (lambda w: setattr(w.slotted, "tag", 1), False),
    "a slot emptied": (lambda w: delattr(w.slotted, "tag"), False),
    "a class attribute": (lambda w: setattr(w.classes[1], "level", 9), False),
    "a class attribute of a base": (lambda w: setattr(w.classes[0], "limit", 9), False),
    "a class attribute deleted": (lambda w: delattr(w.classes[1], "level"), False),
    "an attribute of the class that hides the instance's": (
        lambda w: setattr(w.classes[1], "size", property(lambda self: 5678)),
        False,
    ),
    "a class attribute that nobody reads": (lambda w: setattr(w.classes[1], "unread", 9), True),
    "a method replaced": (lambda w: setattr(w.classes[1], "method", lambda self: 2), False),
    "other bases": (lambda w: setattr(w.classes[1], "__bases__", (Other,)), True),
    "a global": (lambda w: w.globals.update(SCALE=1), False),
    "a global that nobody reads": (lambda w: w.globals.update(unread=1), True),
    "a global that hides a builtin": (lambda w: w.globals.update(len=len), False),
    "a global deleted": (lambda w: w.globals.pop("SCALE"), False),
    "a function's code": (lambda w: setattr(w.globals["helper"], "__code__", other_helper.__code__), False),
    "a function's defaults": (lambda w: setattr(w.globals["helper"], "__defaults__", (7,)), False),
    "equal defaults": (lambda w: setattr(w.globals["helper"], "__defaults__", (int("1000"),)), True),
    "one default more": (lambda w: setattr(w.globals["helper"], "__defaults__", (1000, 2)), False),
    "a function's name": (lambda w: setattr(w.globals["helper"], "__name__", "other"), False),
    "an attribute of a function": (lambda w: setattr(w.globals["helper"], "mark", 1), False),
    "an attribute of the instance": (lambda w: setattr(w.root, "mark", 1), False),
    "an attribute of its class": (lambda w: setattr(w.classes[1], "mark", 1), True),
    "an attribute of the instance moved to its class": (
        lambda w: (setattr(w.classes[1], "size", 5678), delattr(w.root, "size")),
        False,
    ),
    "a class's name": (lambda w: setattr(w.classes[1], "__name__", "Other"), False),
    "a class's qualified name": (lambda w: setattr(w.classes[1], "__qualname__", "Other"), False),
    "a class's module": (lambda w: setattr(w.classes[1], "__module__", "elsewhere"), False),
    "no defaults": (lambda w: setattr(w.globals["helper"], "__defaults__", None), False),
    "keyword defaults": (lambda w: setattr(w.globals["helper"], "__kwdefaults__", {"b": 7}), False),
    "keyword defaults in place": (lambda w: w.globals["helper"].__kwdefaults__.update(b=7), False),
    "another function": (lambda w: w.globals.update(helper=other_helper), False),
    "a cell": (lambda w: setattr(w.closure[0], "cell_contents", 1), False),
    "a cell emptied": (lambda w: delattr(w.closure[0], "cell_contents"), False),
    "a cell of a function": (lambda w: setattr(w.root.fn.__closure__[0], "cell_contents", 1), False),
    "a cell of a function in a cell": (
        lambda w: setattr(inside(w).__closure__[0], "cell_contents", 1),
        False,
    ),
    "a function in a cell": (
        lambda w: setattr(w.root.nested.__closure__[0], "cell_contents", closing(1)),
        False,
    ),
    "an equal function in a cell": (
        lambda w: setattr(w.root.nested.__closure__[0], "cell_contents", closing(555)),
        True,
    ),
    "another closure": (lambda w: setattr(w, "closure", closing(1).__closure__), False),
    "a closure that agrees": (lambda w: setattr(w, "closure", closing(4321).__closure__), True),
    "another module": (lambda w: setattr(w, "globals", {"SCALE": 1}), False),
    "globals that agree": (lambda w: setattr(w, "globals", dict(w.globals)), True),
    "another root that agrees": (lambda w: setattr(w, "root", w.twin()), True),
    "another root": (lambda w: setattr(w, "root", Other()), False),
}


def part(self):
    made = self.classes[0]()
    made.__dict__.update(weight=object(), hooks=collections.OrderedDict(), size=77777)
    return made


def twin(self):
    made = self.classes[1]()
    made.__dict__.update(self.root.__dict__)
    return made


World.part, World.twin = part, twin


@pytest.mark.parametrize("name", MUTATIONS)
def test_each_change_is_seen(name):
    world = World()
    world.settled()
    mutate, after = MUTATIONS[name]
    mutate(world)
    assert verdict(world.verdict) is after
    assert verdict(world.truth) is after
    for _ in range(3):  # and again, whatever was remembered meanwhile
        assert verdict(world.verdict) is after


def test_nothing_is_read_again_while_nothing_changes():
    world = World()
    world.settled()
    before = C.stats()
    for _ in range(50):
        world.verdict()
    now = C.stats()
    assert now["guards_remembered"] - before["guards_remembered"] == 50
    assert now["snapshots"] == before["snapshots"]


def test_what_changes_all_the_time_is_no_reason_to_start_anew():
    """Counters beside what is read: in globals (as a loop at the top level has them) and in the root."""
    world = World()
    world.settled()
    for i in range(20):
        world.globals["i"] = world.root.steps = i
        assert world.verdict()
    before = C.stats()
    for i in range(100):
        world.globals["i"] = world.root.steps = i
        assert world.verdict()
    assert C.stats()["guards_remembered"] - before["guards_remembered"] >= 90
    world.globals["SCALE"] = 5
    assert not world.verdict()


def test_a_freed_constant_s_place_is_no_constant():
    """A store, a second store whose object takes the place of the first: same address, other value."""
    world = World()
    world.settled()
    for i in range(40):
        world.globals["i"] = i
        assert world.verdict()  # by now the globals are compared by key
    for i in range(2000):
        world.globals["SCALE"] = int("1234")
        assert world.verdict()
        address = id(world.globals["SCALE"])
        del world.globals["SCALE"]
        world.globals["SCALE"] = int(str(5000 + i))
        taken = id(world.globals["SCALE"]) == address
        assert not world.verdict()
        if taken and i > 200:
            break


def test_random_changes():
    rnd = random.Random(1)
    names = sorted(MUTATIONS)
    for _ in range(25):
        world = World()
        for _ in range(rnd.randrange(4)):
            verdict(world.verdict)
        for _ in range(12):
            for name in rnd.sample(names, rnd.choice([0, 0, 1, 1, 2])):
                try:
                    MUTATIONS[name][0](world)
                except (AttributeError, KeyError, TypeError, ValueError):
                    pass  # what it changes is gone already
            for _ in range(rnd.choice([1, 1, 3])):
                world.check()


def test_instances_that_take_turns():
    world = World()
    roots = [world.root, world.twin(), world.twin()]
    for i in range(300):
        world.root = roots[i % 3]
        assert world.verdict()
    roots[1].size = 1
    for i in range(9):
        world.root = roots[i % 3]
        assert world.verdict() is (i % 3 != 1)


def test_a_snapshot_holds_no_object_of_the_user():
    class Thing:
        pass

    code = instructions(
        ("LOAD_LOCAL", 0),
        ("LOAD_ATTR", 0, "d"),
        ("LOAD_ITEM", 1, (LITERAL, "k")),
        ("CHECK_LENGTH", 2, 1),
        ("LOAD_ATTR", 0, "n"),
        ("CHECK_SAME", 3, (LITERAL, 123456)),
    )
    guards = C.GuardProgram(code, 1)
    held = Thing()
    held.d, held.n = {"k": [1]}, 123456
    counts = [sys.getrefcount(x) for x in (held, held.d, held.d["k"])]
    for _ in range(5):
        assert guards(held, {}, None)
    assert counts == [sys.getrefcount(x) for x in (held, held.d, held.d["k"])]
    held.__dict__.clear()
    gc.collect()
    assert not guards(held, {}, None)


def test_dictionaries_that_die_while_they_are_remembered():
    class Thing:
        pass

    code = instructions(
        ("LOAD_LOCAL", 0),
        ("LOAD_ATTR", 0, "d"),
        ("CHECK_KEY", 1, (LITERAL, "k")),
        ("LOAD_ITEM", 1, (LITERAL, "k")),
        ("CHECK_SAME", 2, (LITERAL, 1)),
    )
    guards, thing = C.GuardProgram(code, 1), Thing()
    for i in range(200):
        thing.d = {"k": 1, i: 0} if i % 3 else {"k": 2}
        for _ in range(3):
            assert guards(thing, {}, None) is bool(i % 3)


def test_a_guard_in_python_that_changes_what_is_remembered():
    class Thing:
        pass

    def guard(a, *_):
        a.d = {"k": [1, 2]}
        gc.collect(0)
        return guards(a, {}, None) if depth.append(0) is None and len(depth) < 3 else True

    code = instructions(
        ("LOAD_LOCAL", 0),
        ("LOAD_ATTR", 0, "d"),
        ("LOAD_ITEM", 1, (LITERAL, "k")),
        ("CHECK_LENGTH", 2, 2),
        ("CHECK_PY", guard),
    )
    guards = C.GuardProgram(code, 1)
    thing = Thing()
    for i in range(60):
        depth = []
        thing.d = {"k": [1, 2] if i % 7 else [1]}
        assert guards(thing, {}, None) is bool(i % 7)


def test_keys_that_are_no_str_and_objects_as_constants():
    class Thing:
        pass

    KEY = Thing()
    thing = Thing()
    thing.d = {1: 1, "a": 2, KEY: 3}
    guards = program(
        ("LOAD_LOCAL", 0),
        ("LOAD_ATTR", 0, "d"),
        ("LOAD_ITEM", 1, (LITERAL, 1)),
        ("CHECK_SAME", 2, (LITERAL, 1)),
        ("LOAD_ITEM", 1, (OBJECT, KEY)),
        ("CHECK_SAME", 3, (LITERAL, 3)),
        ("CHECK_NO_KEY", 1, (LITERAL, 2)),
    )
    for _ in range(5):
        assert guards(thing, {}, None)
    thing.d[KEY] = 4
    assert not guards(thing, {}, None)
    thing.d[KEY] = 3
    assert guards(thing, {}, None)
    thing.d[2] = 0
    assert not guards(thing, {}, None)


def test_what_is_left_to_run():
    """The arguments that are new at each call; what is reached through the root is compared word by word, or watched."""
    world = World()
    world.settled()
    counts = world.program.snapshot
    assert counts["roots"] == 2  # the argument and the globals
    assert counts["rest"] < 15 < counts["words"] + counts["watches"]
    assert counts["late"] == 0
    assert program().snapshot is None


def test_what_may_run_python_code_is_run_last_each_time():
    class Thing:
        pass

    thing = Thing()
    thing.left, thing.group = iter((1, 2)), {1}
    guards = program(
        ("LOAD_LOCAL", 0),
        ("LOAD_ATTR", 0, "left"),
        ("CHECK_ITERATOR", 1, 2),
        ("LOAD_ATTR", 0, "group"),
        ("CHECK_SET_HAS", 2, (LITERAL, 1)),
        ("CHECK_PY", lambda a, *_: a.group is not None),
        ("CHECK_IS_NOT", 1, 2),
    )
    for _ in range(4):
        assert guards(thing, {}, None)
    assert guards.snapshot["late"] == 3
    next(thing.left)
    assert not guards(thing, {}, None)
    thing.left = iter((1, 2))
    thing.group.clear()
    assert not guards(thing, {}, None)
    thing.group.add(1)
    assert guards(thing, {}, None)


def test_members_of_objects_that_are_initialised_again():
    def fget(self):
        return 1

    class Thing:
        value = property(fget)

    code = instructions(
        ("LOAD_LOCAL", 0),
        ("LOAD_TYPE", 0),
        ("LOAD_ATTR", 1, "value"),
        ("LOAD_ATTR", 2, "fget"),
        ("CHECK_OBJ_ID", 3, id(fget)),
    )
    guards, thing = C.GuardProgram(code, 1), Thing()
    thing.made = vars(thing).get("made")  # so that it has a dictionary
    for _ in range(5):
        assert guards(thing, {}, None)
    assert guards.snapshot["rest"] == 0
    Thing.__dict__["value"].__init__(lambda self: 2)
    assert not guards(thing, {}, None)


def test_the_order_of_bases_is_remembered():
    class Base:
        pass

    class Another:
        pass

    class Thing(Base):
        pass

    code = instructions(
        ("LOAD_LOCAL", 0),
        ("LOAD_TYPE", 0),
        ("LOAD_MEMBER", 1, "__mro__"),
        ("CHECK_LENGTH", 2, 3),
        ("LOAD_ITEM", 2, (LITERAL, 1)),
        ("CHECK_OBJ_ID", 3, id(Base)),
    )
    guards, thing = C.GuardProgram(code, 1), Thing()
    thing.made = vars(thing).get("made")  # so that it has a dictionary
    for _ in range(5):
        assert guards(thing, {}, None)
    assert guards.snapshot["rest"] == guards.snapshot["late"] == 0
    for bases, verdict in ((Another,), False), ((Base,), True), ((Base, Another), False), ((Base,), True):
        Thing.__bases__ = bases
        for _ in range(3):
            assert guards(thing, {}, None) is verdict
