"""Behind a graph break: where a value that varies comes from, and what to mend."""

from __future__ import annotations

import contextlib
import io
import textwrap

import pytest

import minidynamo
from minidynamo.recording.behind import origin

PRELUDE = "import torch\nimport minidynamo\nopt = minidynamo.optimize('eager')\n"


def causes(tmp_path, source):
    path = tmp_path / "program.py"
    path.write_text(PRELUDE + textwrap.dedent(source))
    with minidynamo.record() as found, contextlib.redirect_stdout(io.StringIO()):
        exec(compile(path.read_text(), str(path), "exec"), {})
    return {c.name: c for c in found.recompiles}


def test_an_argument_is_passed_by_the_caller(tmp_path):
    found = causes(
        tmp_path,
        """
        @opt
        def f(x, n):
            y = x + 1
            print(y)
            return y * n

        for i in range(3):
            f(torch.ones(3), i + 2)
        """,
    )
    (cause,) = found.values()
    assert (cause.code, cause.name, cause.site_kind, cause.site.text) == ("MD105", "n", "passed", "i + 2")
    assert cause.edits and "torch.tensor(i + 2)" in cause.edits[0]["after"]


def test_what_is_stored_outside_is_written_there(tmp_path):
    found = causes(
        tmp_path,
        """
        class Settings:
            step = 0

        settings = Settings()

        @opt
        def f(x):
            y = x + 1
            print(y)
            return y * settings.step

        for i in range(3):
            settings.step = i
            f(torch.ones(3))
        """,
    )
    assert [(c.code, c.site_kind, c.site.text) for c in found.values()] == [
        ("MD107", "written", "settings.step = i")
    ]


@pytest.mark.parametrize(
    ("made", "fix"),
    [
        (
            "len(str(float(x.max())))",
            "mend the graph break at program.py:7: plain Python makes the value there",
        ),
        (
            "float(x.abs().max())",
            "mend the graph break at program.py:9: numbers of the graph before it are guarded behind it",
        ),
    ],
    ids=["plain Python", "the graph"],
)
def test_a_number_that_is_made_before_the_last_break(tmp_path, made, fix):
    found = causes(
        tmp_path,
        f"""
        @opt
        def f(x):
            scale = {made}
            y = x + 1
            if y.sum() > 0:
                y = y / scale
            return y

        for i in range(3):
            f(torch.full((3,), 10.0 ** i))
        """,
    )
    cause = found["scale"]
    assert (cause.site_kind, cause.site.text) == ("made", f"scale = {made}")
    assert cause.fix == fix


def test_a_tensor_of_the_graph_before_is_made_where_it_is_assigned_and_no_break_is_blamed(tmp_path):
    found = causes(
        tmp_path,
        """
        @opt
        def f(x):
            y = x * 2
            print("half way")
            y = y + 1
            print("later")
            return y * 3

        for n in (3, 4):
            f(torch.ones(n))
        """,
    )
    assert {name: c.site.text for name, c in found.items()} == {
        "x.size(0)": "torch.ones(n)",
        "y.size(0)": "y = y + 1",
    }
    assert "graph break" not in found["y.size(0)"].fix and "pad" in found["y.size(0)"].fix


PROGRAM = """\
def outer(a, b):
    first = a
    for item in b:
        with item as opened, opened.other as (left, right):
            first, second = right, left
        if (walrus := first):
            first += 1
        try:
            pass
        except ValueError:
            caught = 2
        match a:
            case 1:
                matched = 3
    def inner(c):
        first = c
        return first
    return first


late = lambda q: q
"""


@pytest.mark.parametrize(
    ("begins", "name", "line"),
    [
        (3, "first", 2),
        (6, "first", 5),
        (8, "first", 7),
        (18, "first", 7),
        (17, "first", 16),
        (6, "item", 3),
        (6, "right", 4),
        (6, "opened", 4),
        (9, "walrus", 6),
        (18, "caught", 11),
        (18, "matched", 14),
        (3, "second", 5),  # of the round before
        (3, "a", None),
        (17, "c", None),
        (20, "first", None),
        (21, "q", None),
    ],
)
def test_the_last_assignment_before_a_line(tmp_path, begins, name, line):
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    found = origin(str(path), begins, name, {(str(path), 5)})
    assert (None if found.place is None else found.place.line) == line
    assert (found.broken is not None) == (line == 5)
    assert found.mend(number=False) == "" or line == 5


def test_without_source_nothing_is_said():
    assert origin("<nowhere>", 3, "a", ()).place is None
    assert origin("<nowhere>", 3, "___stack0", ()).place.line == 3
