"""Many entries: the one that fits is tried first, and order and limits of the walk stay what they are."""

from __future__ import annotations

import random

import pytest

from tests.native.conftest import C
from tests.native.programs import LITERAL, program


def guard(value, argument=0):
    return program(
        ("LOAD_LOCAL", argument),
        ("CHECK_TYPE_ID", 0, id(type(value))),
        ("CHECK_SAME", 0, (LITERAL, value)),
    )


@pytest.fixture
def many(kit):
    """many(values) -> (f, entries): one entry for each constant, which returns it as a str."""

    def make(values):
        f = kit.define("def f(a): return 'plain'")
        entries = [kit.add(f, kit.define(f"def f(a): return {str(v)!r}"), guard(v)) for v in values]
        return f, entries

    return make


def tried(run, value):
    before = C.stats()["guards"]
    run(value)
    return C.stats()["guards"] - before


VALUES = [*range(400), "a", "b", 0.5, -0.0, 0.0, None, True, (1, 2), (1, 3), b"x"]


@pytest.mark.parametrize("how", ["optimized", "hooked"])
def test_each_of_many_entries_is_found_at_once(kit, many, how):
    f, entries = many(VALUES)
    run = kit.optimized(f) if how == "optimized" else lambda a: kit.hooked(f, a)
    for value in VALUES:
        assert run(value) == str(value)
    order = VALUES * 2
    random.Random(0).shuffle(order)
    count = 0
    for value in order:
        count += tried(run, value)
        assert run(value) == str(value)
    assert count < 1.2 * len(order)
    assert run("absent") == "plain"
    assert all(entry.hits for entry in entries)


def test_entries_that_leave_are_forgotten(kit, many):
    f, entries = many(range(20))
    run = kit.optimized(f)
    for i in range(20):
        run(i)
    entries[7].valid = False
    assert run(7) == "plain" and run(8) == "8"
    kit.add(f, kit.define("def f(a): return 'again'"), guard(7))  # entries that are not valid leave
    assert run(7) == "again" and run(7) == "again"
    del entries
    C.reset_code(f.__code__)
    assert [run(i) for i in range(20)] == ["plain"] * 20


def test_a_hint_is_no_guard(kit, many):
    """Two calls may look alike and need different entries."""
    f, _ = many(range(20))
    big = 2**61 - 1  # hashes like 0
    assert hash(big) == hash(0)
    run = kit.optimized(f)
    for _ in range(3):
        assert run(0) == "0" and run(big) == "plain"
    kit.add(f, kit.define("def f(a): return 'big'"), guard(big))
    for _ in range(3):
        assert run(0) == "0" and run(big) == "big"


def test_keys_have_their_own_entries(kit, many):
    f, _ = many(range(20))
    other = C.OptimizeContext(C.CompileKey("another"))
    run, run_other = kit.optimized(f), kit.optimized(f, other)
    for i in range(20):
        kit.add(f, kit.define(f"def f(a): return 'other {i}'"), guard(i), other)
    for _ in range(2):
        for i in range(20):
            assert run(i) == str(i) and run_other(i) == f"other {i}"


def test_no_break_for_those_who_want_none(kit, many):
    f, _ = many(range(20))
    kit.add(f, kit.define("def f(a): return 'breaks'"), guard(99), has_break=True)
    kit.add(f, kit.define("def f(a): return 'whole'"), guard(99))
    strict = C.OptimizeContext(kit.key, nopython=True)
    for _ in range(2):
        assert kit.optimized(f)(99) in ("breaks", "whole")  # either is right
        assert kit.optimized(f, strict)(99) == "whole"


def test_a_closure_tells_entries_apart(kit):
    namespace = {}
    exec(
        "def make(k):\n    def f(a): return 'plain', k\n    def g(a): return 'new', k\n    return f, g\n",
        namespace,
    )
    f, g = namespace["make"](0)
    for i in range(20):
        guards = program(("LOAD_CLOSURE", 0), ("CHECK_SAME", 0, (LITERAL, i)))
        kit.add(f, g.__code__.replace(co_name=f"g{i}"), guards)
    for i in range(20):
        kit.optimized(namespace["make"](i)[0])(1)
    for i in range(20):
        run = kit.optimized(namespace["make"](i)[0])
        assert tried(run, 1) == 1 and run(1) == ("new", i)
