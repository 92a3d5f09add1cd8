"""Exception and line tables: written as CPython reads them."""

from __future__ import annotations

import dis

import pytest

from minidynamo.pycode.tables import (
    ExceptionEntry,
    Position,
    build_exception_table,
    build_line_table,
    parse_exception_table,
    prefix_line_table,
)
from tests.pycode.stdlib import sample

CODES = [code for code in sample() if code.co_exceptiontable][:200]


def test_exception_tables_of_the_library():
    for code in CODES:
        entries = parse_exception_table(code.co_exceptiontable)
        assert build_exception_table(entries) == code.co_exceptiontable
        theirs = dis._parse_exception_table(code)  # type: ignore[attr-defined]
        assert [tuple(e) for e in entries] == [(e.start, e.end, e.target, e.depth, e.lasti) for e in theirs]


def test_large_numbers():
    entries = [ExceptionEntry(0, 2, 4_000_000, 70, True), ExceptionEntry(128, 10_000, 0, 0, False)]
    assert parse_exception_table(build_exception_table(entries)) == entries


@pytest.mark.parametrize("cut", [1, 2, 3])
def test_exception_table_that_ends_early(cut):
    table = build_exception_table([ExceptionEntry(2, 200, 400, 3, False)])
    with pytest.raises(ValueError, match="ends within an entry"):
        parse_exception_table(table[:-cut])


@pytest.mark.parametrize(
    "position",
    [
        Position(),
        Position(7),
        Position(100, 100, 3, 9),
        Position(101, 101, 0, 0),
        Position(90, 95, 200, 4),
        Position(100, 100, 300, 3000),
    ],
)
@pytest.mark.parametrize("units", [1, 8, 21])
def test_positions_read_back(position, units):
    code = compile("x\n\ny", "<test>", "exec")
    runs = [(Position(3, 3, 1, 2), 2), (position, units), (Position(4), 1)]
    table = build_line_table(runs, 1)
    padded = code.replace(co_code=bytes(2 * (3 + units)), co_linetable=table, co_firstlineno=1)
    wanted = [place for place, count in runs for _ in range(count)]
    full = [(p.line, p.end_line if p.end_line is not None else p.line, p.col, p.end_col) for p in wanted]
    assert list(padded.co_positions()) == full


def test_prefix():
    """The lines and columns behind the prefix stay, on every line table of the sample."""
    for code in CODES:
        where = Position(code.co_firstlineno + 9, code.co_firstlineno + 9, 4, 12)
        table = prefix_line_table(code.co_linetable, where, 5, code.co_firstlineno)
        longer = code.replace(co_code=bytes(10) + code.co_code, co_linetable=table)
        positions = list(longer.co_positions())
        assert positions[:5] == [(where.line, where.end_line, where.col, where.end_col)] * 5
        assert positions[5:] == list(code.co_positions())
        assert len(table) - len(code.co_linetable) < 24  # the rest is the same bytes


def test_prefix_without_a_position():
    code = CODES[0]
    table = prefix_line_table(code.co_linetable, Position(), 3, code.co_firstlineno)
    longer = code.replace(co_code=bytes(6) + code.co_code, co_linetable=table)
    assert list(longer.co_positions()) == [(None,) * 4] * 3 + list(code.co_positions())
