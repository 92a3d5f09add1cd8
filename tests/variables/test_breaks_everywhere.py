"""The programs of this directory's newer kinds, with a graph break at every operation: every value is rebuilt on the way."""

from __future__ import annotations

import pytest

from minidynamo import config
from minidynamo.pycode.lift import lift
from tests.eager import Module, Program, check
from tests.translate.breaking import at, breaking, everywhere
from tests.translate.test_break_everywhere import STEPS
from tests.variables import test_dicts, test_enums, test_methods, test_namedtuples, test_partials, test_sets

MODULES = (test_sets, test_dicts, test_partials, test_methods, test_namedtuples, test_enums)
PROGRAMS = [
    pytest.param(*program.values, id=f"{module.__name__.rpartition('_')[2]}: {program.id}")
    for module in MODULES
    for program in module.PROGRAMS
]


@pytest.mark.slow
@pytest.mark.parametrize("program", PROGRAMS)
def test_a_break_at_every_operation(program: Program):
    with config.patch(verify=False), breaking(everywhere(STEPS)) as translated:
        check(program.source, *program.calls, warns=True)
    assert translated


@pytest.mark.slow
@pytest.mark.parametrize("plain", [False, True], ids=["compiled", "plain"])
@pytest.mark.parametrize("program", PROGRAMS)
def test_a_break_at_each_instruction(program: Program, plain: bool):
    code = Module(program.source).names["f"].__code__
    for index in range(len(lift(code).instructions)):
        with config.patch(verify=False), breaking(at("f", index, plain)):
            check(program.source, *program.calls, warns=True)
