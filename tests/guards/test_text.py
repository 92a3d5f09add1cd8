"""Rows and text are the same thing in two spellings."""

from __future__ import annotations

import ast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minidynamo import exc
from minidynamo.guards.leaves import helpers
from minidynamo.guards.rows import KINDS, LITERAL, RELATION, SOURCE, GuardRow, Relation, Sources, derived_path
from minidynamo.guards.text import parse, relation, text
from minidynamo.literals import Ref
from minidynamo.sources import (
    AttrSource,
    ClosureSource,
    GlobalSource,
    GlobalsSource,
    ItemSource,
    LocalSource,
    SizeSource,
    StateSource,
)
from tests.constants import constants, keys, local_names, sources

X, Y = LocalSource("x"), LocalSource("y")
TEMPLATES = ["{0} * 2 <= {1}", "{0} % 8 == 0", "({0} + {1}) // 2 > 1 and {0} != 3", "___max({0}, {1}) < 100"]
relations = st.builds(lambda t, a, b: relation(t, a, b), st.sampled_from(TEMPLATES), sources, sources)
HOLES = {LITERAL: constants, SOURCE: sources, RELATION: relations}


@st.composite
def rows(draw):
    kind = draw(st.sampled_from(sorted(KINDS)))
    several = st.lists(sources, min_size=1, max_size=3).map(lambda s: Sources(tuple(s)))
    literals = tuple(draw(HOLES.get(hole, several)) for hole in KINDS[kind].holes)
    if "{path}" in KINDS[kind].template:
        return GuardRow(kind, draw(sources), literals)
    return GuardRow(kind, derived_path(kind, literals), literals)


@given(rows())
@settings(max_examples=200, deadline=None)
def test_parse_inverts_text(row):
    assert parse(text(row)) == row


@given(rows())
@settings(max_examples=60, deadline=None)
def test_text_names_nothing_but_helpers_and_locals(row):
    known = helpers().keys() | {"___globals", "___builtins", "___closure"}
    names = {node.id for node in ast.walk(ast.parse(text(row))) if isinstance(node, ast.Name)}
    reserved = {
        name for name in names if name.startswith("___") and not name[3:].startswith(("stack", "free"))
    }
    assert reserved <= known


@given(local_names, keys)
def test_equal_rows_have_equal_hashes(name, key):
    first, second = (GuardRow("SAME_MATCH", LocalSource(name), (key,)) for _ in range(2))
    assert first == second and hash(first) == hash(second)


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        (GuardRow("TYPE_MATCH", Y, (94367738391392,)), "___check_type_id(y, 94367738391392)"),
        (GuardRow("EQUALS_MATCH", Y, (2,)), "y == 2"),
        (GuardRow("CONSTANT_MATCH", X, (None,)), "x is None"),
        (GuardRow("SAME_MATCH", X, (-0.0,)), "___same(x, -0.0)"),
        (GuardRow("DUPLICATE_INPUT", X, (Y,)), "x is y"),
        (GuardRow("NO_ALIAS", X, (Y,)), "x is not y"),
        (GuardRow("DISTINCT", X, (Sources((X,)), Sources((Y, X)))), "___distinct((x,), (y, x,))"),
        (GuardRow("DISTINCT", X, (Sources((X, Y)), Sources(()))), "___distinct((x, y,), ())"),
        (GuardRow("GLOBAL_ABSENT", GlobalsSource(), ("len",)), "'len' not in ___globals"),
        (GuardRow("DICT_CONTAINS", X, ("k",)), "'k' in x"),
        (GuardRow("DICT_NOT_CONTAINS", X, (Ref(7),)), "___ref[7] not in x"),
        (GuardRow("GLOBAL_STATE", StateSource(), (49, "float32")), "___check_global_state(49, 'float32')"),
        (GuardRow("LENGTH", ItemSource(X, 0), (3,)), "___len(x[0]) == 3"),
        (GuardRow("EQUALS_MATCH", ClosureSource("k", 0), (1,)), "___closure[0].cell_contents == 1"),
        (
            GuardRow("TYPE_MATCH", ItemSource(AttrSource(GlobalSource("m"), "__dict__"), "k"), (1,)),
            "___check_type_id(___globals['m'].__dict__['k'], 1)",
        ),
        (GuardRow("HASATTR", AttrSource(X, "cfg"), ("scale",)), "___hasattr(___attr(x, 'cfg'), 'scale')"),
    ],
)
def test_rows_read_like_sentences(row, expected):
    assert text(row) == expected
    assert parse(expected) == row


def test_rows_differ_where_equality_does_not():
    one, true, real = (GuardRow("EQUALS_MATCH", X, (value,)) for value in (1, True, 1.0))
    assert len({one, true, real}) == 3
    assert GuardRow("SAME_MATCH", X, (0.0,)) != GuardRow("SAME_MATCH", X, (-0.0,))
    nan = float("nan")
    assert GuardRow("SAME_MATCH", X, (nan,)) == GuardRow("SAME_MATCH", X, (float("nan"),))


def test_a_relation_has_one_normal_form():
    a, b = SizeSource(X, 0), SizeSource(Y, 1)
    made = relation("( {1} )*2<={0}", a, b)
    assert made == Relation("{0} * 2 <= {1}", (b, a))
    row = GuardRow("SHAPE_ENV", b, (made,))
    assert text(row) == "___holds(___size(y, 1) * 2 <= ___size(x, 0))"


@pytest.mark.parametrize(
    "template", ["print({0})", "{0}.real", "[{0}]", "1 < 2", "{0} if {0} else 1", "{0} +"]
)
def test_what_is_no_relation_is_refused(template):
    with pytest.raises(exc.InternalError, match="no relation between numbers"):
        relation(template, SizeSource(X, 0))


@pytest.mark.parametrize(
    "source", ["x", "f(x)", "x == y == 2", "x.a == 2", "___nothing(x, 1)", "x ==", "x == y"]
)
def test_text_of_no_kind_is_refused(source):
    with pytest.raises(exc.InternalError):
        parse(source)


def test_a_source_pickles_without_what_belongs_to_the_process():
    import pickle

    source = ItemSource(AttrSource(LocalSource("x"), "cfg"), "k")
    before = pickle.dumps(source)
    assert hash(source) and source.name()
    assert pickle.dumps(source) == before
    assert pickle.loads(before) == source
