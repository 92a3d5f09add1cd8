"""Classes, decorators, annotations."""

# What the linter would rather not see is what these functions are for.
from __future__ import annotations

import dataclasses
import enum
import functools
from collections import OrderedDict
from typing import Any

from tests.pycode.cases.support import Box, Point, Shape, Sub, case


@case((3,))
def local_class(x):
    class Local(Box):
        extra = x

        def get(self):
            return self.extra + x + self.value

        def __repr__(self):
            return f"Local({self.value})"

    one = Local(1)
    return one.get(), Local.extra, repr(one), Local.__name__, Local.__qualname__


@case((3,))
def local_class_super(x):
    class Local(Sub):
        def add(self, other, *, scale=1):
            return super().add(other) * x

    return Local(x).add(1)


@case((3,))
def decorated(x):
    def twice(f):
        @functools.wraps(f)
        def inner(*args):
            return f(*args) * 2

        return inner

    @twice
    @twice
    def g(y):
        """Documented."""
        return y + x

    return g(1), g.__doc__, g.__name__


@case((1,))
def annotated(x: int) -> Any:
    y: int = x + 1
    z: list[int]
    z = [y]

    def typed(a: int, *, b: str = "b") -> None:
        return None

    return y, z, typed.__defaults__, typed.__kwdefaults__, typed(1)


@case((2,))
def named_tuples(x):
    p = Point(x, y=3)
    q = p._replace(y=4)
    return p == (x, 3), q.y, [*p], Shape("sq", 2) == Shape("sq", x), OrderedDict(a=1)["a"]


@case((3,))
def properties(x):
    class Temperature:
        def __init__(self, value):
            self._value = value

        @property
        def value(self):
            return self._value

        @value.setter
        def value(self, new):
            if new < 0:
                raise ValueError("below zero")
            self._value = new

        @value.deleter
        def value(self):
            self._value = None

    t = Temperature(x)
    t.value += 1
    seen = [t.value]
    try:
        t.value = -1
    except ValueError as error:
        seen.append(str(error))
    del t.value
    return seen, t.value


@case((3,))
def descriptors(x):
    class Doubled:
        def __set_name__(self, owner, name):
            self.name = "_" + name

        def __get__(self, instance, owner):
            return owner.__name__ if instance is None else getattr(instance, self.name) * 2

        def __set__(self, instance, value):
            setattr(instance, self.name, value)

    class Holder:
        field = Doubled()

    h = Holder()
    h.field = x
    h.field += 1
    return h.field, Holder.field, vars(h)


@case((3,))
def dynamic_attributes(x):
    class Loose:
        def __getattr__(self, name):
            if name.startswith("no"):
                raise AttributeError(name)
            return name * 2

        def __setattr__(self, name, value):
            object.__setattr__(self, name, value + 1)

        def __delattr__(self, name):
            object.__setattr__(self, name, "deleted")

    one = Loose()
    one.a = x
    del one.b
    return one.a, one.b, one.zz, hasattr(one, "nothing"), getattr(one, "none", 0)


@case((2, 3))
def operator_methods(x, y):
    class Vec:
        def __init__(self, *v):
            self.v = v

        def __add__(self, other):
            return Vec(*[a + b for a, b in zip(self.v, other.v, strict=True)])

        def __mul__(self, k):
            return Vec(*[a * k for a in self.v]) if isinstance(k, int) else NotImplemented

        __rmul__ = __mul__

        def __iadd__(self, other):
            self.v = (*self.v, *other.v)
            return self

        def __neg__(self):
            return self * -1

        def __len__(self):
            return len(self.v)

        def __contains__(self, item):
            return item in self.v

        def __call__(self, i):
            return self.v[i]

        def __matmul__(self, other):
            return sum(a * b for a, b in zip(self.v, other.v, strict=True))

    a, b = Vec(x, y), Vec(1, 2)
    c = a + b * 2
    d = 3 * a
    a += b
    try:
        a * "x"
    except TypeError as error:
        text = str(error)
    return c.v, d.v, a.v, (-b).v, len(a), x in a, c(1), b @ Vec(3, 4), text


@case((3,))
def comparison_methods(x):
    @functools.total_ordering
    class Ranked:
        def __init__(self, rank):
            self.rank = rank

        def __eq__(self, other):
            return self.rank == other.rank

        def __lt__(self, other):
            return self.rank < other.rank

        def __hash__(self):
            return self.rank

    a, b = Ranked(x), Ranked(x + 1)
    return (
        a < b,
        a <= b,
        a > b,
        a >= b,
        a == b,
        a != b,
        max(a, b).rank,
        sorted([b, a])[0].rank,
        len({a, b, Ranked(x)}),
    )


