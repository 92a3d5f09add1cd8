"""Reading and writing of the exception table and the line table of a code object.

Formats: CPython's Objects/exception_handling_notes.txt and Objects/locations.md (code_locations.md from
3.14), the same from 3.11 on. Offsets are bytes everywhere in this module; the tables themselves count code
units of two bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

UNIT = 2  # bytes of a code unit


class ExceptionEntry(NamedTuple):
    """Instructions in [start, end) jump to `target` with the stack cut to `depth`, the instruction number
    pushed if `lasti`."""

    start: int
    end: int
    target: int
    depth: int
    lasti: bool


def parse_exception_table(table: bytes) -> list[ExceptionEntry]:
    """The entries of `co_exceptiontable` in order. Raises ValueError on a table that ends within an entry."""
    entries: list[ExceptionEntry] = []
    fields: list[int] = []
    position, size = 0, len(table)
    while position < size:
        value, more = 0, True
        while more:
            if position >= size:
                raise ValueError("exception table ends within an entry")
            byte = table[position]
            position += 1
            value = value << 6 | byte & 63
            more = bool(byte & 64)
        fields.append(value)
        if len(fields) == 4:
            start, length, target, packed = fields
            entries.append(
                ExceptionEntry(
                    start * UNIT, (start + length) * UNIT, target * UNIT, packed >> 1, bool(packed & 1)
                )
            )
            fields.clear()
    if fields:
        raise ValueError("exception table ends within an entry")
    return entries


def build_exception_table(entries: Iterable[ExceptionEntry]) -> bytes:
    """The inverse of `parse_exception_table`. Entries must be in order of `start` and must not overlap."""
    out = bytearray()
    for entry in entries:
        fields = (
            entry.start // UNIT,
            (entry.end - entry.start) // UNIT,
            entry.target // UNIT,
            entry.depth << 1 | entry.lasti,
        )
        for number, value in enumerate(fields):
            first = 128 if number == 0 else 0  # marks the beginning of an entry
            shift = max(0, (value.bit_length() - 1) // 6 * 6)
            while shift:
                out.append(first | 64 | value >> shift & 63)
                first, shift = 0, shift - 6
            out.append(first | value & 63)
    return bytes(out)


@dataclass(frozen=True, slots=True)
class Position:
    """A place in the source; None where it is not known. Columns are bytes."""

    line: int | None = None
    end_line: int | None = None
    col: int | None = None
    end_col: int | None = None


_NO_LOCATION, _LONG, _NO_COLUMNS, _ONE_LINE = 15, 14, 13, 10


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 63:
        out.append(64 | value & 63)
        value >>= 6
    out.append(value)
    return bytes(out)


def _signed(value: int) -> bytes:
    return _varint(-value << 1 | 1 if value < 0 else value << 1)


def _read_varint(table: bytes, position: int) -> tuple[int, int]:
    value, shift = 0, 0
    while True:
        byte = table[position]
        position += 1
        value |= (byte & 63) << shift
        shift += 6
        if not byte & 64:
            return value, position


def _read_signed(table: bytes, position: int) -> tuple[int, int]:
    value, position = _read_varint(table, position)
    return (-(value >> 1) if value & 1 else value >> 1), position


def location_entry(position: Position, units: int, line: int) -> tuple[bytes, int]:
    """Entries for `units` code units at `position`; `line` is the line so far. Returns (bytes, line so far
    after it)."""
    out = bytearray()
    now = line
    while units > 0:
        count = min(units, 8)
        units -= count
        size = count - 1
        if position.line is None:
            out.append(128 | _NO_LOCATION << 3 | size)
            continue
        delta, now = position.line - now, position.line
        if position.col is None or position.end_col is None or position.end_line is None:
            out.append(128 | _NO_COLUMNS << 3 | size)
            out += _signed(delta)
            continue
        out.append(128 | _LONG << 3 | size)
        out += _signed(delta) + _varint(position.end_line - position.line)
        out += _varint(position.col + 1) + _varint(position.end_col + 1)
    return bytes(out), now


def build_line_table(runs: Sequence[tuple[Position, int]], first_line: int) -> bytes:
    """A line table from (position, number of code units) in order."""
    out, line = bytearray(), first_line
    for position, units in runs:
        data, line = location_entry(position, units, line)
        out += data
    return bytes(out)


def prefix_line_table(table: bytes, position: Position, units: int, first_line: int) -> bytes:
    """`table` with `units` code units at `position` put before it.

    An entry's line counts from the entry before, so the first entry of `table` that has a line is written
    anew; the rest stays byte for byte.
    """
    head, line = location_entry(position, units, first_line)
    at = 0
    while at < len(table):
        begin, code, count = at, table[at] >> 3 & 15, (table[at] & 7) + 1
        at += 1
        if code == _NO_LOCATION:
            head += table[begin:at]
            continue
        place, at = _entry_position(table, at, code, table[begin], first_line)
        data, _ = location_entry(place, count, line)
        return head + data + table[at:]
    return head


def _entry_position(table: bytes, at: int, code: int, first: int, line: int) -> tuple[Position, int]:
    """Decode one entry whose first byte is `first` and whose other bytes begin at `at`."""
    if code == _LONG:
        delta, at = _read_signed(table, at)
        down, at = _read_varint(table, at)
        col, at = _read_varint(table, at)
        end, at = _read_varint(table, at)
        line += delta
        return Position(line, line + down, col - 1 if col else None, end - 1 if end else None), at
    if code == _NO_COLUMNS:
        delta, at = _read_signed(table, at)
        return Position(line + delta), at
    if code >= _ONE_LINE:
        line += code - _ONE_LINE
        return Position(line, line, table[at], table[at + 1]), at + 2
    start = code << 3 | table[at] >> 4
    return Position(line, line, start, start + (table[at] & 15)), at + 1
