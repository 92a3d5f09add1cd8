"""The table of canonical instructions."""

from __future__ import annotations

import pytest

from minidynamo.pycode.canon import ARG_KINDS, CANON, JUMPS, TERMINATORS, _row
from tests.pycode.interp import HANDLERS

# Only generators, coroutines, class bodies and modules use these; the interpreter runs functions.
NOT_INTERPRETED = frozenset(
    """LOAD_NAME STORE_NAME DELETE_NAME LOAD_LOCALS SETUP_ANNOTATIONS LOAD_FROM_DICT_OR_DEREF
    LOAD_FROM_DICT_OR_GLOBALS RETURN_GENERATOR YIELD_VALUE SEND END_SEND CLEANUP_THROW GET_YIELD_FROM_ITER
    GET_AWAITABLE GET_AITER GET_ANEXT END_ASYNC_FOR BEFORE_ASYNC_WITH ASYNC_GEN_WRAP CALL_INTRINSIC_1
    BUILD_TEMPLATE BUILD_INTERPOLATION""".split()
)


def test_rows():
    for number, (name, row) in enumerate(CANON.items()):
        assert (row.name, row.opcode) == (name, number)
        assert row.arg_kind in ARG_KINDS and row.doc
        assert (row.arg_kind == "jump") == (row.jump_effect is not None) == (name in JUMPS)


def test_every_row_has_an_interpreter():
    assert set(HANDLERS) == set(CANON) - NOT_INTERPRETED


@pytest.mark.parametrize(
    ("name", "arg", "effect"),
    [
        ("BUILD_TUPLE", 3, -2),
        ("BUILD_MAP", 2, -3),
        ("CALL", 2, -3),
        ("CALL_KW", 2, -4),
        ("CALL_FUNCTION_EX", 1, -3),
        ("UNPACK_SEQUENCE", 3, 2),
        ("UNPACK_EX", 1 | 2 << 8, 3),
        ("BUILD_INTERPOLATION", 1, -2),
        ("FOR_ITER", None, 1),
    ],
)
def test_effects(name, arg, effect):
    assert CANON[name].effect(arg) == effect


def test_jump_effects():
    assert CANON["FOR_ITER"].effect(None, jump=True) == 0
    with pytest.raises(ValueError, match="does not jump"):
        CANON["POP_TOP"].effect(None, jump=True)
    assert TERMINATORS <= set(CANON)


def test_no_second_row():
    with pytest.raises(ValueError, match="duplicate"):
        _row("POP_TOP", "none", -1, "again")
    with pytest.raises(ValueError, match="argument kind"):
        _row("NEW", "strange", 0, "never")
    assert "NEW" not in CANON
