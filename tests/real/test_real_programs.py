"""Real programs, captured: equal to eager in results, gradients and state, with exactly the committed counts."""

from __future__ import annotations

import importlib.util
import warnings
from typing import Any

import pytest

from minidynamo.exc import MinidynamoWarning
from tests.real.measure import LIBRARY, OWN, captured, cases, differences, read_table

QUICK = ("mlp", "vae")
HAVE_LIBRARY = importlib.util.find_spec("transformers") is not None
needs_library = pytest.mark.skipif(not HAVE_LIBRARY, reason="transformers is not installed")
FOUND = cases(OWN)
FOUND_IN_LIBRARY = cases(LIBRARY) if HAVE_LIBRARY else {}


def params(found: dict[str, Any]) -> list[Any]:
    return [
        pytest.param(
            case, phase, id=f"{case.name}-{phase}", marks=[] if case.name in QUICK else [pytest.mark.slow]
        )
        for case in found.values()
        for phase in case.phases
    ]


def check(case: Any, phase: str) -> None:
    expected = case.run(phase, lambda fn: fn)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        found = captured(case, phase)
    own = [str(warning.message) for warning in told if issubclass(warning.category, MinidynamoWarning)]
    assert not own, own
    assert not (different := list(differences(expected, found.result))), different[:5]
    assert found.counts == read_table()[case.name, phase][0], found.reasons


@pytest.mark.slow
@pytest.mark.parametrize(("case", "phase"), params(FOUND))
def test_a_program_of_our_own(case, phase):
    check(case, phase)


@needs_library
@pytest.mark.parametrize(("case", "phase"), params(FOUND_IN_LIBRARY))
def test_a_program_of_a_library(case, phase):
    check(case, phase)


def test_no_program_has_more_graphs_or_breaks_than_with_torch_compile():
    """The peer leaves recurrent layers to plain Python, without a graph or a break."""
    more = {
        (name, phase)
        for (name, phase), (own, peer) in read_table().items()
        if own.breaks > peer.breaks or own.graphs > max(peer.graphs, 1)
    }
    assert not more


@needs_library
def test_the_table_has_every_program():
    assert list(read_table()) == [(case.name, phase) for case in cases().values() for phase in case.phases]
