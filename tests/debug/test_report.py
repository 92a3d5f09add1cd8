"""`report`: the entries of a function as rows, the check_fn as one guard per line."""

from __future__ import annotations

import ast
import io
import itertools

import pytest
import torch

import minidynamo
from minidynamo.debug.frames import begins_at, code_of, compiled_frames
from minidynamo.debug.report import frame_rows, guard_lines, guards_text, report
from minidynamo.debug.show import make_console

FLAG = [1, 2]


@minidynamo.optimize("eager")
def toy_example(a, b):
    x = a / (torch.abs(a) + 1)
    if b.sum() < 0:
        b = b * -1
    return x * b


@minidynamo.optimize("eager")
def with_list(x, items, scale=2.0):
    if len(items) == len(FLAG):
        x = x * scale
    return x + items[0]


def lines_of(fn) -> dict[str, int]:
    """Line number of each source line of this file, by its text."""
    with open(code_of(fn).co_filename) as file:
        return {line.strip(): number for number, line in enumerate(file, 1)}


def call_both_sides(times: int) -> None:
    for sign in itertools.islice(itertools.cycle((1, -1)), times):
        toy_example(torch.ones(3), sign * torch.ones(3))


def test_rows_tell_depth_line_hits_and_break():
    call_both_sides(6)
    first, *resumes = frame_rows(toy_example)
    lines = lines_of(toy_example)
    assert (first.depth, first.hits, first.ops, first.exit) == (0, 5, 5, "break")
    assert first.why == "branch on a tensor's value [MD201]"
    assert first.where.endswith(f"test_report.py:{lines['if b.sum() < 0:']}")
    assert "torch.where" in first.hint
    assert {(r.depth, r.line, r.hits, r.ops, r.exit, r.why) for r in resumes} == {
        (1, lines["b = b * -1"], 2, 2, "return", ""),
        (1, lines["return x * b"], 2, 1, "return", ""),
    }


def test_guards_on_lines_of_their_own_are_the_check_fn():
    with_list(torch.ones(3), [torch.ones(3), 4])
    (entry,) = minidynamo.cache_entries(with_list)
    check = entry.guarded.check
    lines = guard_lines(check)
    text = guards_text(lines).plain
    assert len(text.splitlines()) == len(lines) == len(check.parts) + 1
    assert ast.dump(ast.parse(f"({text}\n)")) == ast.dump(ast.parse(check.source_text))
    words = dict(lines)
    assert words["scale == 2.0"] == "argument scale: 2.0"
    assert words["___len(items) == 2"] == "argument items: length 2"


def test_report_prints_every_entry_and_its_guards():
    call_both_sides(4)
    out = io.StringIO()
    rows = report(toy_example, make_console(out))
    text = out.getvalue()
    assert rows == frame_rows(toy_example)
    assert text.count("guards of ") == 3
    assert text.count("___check_tensors(") == 6
    assert "MD201" in text and "to do: use torch.where" in text
    assert text.index("  1/0 toy_example") < text.index("guards of")


def test_nothing_compiled_is_said():
    out = io.StringIO()
    assert report(lambda x: x, make_console(out)) == []
    assert "<lambda>: nothing is compiled" in out.getvalue()


def test_a_bracket_in_a_guard_is_not_markup():
    with_list(torch.ones(3), [torch.ones(3), 4])
    out = io.StringIO()
    report(with_list, make_console(out))
    assert "items[0]" in out.getvalue()


class Holder:
    def method(self, x):
        return x + 1


class Net(torch.nn.Module):
    def forward(self, x):
        return x


@pytest.mark.parametrize(
    ("fn", "code"),
    [
        (toy_example, toy_example.__wrapped__.__code__),
        (Holder().method, Holder.method.__code__),
        (minidynamo.optimize("eager")(Holder().method), Holder.method.__code__),
        (Net(), Net.forward.__code__),
        (Net.forward.__code__, Net.forward.__code__),
    ],
)
def test_code_of(fn, code):
    assert code_of(fn) is code


@pytest.mark.parametrize("value", [3, None, len, torch.ones(1)])
def test_code_of_refuses_what_has_no_python_code(value):
    with pytest.raises(TypeError, match="a function or code object is needed"):
        code_of(value)


def test_frames_are_those_of_the_public_function():
    call_both_sides(2)
    assert list(compiled_frames(toy_example)) == list(minidynamo.compiled_frames(toy_example))


def test_an_ordinary_code_begins_at_its_def():
    assert begins_at(Holder.method.__code__) == Holder.method.__code__.co_firstlineno


def test_the_text_of_a_program_is_never_markup():
    from minidynamo.debug.show import table

    out = io.StringIO()
    make_console(out).print(table("[bold]t[/bold]", ("[red]c",), [("[link=x]cell[/]",)]))
    assert all(text in out.getvalue() for text in ("[bold]t[/bold]", "[red]c", "[link=x]cell[/]"))
