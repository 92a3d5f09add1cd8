"""Guards on prefixes first, then the cheap and likely to fail."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minidynamo.guards.order import order
from minidynamo.guards.rows import GuardRow
from minidynamo.guards.text import text
from minidynamo.sources import AttrSource, ItemSource, LocalSource
from tests.constants import sources

X, Y = LocalSource("x"), LocalSource("y")
one_path = st.builds(
    lambda kind, path: GuardRow(kind, path, (1,)),
    st.sampled_from(["TYPE_MATCH", "LENGTH", "HASATTR"]),
    sources,
)
two_paths = st.builds(lambda a, b: GuardRow("NO_ALIAS", a, (b,)), sources, sources)


@pytest.mark.slow
@given(st.lists(st.one_of(one_path, two_paths), max_size=12))
@settings(max_examples=60, deadline=None)
def test_prefixes_go_first_and_nothing_is_lost(rows):
    placed = order(rows)
    assert sorted(map(id, placed)) == sorted(map(id, rows))
    for later, row in enumerate(placed):
        before = {p for path in row.paths() for p in path.prefixes()}
        blocking = [r for r in placed[later + 1 :] if len(r.paths()) == 1 and r.path in before]
        assert not blocking


def test_cheap_kinds_first_and_order_of_making_among_equals():
    deep = ItemSource(AttrSource(X, "layers"), 0)
    rows = [
        GuardRow("LENGTH", AttrSource(X, "layers"), (2,)),
        GuardRow("TYPE_MATCH", deep, (3,)),
        GuardRow("EQUALS_MATCH", Y, (2,)),
        GuardRow("TYPE_MATCH", AttrSource(X, "layers"), (2,)),
        GuardRow("TYPE_MATCH", Y, (1,)),
        GuardRow("TYPE_MATCH", X, (1,)),
    ]
    assert list(map(text, order(rows))) == [
        "___check_type_id(y, 1)",
        "___check_type_id(x, 1)",
        "___check_type_id(___attr(x, 'layers'), 2)",
        "y == 2",
        "___len(___attr(x, 'layers')) == 2",
        "___check_type_id(___attr(x, 'layers')[0], 3)",
    ]


def test_two_relations_on_each_others_prefixes_do_not_wait_for_each_other():
    rows = [GuardRow("NO_ALIAS", X, (AttrSource(Y, "a"),)), GuardRow("NO_ALIAS", Y, (AttrSource(X, "a"),))]
    assert order(rows) == rows
