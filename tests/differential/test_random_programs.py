"""Whatever the program, captured and plain Python cannot be told apart."""

from __future__ import annotations

import types
import zlib
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings

import minidynamo
from minidynamo import config
from minidynamo.translate.plan import Decision
from tests.differential.programs import CALLS, numbered, programs
from tests.eager import check
from tests.translate.breaking import Chooser, breaking, decision, instructions
from tests.translate.test_break_everywhere import STEPS

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


def scattered(source: str) -> Chooser:
    """Breaks at a fifth of the operations of `f` and of its resume functions; some leave all that follows to plain Python."""
    salt = zlib.crc32(source.encode())

    def choose(code: types.CodeType) -> dict[int, Decision]:
        return {
            inst.index: decision(plain=(inst.index + salt) % 23 == 0)
            for inst in instructions(code)
            if code.co_name == "f" and inst.opname in STEPS and (inst.index * 7 + salt) % 5 == 0
        }

    return choose


@settings(COMMON, max_examples=15)
@given(programs())
def test_random_programs_with_random_breaks_behave_as_in_plain_python(source):
    with breaking(scattered(source)):
        compare(source)


@pytest.mark.nightly
@pytest.mark.timeout(1200)
@settings(COMMON, max_examples=600, derandomize=False)
@given(programs())
def test_many_random_programs_with_random_breaks_behave_as_in_plain_python(source):
    with breaking(scattered(source)):
        compare(source)


@pytest.mark.nightly
@pytest.mark.timeout(1200)
@settings(COMMON, max_examples=1500, derandomize=False)
@given(programs())
def test_many_random_programs_behave_as_in_plain_python(source):
    compare(source)
