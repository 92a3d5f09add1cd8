"""Which expression a call passes for a parameter; possible writers; carets."""

import ast
import linecache

import pytest

from minidynamo.recording.callsite import Place, passed
from minidynamo.recording.words import underlined
from minidynamo.recording.writers import carets, writers

CASES = [
    ("f(a, b)", ("x", "y"), 2, "f", "y", -1, "b"),
    ("f(a, y=b + 1)", ("x", "y"), 2, "f", "y", -1, "b + 1"),
    ("f(a)", ("x", "y"), 2, "f", "y", -1, None),
    ("f(*items)", ("x", "y"), 2, "f", "y", -1, "*items"),
    ("f(a, **more)", ("x", "y"), 2, "f", "y", -1, "*more"),
    ("f(a, b, c)", ("x", "rest"), 1, "f", "rest", 1, "c"),
    ("f(a, b, c)", ("x", "rest"), 1, "f", "rest", -1, None),
    ("obj.m(a)", ("self", "x"), 2, "C.m", "x", -1, "a"),
    ("obj.m(a, b, c)", ("self", "rest"), 1, "C.m", "rest", 1, "b"),
    ("obj.m(a)", ("self", "x"), 2, "C.m", "self", -1, "obj"),
    ("C.m(obj, a)", ("self", "x"), 2, "C.m", "x", -1, "a"),
    ("model(a)", ("self", "x"), 2, "Net.forward", "x", -1, "a"),
    ("C.s(a, b)", ("x", "y"), 2, "C.s", "y", -1, "b"),
    ("f(a)", ("x",), 1, "main.<locals>.f", "x", -1, "a"),
    ("f(a)", ("x",), 1, "f", "unknown", -1, None),
]


@pytest.mark.parametrize(("call", "parameters", "positional", "function", "root", "index", "wanted"), CASES)
def test_what_is_passed(call, parameters, positional, function, root, index, wanted):
    found = passed(ast.parse(call, mode="eval").body, parameters, positional, function, root, index)
    text = None if found is None else "*" * found.star + ast.unparse(found.node)
    assert text == wanted


PROGRAM = """\
class Config:
    def __init__(self):
        self.step = 0

def main(cfg):
    for i in range(3):
        cfg.step = i
        é = cfg.step * 2; y = cfg.step
    setattr(cfg, "step", 5)
    cfg.step += 1
    items.append(cfg)
    items[0] = cfg
    del items[0]
    step = 3
"""


@pytest.fixture
def file():
    linecache.cache["<writers>"] = (len(PROGRAM), None, PROGRAM.splitlines(keepends=True), "<writers>")
    yield "<writers>"
    del linecache.cache["<writers>"]


def test_writers_of_an_attribute_loops_first_initial_ones_last(file):
    found = writers((file, file), ("attr", "step"), "cfg.step", "main")
    assert [w.place.text for w in found] == [
        "cfg.step = i",
        'setattr(cfg, "step", 5)',
        "cfg.step += 1",
        "self.step = 0",
    ]
    assert [w.function for w in found] == ["main", "main", "main", "<class>.__init__"]


def test_writers_of_a_container(file):
    found = writers((file,), ("name", "items"), "len(items)", "main")
    assert [(w.place.text, w.changes) for w in found] == [
        ("items.append(cfg)", True),
        ("items[0] = cfg", True),
        ("del items[0]", True),
    ]


def test_writers_of_a_name(file):
    assert [w.place.text for w in writers((file,), ("name", "step"), "step", "")] == ["step = 3"]


def test_a_file_without_source_has_no_writers():
    assert writers(("<nothing>",), ("name", "x"), "x", "") == []


def test_carets_count_characters(file):
    found = carets(
        Place(file, 8, PROGRAM.splitlines()[7], text=PROGRAM.splitlines()[7].strip()),
        "cfg.step",
        ("attr", "step"),
    )
    assert underlined(found) == ["é = cfg.step * 2; y = cfg.step", "    ^^^^^^^^"]


def test_a_call_in_a_document_that_is_no_program(tmp_path):
    """Its own text is parsed, over several lines too."""
    import minidynamo

    lines = ["# A document", "", "", "f(", "    torch.ones(3),", "    é + 1,", "); f(torch.ones(3), é + 2)"]
    source = "\n".join(["", "", "", *lines[3:]])
    linecache.cache["<document>"] = (1, None, [f"{line}\n" for line in lines], "<document>")
    f = minidynamo.optimize("eager")(lambda x, n: x * n)
    import torch

    f(torch.ones(3), 1)
    with minidynamo.record() as found:
        exec(compile(source, "<document>", "exec"), {"f": f, "torch": torch, "é": 1})
    (cause,) = found.recompiles
    assert (cause.site.text, cause.site.line, cause.site.begin) == ("é + 2", 7, 20)
    assert underlined(cause.site)[1].index("^") == 20
    first = next(r for r in found.records if r["event"] == "recompile")["causes"][0]["site"]
    assert (first["text"], first["line"], first["begin"]) == ("é + 1", 6, 4)
