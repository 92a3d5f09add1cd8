"""One small program for each canonical instruction: its handler runs, the frame is one graph, the result is plain Python's."""

from __future__ import annotations

import types
from collections.abc import Iterator
from typing import Any

import pytest

from minidynamo.pycode.canon import CANON
from minidynamo.pycode.lift import lift
from minidynamo.translate.handlers import HANDLERS, NOT_CAPTURED
from tests.eager import Module, check

# instruction -> (body of f(x, n), names around it). `x` is a tensor of shape (2,), `n` is 3.
ROWS: dict[str, str] = {
    "BEFORE_WITH": "with Manager() as m:\n  x = x + m\n return x",
    "BINARY_OP": "return x * n + 1",
    "BINARY_SUBSCR": "return x[0]",
    "BUILD_CONST_KEY_MAP": "d = {'a': x, 'b': n}\n return d['a'] * d['b']",
    "BUILD_LIST": "return [x + 1, n]",
    "BUILD_MAP": "d = {'a': x}\n return d['a'] + 1",
    "BUILD_SET": "s = {n, 4}\n return x + len(s), 4 in s",
    "BUILD_SLICE": "return x[n - 3 : n]",
    "BUILD_STRING": "return x + 1, f'{n}|{n}'",
    "BUILD_TUPLE": "return x + 1, n",
    "CALL": "return twice(x)",
    "CALL_FUNCTION_EX": "return twice(*[x], **{'by': n})",
    "CALL_KW": "return twice(x, by=n)",
    "CHECK_EXC_MATCH": "try:\n  raise KeyError\n except KeyError:\n  return x + 1",
    "CLEANUP_THROW": "g = delegate(x)\n y = next(g)\n try:\n  g.throw(KeyError)\n except StopIteration as e:\n  return y + e.value",
    "COMPARE_OP": "return x < n, n == 3",
    "CONTAINS_OP": "return x + 1, n in (1, 3), n not in [3]",
    "CONVERT_VALUE": "return x + 1, f'{n!r}'",
    "COPY": "a = b = x + 1\n return a, b",
    "COPY_FREE_VARS": "def g():\n  return x + n\n return g()",
    "DELETE_ATTR": "o = Manager()\n o.b = x\n del o.b\n o.b = x + 1\n return o.b",
    "DELETE_FAST": "y = x + 1\n z = y\n del y\n return z",
    "DELETE_SUBSCR": "l = [x, n]\n del l[1]\n return l[0] + len(l)",
    "DICT_MERGE": "return twice(x, **{'by': n})",
    "DICT_UPDATE": "d = {**{'a': x}, 'b': n}\n return d['a'] * d['b']",
    "END_SEND": "return list(delegate(x + 1))",
    "FORMAT_SIMPLE": "return x + 1, f'{n}'",
    "FORMAT_WITH_SPEC": "return x + 1, f'{n:03}'",
    "FOR_ITER": "for i in range(n):\n  x = x + i\n return x",
    "GET_ITER": "for i in (1, 2):\n  x = x + i\n return x",
    "GET_LEN": "match (n, n):\n  case (a, b):\n   return x + a",
    "GET_YIELD_FROM_ITER": "return list(delegate(x + 1))",
    "IMPORT_FROM": "from math import pi\n return x * pi",
    "IMPORT_NAME": "import math\n return x * math.pi",
    "IS_OP": "return x + 1, x is None, n is not None",
    "JUMP": "for i in range(n):\n  if i:\n   x = x + i\n  else:\n   x = x * 2\n return x",
    "LIST_APPEND": "return [x + i for i in range(2)]",
    "LIST_EXTEND": "return [x + 1, *(n, n)]",
    "LIST_TO_TUPLE": "return (x + 1, *(n, n))",
    "LOAD_ATTR": "return x + x.shape[0]",
    "LOAD_BUILD_CLASS": "y = x + 1\n class A:\n  k = 2\n return y * A.k",
    "LOAD_CLOSURE": "y = x + 1\n def g():\n  return y\n return g()",
    "LOAD_CONST": "return x + 1",
    "LOAD_DEREF": "y = x + 1\n def g():\n  return y\n return g()",
    "LOAD_FAST": "return x + n",
    "LOAD_FAST_AND_CLEAR": "return [x + i for i in range(2)]",
    "LOAD_GLOBAL": "return x + scale",
    "LOAD_SUPER_ATTR": "return Derived().scaled(x)",
    "LOAD_SPECIAL": "with Manager() as m:\n  x = x + m\n return x",
    "MAKE_CELL": "def g():\n  return x + n\n return g()",
    "MAKE_FUNCTION": "g = lambda v: v + 1\n return g(x)",
    "MAP_ADD": "d = {i: x + i for i in range(2)}\n return d[1]",
    "MATCH_CLASS": "match n:\n  case str():\n   return x\n  case int(k):\n   return x + k",
    "MATCH_KEYS": "match {'a': n}:\n  case {'b': k}:\n   return x\n  case {'a': k}:\n   return x + k",
    "MATCH_MAPPING": "match {'a': n}:\n  case [a]:\n   return x\n  case {}:\n   return x + 1",
    "MATCH_SEQUENCE": "match (n, n):\n  case (a, b):\n   return x + b",
    "POP_EXCEPT": "try:\n  raise KeyError\n except KeyError:\n  x = x + 1\n return x * 2",
    "POP_JUMP_IF_FALSE": "if n > 1:\n  x = x + 1\n return x * 2",
    "POP_JUMP_IF_NONE": "if n is not None:\n  x = x + 1\n return x * 2",
    "POP_JUMP_IF_NOT_NONE": "if n is None:\n  x = x + 1\n return x * 2",
    "POP_JUMP_IF_TRUE": "if not n > 1:\n  x = x + 1\n return x * 2",
    "POP_TOP": "x + 1\n return x * 2",
    "PUSH_EXC_INFO": "try:\n  raise KeyError\n except:\n  return x + 1",
    "PUSH_NULL": "return twice(x)",
    "RAISE_VARARGS": "try:\n  raise KeyError(n)\n except KeyError as e:\n  return x + e.args[0]",
    "RERAISE": "try:\n  try:\n   raise KeyError\n  finally:\n   x = x + 1\n except KeyError:\n  return x * 2",
    "RETURN_GENERATOR": "return list(count(x, 2))",
    "RETURN_VALUE": "return x + 1",
    "SEND": "return list(delegate(x + 1))",
    "SET_ADD": "s = {i % 2 for i in range(n)}\n return x + len(s)",
    "SET_FUNCTION_ATTRIBUTE": "def g(v, w=n):\n  return v + w\n return g(x)",
    "SET_UPDATE": "s = {n, *(4, 5)}\n return x + len(s)",
    "STORE_ATTR": "o = Manager()\n o.b = x + 1\n return o.b * 2",
    "STORE_DEREF": "y = x + 1\n def g():\n  return y\n y = y * 2\n return g()",
    "STORE_FAST": "y = x + 1\n return y * 2",
    "DELETE_DEREF": "y = x + 1\n def g():\n  return y\n z = g() * 2\n del y\n return z",
    "DELETE_GLOBAL": "global total\n total = x + 1\n y = total * 2\n del total\n return y",
    "STORE_GLOBAL": "global total\n total = x + 1\n return total * 2",
    "STORE_SUBSCR": "l = [x, n]\n l[1] = x + 1\n return l",
    "SWAP": "a, b, c = x, n, x + 1\n a, b, c = c, a, b\n return a.neg(), b, c",
    "UNARY_INVERT": "return x + ~n",
    "UNARY_NEGATIVE": "return -x",
    "UNARY_NOT": "return x + 1, not n",
    "UNARY_POSITIVE": "return +x",
    "UNPACK_EX": "a, *b = x, n, n\n return a + len(b)",
    "UNPACK_SEQUENCE": "a, b = x\n return a + b",
    "WITH_EXCEPT_START": "with Manager():\n  raise KeyError\n return x + 1",
    "YIELD_VALUE": "return list(count(x, 2))",
}
# Instructions that are executed, and whose value then can do nothing else than break the graph.
BREAKS = {"LOAD_BUILD_CLASS": "MD248"}
AROUND = """
class Base:
    def scaled(self, x):
        return x * 2
class Derived(Base):
    def scaled(self, x):
        return super(Derived, self).scaled(x) + 1
scale = 2
total = None

class Manager:
    def __enter__(self):
        return 3
    def __exit__(self, kind, value, trace):
        return True

def twice(v, by=2):
    return v * by

def count(v, n):
    for i in range(n):
        yield v + i

def caught(v):
    try:
        yield v
    except KeyError:
        v = v * 2
    return v

def delegate(v):
    return (yield from caught(v))

"""


