"""Whatever the program, captured and plain Python cannot be told apart."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings

import minidynamo
from minidynamo import config
from tests.differential.programs import CALLS, numbered, programs
from tests.eager import check

COMMON = settings(deadline=None, database=None, suppress_health_check=list(HealthCheck), derandomize=True)


def compare(source: str) -> None:
    minidynamo.reset()
    try:
        check(source, *CALLS, warns=True)
    except AssertionError as error:
        raise AssertionError("\n".join([str(error), *numbered(source)])) from None


@pytest.fixture(autouse=True)
def without_metadata_checks() -> Iterator[None]:
    """Each operator's metadata is checked by other tests, and it is slow."""
    with config.patch(verify=False):
        yield


@settings(COMMON, max_examples=40)
@given(programs())
def test_random_programs_behave_as_in_plain_python(source):
    compare(source)


@pytest.mark.nightly
@settings(COMMON, max_examples=1500, derandomize=False)
@given(programs())
def test_many_random_programs_behave_as_in_plain_python(source):
    compare(source)
