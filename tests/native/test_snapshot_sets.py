"""A program keeps a snapshot for each of a few objects that come in turn, and one that is common to all others."""

from __future__ import annotations

import gc
import os
import random
import sys
import threading
import weakref

import pytest

from tests.native.conftest import C
from tests.native.programs import LITERAL, program
from tests.native.test_snapshots import MUTATIONS, World, verdict

OWN = 4  # so many of one object each


class Part:
    def __init__(self, value):
        vars(self)["value"] = value  # a real dictionary: attributes that lie in the object are read each time


class Model:
    def __init__(self, value=70_000):
        vars(self).update(part=Part(value), size=80_000)


class Other:
    pass


def guards_of_model(*more, arguments=1):
    return program(
        ("LOAD_LOCAL", 0),
        ("CHECK_TYPE_ID", 0, id(Model)),
        ("LOAD_ATTR", 0, "part"),
        ("CHECK_TYPE_ID", 1, id(Part)),
        ("LOAD_ATTR", 1, "value"),
        ("CHECK_SAME", 2, (LITERAL, 70_000)),
        ("LOAD_ATTR", 0, "size"),
        ("CHECK_SAME", 3, (LITERAL, 80_000)),
        *more,
        arguments=arguments,
    )


def remembered(calls):
    """How many of these calls were answered by a snapshot, and how many snapshots were made meanwhile."""
    before = C.stats()
    calls()
    after = C.stats()
    return [after[name] - before[name] for name in ("guards_remembered", "snapshots")]


@pytest.mark.parametrize("count", [1, 2, 3, OWN])
def test_each_of_a_few_has_its_own(count):
    guards, models, scope = guards_of_model(), [Model() for _ in range(count)], {}

    def rounds():
        for _ in range(50):
            for model in models:
                assert guards(model, scope, None)

    rounds()
    assert remembered(rounds) == [50 * count, 0]
    assert len(guards.snapshots) == count
    assert not any(snapshot["common"] for snapshot in guards.snapshots)
    assert all(snapshot["roots"] >= 1 for snapshot in guards.snapshots)
    for changed in models:
        changed.part.value = 1
        assert [guards(model, scope, None) for model in models] == [model is not changed for model in models]
        changed.part.value = 70_000
        assert all(guards(model, scope, None) for model in models)


@pytest.mark.parametrize("count", [OWN + 1, 2 * OWN, 5 * OWN])
def test_more_than_there_are_snapshots_for(count):
    guards, models, scope = guards_of_model(), [Model() for _ in range(count)], {}

    def rounds(number=40):
        for _ in range(number):
            for model in models:
                assert guards(model, scope, None)

    rounds()
    answered, made = remembered(lambda: rounds(100))
    assert answered >= 95 * count
    assert made <= 10
    assert len(guards.snapshots) == OWN + 1
    assert [snapshot["common"] for snapshot in guards.snapshots] == [False] * OWN + [True]
    for changed in models:
        changed.part = Part(1)
        assert [guards(model, scope, None) for model in models] == [model is not changed for model in models]
        changed.part = Part(70_000)


def test_one_that_is_new_in_each_call():
    guards, scope = guards_of_model(), {}
    for _ in range(2000):
        assert guards(Model(), scope, None)
    kept = []

    def calls():
        for i in range(2000):
            model = Model(70_000 if i % 3 else 1)
            kept.append(model)
            assert guards(model, scope, None) is bool(i % 3)

    _, made = remembered(calls)
    assert made <= 20


def test_an_object_that_is_new_in_each_call_beside_two_in_turn():
    guards = guards_of_model(
        ("LOAD_LOCAL", 1), ("CHECK_TYPE_ID", 4, id(Part)), ("LOAD_ATTR", 4, "value"), ("CHECK_SAME", 5, (LITERAL, 1))
        , arguments=2
    )  # fmt: skip
    models, scope, kept = [Model(), Model()], {}, []

    def calls(number=1000):
        for i in range(number):
            kept.append(Part(1))
            assert guards(models[i % 2], kept[-1], scope, None)

    calls(8000)
    assert remembered(calls) == [1000, 0]
    assert not guards.snapshot["common"]  # of one of the two, whatever the other object is
    if sys.version_info[:3] != (3, 13, 0):  # there attributes are read each time
        assert guards.snapshot["rest"] <= 4
    assert not guards(models[0], Part(2), scope, None)
    models[1].size = 1
    assert guards(models[0], Part(1), scope, None) and not guards(models[1], Part(1), scope, None)