@case((3,))
def inheritance(x):
    class A:
        def who(self):
            return ["A"]

    class B(A):
        def who(self):
            return ["B", *super().who()]

    class C(A):
        def who(self):
            return ["C", *super().who()]

    class D(B, C):
        def who(self):
            return ["D", *super().who(), x]

    return D().who(), [c.__name__ for c in D.__mro__], isinstance(D(), C)


@case((3,))
def class_and_static(x):
    class K:
        count = 0

        def __init__(self):
            type(self).count += x

        @classmethod
        def make(cls, n):
            return [cls() for _ in range(n)]

        @staticmethod
        def add(a, b=1):
            return a + b

    items = K.make(2)
    return K.count, len(items), K.add(x), items[0].add(1, 2), K.make.__self__ is K


@case((3,))
def metaclass(x):
    class Meta(type):
        def __new__(mcls, name, bases, namespace, extra=0):
            namespace["extra"] = extra
            return super().__new__(mcls, name, bases, namespace)

        def __getitem__(cls, key):
            return cls.__name__, key

    class Made(metaclass=Meta, extra=x):
        pass

    return Made.extra, Made[1], type(Made).__name__


@case((3,))
def init_subclass(x):
    registry = []

    class Base:
        def __init_subclass__(cls, tag=None, **kwargs):
            super().__init_subclass__(**kwargs)
            registry.append((cls.__name__, tag))

    class One(Base, tag=x):
        pass

    class Two(One):
        pass

    return registry


@case((3,))
def slots_class(x):
    class Point3:
        __slots__ = ("x", "y")

        def __init__(self, px):
            self.x = px

    p = Point3(x)
    try:
        p.z = 1
    except AttributeError:
        missing = "z"
    try:
        return p.y
    except AttributeError:
        return p.x, missing


@case((3,))
def dataclass_use(x):
    @dataclasses.dataclass(order=True)
    class Item:
        n: int
        tags: list = dataclasses.field(default_factory=list, compare=False)

        def __post_init__(self):
            self.double = self.n * 2

    a, b = Item(x), Item(x + 1, ["t"])
    c = dataclasses.replace(b, n=0)
    return a < b, repr(a).split(".")[-1], b.tags, c.double, sorted([b, a, c])[0].n, dataclasses.astuple(a)


@case((2,))
def enum_use(x):
    class Color(enum.Enum):
        RED = 1
        BLUE = 2

        @property
        def low(self):
            return self.name.lower()

    return Color(x).low, Color["RED"].value, [c.name for c in Color], Color.RED is Color(1), Color.RED == 1


@case((3,))
def class_body_flow(x):
    class K:
        names = []
        for i in range(x):
            if i % 2:
                names.append(i)
        else:
            done = True
        try:
            bad = 1 // 0
        except ZeroDivisionError:
            bad = None
        del i

    return K.names, K.done, K.bad, hasattr(K, "i")


@case((2,))
def nested_classes(x):
    class Outer:
        class Inner:
            value = x

            def get(self):
                return self.value + x

        inner = Inner()

    return Outer.inner.get(), Outer.Inner.__qualname__


@case((2,))
def instance_call_chain(x):
    class Builder:
        def __init__(self):
            self.parts = []

        def add(self, *parts, sep=""):
            self.parts += [sep + p for p in parts]
            return self

        def __str__(self):
            return "".join(self.parts)

    return str(Builder().add("a", "b").add("c", sep="-").add(*("d",) * x)), f"{Builder().add('q')}"


@case((5,))
def context_of_new(x):
    class Single:
        instance = None

        def __new__(cls, *args):
            if cls.instance is None:
                cls.instance = super().__new__(cls)
            return cls.instance

        def __init__(self, value):
            self.value = value

    a, b = Single(x), Single(x + 1)
    return a is b, a.value


@case((5,))
def not_implemented_both_ways(x):
    class Left:
        def __sub__(self, other):
            return NotImplemented

    class Right:
        def __rsub__(self, other):
            return "right"

    return Left() - Right(), Left() == Right(), x - Right()


@case((5,))
def unsupported_operands(x):
    return x + "a"
