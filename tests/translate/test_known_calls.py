"""A call that only reads is executed once in a trace, and again as soon as the trace has changed what it read."""

from __future__ import annotations

import pytest

import minidynamo
from minidynamo.debug.observe import observe
from tests.eager import Module, T, check

BOX = """
    limit = 3

    class Names:
        shared = {"size": 2}

        def __init__(self, **values):
            self.table = {"k": 1}
            self.items = [5]
            self.inner = None
            for name, value in values.items():
                setattr(self, name, value)

        def __getattribute__(self, name):
            if name != "alias" and name in super().__getattribute__("alias"):
                name = super().__getattribute__("alias")[name]
            return super().__getattribute__(name)

        alias = {"width": "size"}

    class Box:
        def __init__(self):
            self.size, self.table, self.items, self.inner = 2, {"k": 1}, [5], Names(size=7)

        def read(self):
            return self.size

        def look(self, key):
            return self.table.get(key)

        def deep(self):
            return self.inner.width

        def part(self):
            return self.inner

        def bounded(self):
            if limit == 3:
                return self.size
            return limit

        def fresh(self):
            return [self.size]

    def make_counter():
        count = 1
        def read(box):
            return count if box else 0
        def write(value):
            nonlocal count
            count = value
        return read, write

    read_count, write_count = make_counter()
"""

CHANGES = {
    "nothing": "pass",
    "attribute": "box.size = 9",
    "attribute of an attribute": "box.inner.size = 9",
    "another object": "box.inner = Names(size=1)",
    "by name": "setattr(box, 'size', 4)",
    "__dict__": "box.__dict__['size'] = 8",
    "__dict__ of the inner one": "box.inner.__dict__['size'] = 8",
    "dict": "box.table['k'] = 6",
    "dict emptied": "box.table.clear()",
    "dict that is new, and changed": "box.table = {}; box.table['k'] = 5",
    "class": "Names.alias['read'] = 'size'",
    "attribute and back": "box.size = 9; box.read(); box.size = 3",
    "deleted": "del box.inner.size; box.inner.size = 11",
    "global": "change_limit()",
    "cell": "write_count(4)",
}
READS = {
    "attribute": "box.read()",
    "dict": "box.look('k')",
    "own access": "box.inner.width, box.inner.size",
    "deep": "box.deep()",
    "object": "box.part() is box.inner",
    "global": "box.bounded()",
    "cell": "read_count(box.size)",
}


@pytest.mark.parametrize("read", READS.values(), ids=READS)
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_what_was_changed_is_read_again(change, read):
    check(
        BOX
        + f"""
    def change_limit():
        global limit
        limit = 4

    def f(x, box):
        before = {read}, {read}
        {change}
        middle = {read}, {read}
        y = x * 2
        {change}
        return y, before, middle, {read}
    """,
        "f(T(2), Box())",
        "f(T(2), Box())",
    )


def test_a_changed_object_that_is_reached_through_another():
    check(
        BOX
        + """
    def f(x, box, other):
        before = box.look("k"), box.deep()
        other.table["k"] = 7
        other.inner.size = 12
        return x + 1, before, box.look("k"), box.deep()

    def one():
        box = Box()
        return box, box

    def two():
        box, other = Box(), Box()
        other.table, other.inner = box.table, box.inner
        return box, other
    """,
        "f(T(2), *one())",
        "f(T(2), *two())",
        "f(T(2), Box(), Box())",
        "f(T(2), *two())",
    )


def test_new_objects_are_made_by_each_call():
    seen = check(
        BOX
        + """
    def f(x, box):
        a, b = box.fresh(), box.fresh()
        a.append(1)
        return x + 1, a, b
    """,
        "f(T(2), Box())",
    )
    assert seen.reasons == []


def test_state_of_torch_and_metadata_are_asked_again():
    check(
        """
        class Layer:
            def __init__(self):
                self.weight = T(2)

            def records(self):
                return torch.is_grad_enabled()

            def sizes(self):
                return self.weight.shape, self.weight.requires_grad

        def f(x, layer):
            with torch.no_grad():
                inside = layer.records()
            return x * 2, inside, layer.records(), layer.sizes(), layer.sizes()
        """,
        "f(T(2), Layer())",
    )


def test_guards_stay():
    seen = check(
        BOX
        + """
    def f(x, box):
        return x * box.inner.width + box.inner.width + box.inner.width * box.look("k") + box.look("k")

    def made(size, k):
        box = Box()
        box.inner.size, box.table["k"] = size, k
        return box
    """,
        "f(T(2), made(1, 1))",
        "f(T(2), made(1, 1))",
        "f(T(2), made(2, 1))",
        "f(T(2), made(2, 2))",
    )
    assert seen.reasons == [] and seen.graphs == 3


def test_errors_come_again():
    check(
        BOX
        + """
    def f(x, box):
        found = []
        for _ in range(3):
            try:
                found.append(box.inner.nothing)
            except AttributeError as error:
                found.append(str(error))
        return x + 1, found
    """,
        "f(T(2), Box())",
    )


FIELDS = """
    from dataclasses import dataclass, fields

    @dataclass
    class Pair:
        a: int
        b: int = 2

    @dataclass
    class More(Pair):
        c: int = 3

    def names(pair):
        return [each.name for each in fields(pair)]
"""


def test_fields_of_an_instance_are_those_of_its_class():
    check(
        FIELDS
        + """
    def f(x, pair):
        one, two = Pair(1), Pair(2)
        before = fields(one) == fields(two), names(one), names(two), names(More(1)), names(pair), names(More(2))
        one.__dict__["__dataclass_fields__"] = More.__dataclass_fields__
        return x + 1, before, names(one), names(two), names(Pair(3))
    """,
        "f(T(2), Pair(1))",
        "f(T(2), More(1))",
    )


def test_fields_that_change():
    check(
        FIELDS
        + """
    def f(x, pair):
        one = Pair(1)
        before = names(one), names(one)
        Pair.__dataclass_fields__["b"].name = "other"
        return x + 1, before, names(one), names(Pair(2)), names(pair)
    """,
        "f(T(2), Pair(1))",
    )
    check(
        FIELDS
        + """
    def f(x, one):
        pair = Pair(1)
        before = names(pair), names(pair)
        one.__dataclass_fields__["more"] = More.__dataclass_fields__["c"]
        return x + 1, before, names(pair), names(Pair(2))
    """,
        "f(T(2), Pair(1))",
    )


def steps_of(reads: int) -> int:
    names = Module(BOX + f"    def f(x, box):\n        return x, {'box.inner.width, ' * reads}\n").names
    with observe() as seen:
        minidynamo.optimize("eager")(names["f"])(T(2), names["Box"]())
    return len(seen.compilations[-1].attempts[-1].steps)


def test_the_second_call_is_not_executed():
    one, two, three = map(steps_of, (1, 2, 3))
    assert three - two == two - one < 6 < one