def test_those_that_came_first_make_room():
    guards, scope = guards_of_model(), {}
    first = [Model() for _ in range(OWN)]
    for _ in range(30):
        for model in first:
            assert guards(model, scope, None)
    late = Model()
    for _ in range(300):
        assert guards(late, scope, None)
    assert remembered(lambda: [guards(late, scope, None) for _ in range(50)]) == [50, 0]
    assert not guards.snapshot["common"]


def test_calls_that_fail_cost_no_snapshot():
    """The entry of another class is asked first, each time."""
    guards, scope, models = guards_of_model(), {}, [Model() for _ in range(2 * OWN)]
    for _ in range(50):
        for model in models:
            assert guards(model, scope, None)
    other = Other()

    def calls():
        for _ in range(30):
            for model in models:
                assert guards(model, scope, None) and not guards(other, scope, None)

    answered, made = remembered(calls)
    assert answered >= 29 * len(models) and made <= 3


def test_one_that_dies_and_another_at_its_address():
    guards, scope = guards_of_model(), {}
    steady = Model()
    taken = 0
    for i in range(300):
        model = Model(70_000 if i % 2 else 1)
        address = id(model)
        for _ in range(3):
            assert guards(model, scope, None) is bool(i % 2)
            assert guards(steady, scope, None)
        del model
        again = Model(1 if i % 2 else 70_000)
        taken += id(again) == address
        assert guards(again, scope, None) is not bool(i % 2)
    assert taken or os.environ.get("PYTHONMALLOC")  # sanitizers keep freed memory


def test_dead_ones_hold_nothing_back():
    guards, scope = guards_of_model(), {}
    models = [Model() for _ in range(OWN)]
    for _ in range(20):
        for model in models:
            assert guards(model, scope, None)
    refs = [weakref.ref(x) for model in models for x in (model, model.part)]
    del models, model
    gc.collect()
    assert [ref() for ref in refs] == [None] * len(refs)
    assert guards(Model(), scope, None)
    del guards


@pytest.mark.parametrize("name", MUTATIONS)
def test_each_change_of_one_of_two_is_seen(name):
    world = World()
    roots = [world.root, world.twin()]
    for i in range(60):
        world.root = roots[i % 2]
        assert world.verdict()
    assert len(world.program.snapshots) == 2
    mutate, after = MUTATIONS[name]
    world.root = roots[0]
    mutate(world)
    assert verdict(world.verdict) is after
    changed = world.root
    for _ in range(3):
        for root in (roots[1], changed):
            world.root = root
            world.check()


def test_random_changes_of_several():
    rnd = random.Random(7)
    names = sorted(MUTATIONS)
    for _ in range(12):
        world = World()
        roots = [world.root, *(world.twin() for _ in range(rnd.choice([1, 2, 5])))]
        for i in range(rnd.choice([0, 20, 60])):
            world.root = roots[i % len(roots)]
            verdict(world.verdict)
        for _ in range(15):
            i = rnd.randrange(len(roots))
            world.root = roots[i]
            for name in rnd.sample(names, rnd.choice([0, 0, 1, 1, 2])):
                try:
                    MUTATIONS[name][0](world)
                except (AttributeError, KeyError, TypeError, ValueError):
                    pass  # what it changes is gone already
            roots[i] = world.root
            for _ in range(rnd.choice([1, 1, 3])):
                world.check()
            world.root = rnd.choice(roots)
            world.check()


def test_a_guard_in_python_that_takes_the_turns_itself():
    """While a snapshot runs, the same program runs on other roots, and snapshots are made, dropped and replaced."""
    models, scope, depth = [Model() for _ in range(2 * OWN)], {}, []

    def guard(model, *_):
        if len(depth) < 3:
            depth.append(model)
            for other in models:
                other.part = Part(70_000)
                assert guards(other, scope, None)
            gc.collect(0)
            depth.pop()
        return True

    guards = guards_of_model(("CHECK_PY", guard))
    for _ in range(3):
        for model in models:
            assert guards(model, scope, None)
    models[3].size = 1
    assert not guards(models[3], scope, None)


def test_threads_with_an_object_each():
    guards, scope, failures = guards_of_model(), {}, []
    start = threading.Barrier(6)

    def work(number):
        model = Model()
        rnd = random.Random(number)
        start.wait()
        for _ in range(3000):
            right = rnd.random() < 0.9
            model.part.value = 70_000 if right else 1
            if rnd.random() < 0.05:
                model = Model(70_000 if right else 1)
            if guards(model, scope, None) is not right:
                failures.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
