"""Listings: every original and every canonical instruction appears exactly once."""

from __future__ import annotations

import dis

import pytest
import torch

import minidynamo
from minidynamo.debug.listing import bytecode_lines, lift_rows, prologue_length
from minidynamo.pycode.lift import lift


def loops(items, *, start=0):
    total = start
    for item in items:
        if item is None:
            continue
        total += max(item, key=len) if isinstance(item, str) else item
    return [total for _ in range(3)]


def jumps(x):
    try:
        with open(x) as file:
            return f"{file.read()!r:>10}"
    except OSError as error:
        return error


def many_names():
    return [f"a{i}" for i in range(300)]


LONG = compile("\n".join(f"{name} = {index}" for index, name in enumerate(many_names())), "long", "exec")


@pytest.mark.parametrize("code", [loops.__code__, jumps.__code__, LONG], ids=["loops", "jumps", "long"])
def test_nothing_is_lost(code):
    rows = lift_rows(code)
    shown = [text for row in rows for text in row.canonical]
    assert sorted(int(text.split()[0]) for text in shown) == list(range(len(lift(code).instructions)))
    assert [row.offset for row in rows if row.offset is not None] == [
        i.offset for i in dis.get_instructions(code)
    ]
    assert len(bytecode_lines(code)) == len(list(dis.get_instructions(code)))


def test_source_stands_at_the_first_instruction_of_its_line():
    sources = [row.source for row in lift_rows(loops.__code__) if row.source]
    assert "total = start" in sources and "continue" in sources


def test_a_resume_function_shows_its_prologue_and_the_original():
    @minidynamo.optimize("eager")
    def f(x):
        y = x * 2
        print(end="")
        return y + 1

    f(torch.ones(2))
    (entry,) = minidynamo.cache_entries(f)
    (code,) = entry.guarded.resumes
    original = f.__wrapped__.__code__
    length = prologue_length(code)
    assert code.co_code[length:] == original.co_code and prologue_length(original) == 0
    rows = lift_rows(code)
    assert [row.origin for row in rows if row.offset is not None and row.offset >= length] == [
        i.offset for i in dis.get_instructions(original)
    ]
    assert {row.origin for row in rows if row.offset is not None and row.offset < length} == {None}


def test_nested_code_is_shown_by_name():
    def make():
        return lambda: 1

    rows = lift_rows(make.__code__)
    assert any(row.original == "LOAD_CONST <code <lambda>>" for row in rows)
    assert all(" at 0x" not in text for row in rows for text in (row.original, *row.canonical))