def codes(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            yield from codes(const)


def program(opname: str) -> str:
    return f"{AROUND}def f(x, n):\n {ROWS[opname]}\n"


def test_every_canonical_instruction_has_a_handler_or_a_reason():
    assert set(HANDLERS) | set(NOT_CAPTURED) == set(CANON)
    assert not set(HANDLERS) & set(NOT_CAPTURED)


@pytest.mark.parametrize("opname", sorted(HANDLERS))
def test_the_handler_does_what_the_instruction_does(opname, monkeypatch):
    source = program(opname)
    names = {
        inst.opname for code in codes(compile(source, "<source>", "exec")) for inst in lift(code).instructions
    }
    if opname not in names:
        pytest.skip("this CPython has another instruction for it")
    runs: list[Any] = []
    handler = HANDLERS[opname]

    def counted(tx: Any, inst: Any) -> None:
        runs.append(inst)
        handler(tx, inst)

    monkeypatch.setitem(HANDLERS, opname, counted)
    seen = check(source, "f(T(2), 3)")
    if opname in BREAKS:
        assert runs and seen.reasons == [BREAKS[opname]]
        return
    assert runs and not seen.breaks and not seen.skipped
    assert seen.graphs == 1


def test_the_program_of_an_instruction_is_loaded_with_its_names():
    assert Module(program("CALL")).names["twice"](2) == 4
