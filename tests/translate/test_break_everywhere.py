"""A graph break may come at any instruction: wherever it comes, the program does what it does in plain Python."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from minidynamo import config
from minidynamo.pycode.lift import lift
from minidynamo.translate.handlers.control import CONDITIONAL
from minidynamo.translate.root import PLAIN_OPS
from tests.eager import Module, check
from tests.translate.breaking import at, breaking, everywhere
from tests.translate.programs import PROGRAMS


@pytest.fixture(autouse=True)
def without_metadata_checks() -> Iterator[None]:
    """Operators are checked by other tests; these compile thousands of frames."""
    with config.patch(verify=False):
        yield


NAMES = list(PROGRAMS)
STEPS = frozenset((*PLAIN_OPS, *CONDITIONAL, "FOR_ITER"))


def code_length(source: str) -> int:
    fn = Module(source).names["f"]
    return len(lift(fn.__code__).instructions)


@pytest.mark.parametrize("name", NAMES)
def test_a_program_without_further_breaks(name):
    source, calls = PROGRAMS[name]
    check(source, *calls)


def break_at(name: str, indexes: range, plain: bool) -> None:
    source, calls = PROGRAMS[name]
    for index in indexes:
        with breaking(at("f", index, plain)):
            try:
                check(source, *calls, warns=True)
            except AssertionError as error:
                raise AssertionError(f"break at instruction {index}: {error}") from None


def some(name: str) -> range:
    """Every thirteenth instruction, beginning somewhere else in each program."""
    return range(NAMES.index(name) % 13, code_length(PROGRAMS[name][0]), 13)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_break_at_instructions_in_turn(name):
    break_at(name, some(name), plain=NAMES.index(name) % 2 == 1)


@pytest.mark.slow
@pytest.mark.parametrize("plain", [False, True], ids=["compiled", "plain"])
@pytest.mark.parametrize("name", NAMES)
def test_a_break_at_each_instruction(name, plain):
    break_at(name, range(code_length(PROGRAMS[name][0])), plain)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_break_at_every_operation(name):
    source, calls = PROGRAMS[name]
    with breaking(everywhere(STEPS)) as translated:
        check(source, *calls, warns=True)
    assert translated
