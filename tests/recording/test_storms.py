"""Each storm's report names exactly its cause; the printed fix, applied, leaves one compilation."""

from __future__ import annotations

import contextlib
import io
import itertools
import linecache
import types
import warnings

import pytest
import torch

import minidynamo
from minidynamo.cli import recompile_examples
from minidynamo.cli.reason_examples import EXAMPLES
from minidynamo.reasons import REASONS
from minidynamo.recording.words import underlined
from tests.recording.storms import PRELUDE, STORMS

_numbers = itertools.count()


@pytest.fixture(autouse=True)
def modes():
    """Modes of torch that a storm leaves behind."""
    yield
    torch.set_default_dtype(torch.float32)
    torch.use_deterministic_algorithms(False)


def run(tmp_path, text):
    """Run a program recorded: what was recorded, and its text."""
    path = tmp_path / f"storm{next(_numbers)}.py"
    path.write_text(text)
    module = types.ModuleType("storm")
    minidynamo.reset()
    with minidynamo.record() as found, warnings.catch_warnings(action="ignore"):
        with contextlib.redirect_stdout(io.StringIO()):
            exec(compile(text, str(path), "exec"), module.__dict__)
    return found, str(path)


def apply(text, edits):
    """The program with the lines that the fix replaces."""
    lines = text.splitlines()
    for edit in edits:
        assert lines[edit["line"] - 1] == edit["before"]
        lines[edit["line"] - 1] = edit["after"]
    return "\n".join(lines) + "\n"


def entry_compiles(found):
    """Compilations, those behind a graph break left out."""
    return [c for c in found.run.compiles if not c.resume]


@pytest.mark.slow
@pytest.mark.parametrize("storm", STORMS, ids=lambda storm: storm.name)
def test_a_storm(storm, tmp_path):
    text = PRELUDE + storm.source
    found, path = run(tmp_path, text)
    told = [(c.code, c.name) for c in found.recompiles]
    assert told == [(storm.code, storm.what)]
    (cause,) = found.recompiles
    if storm.code == "MD108":
        assert storm.old in cause.old and storm.new in cause.new
    else:
        assert (cause.old, cause.new) == (storm.old, storm.new)
    assert cause.site is not None and cause.site.file == path
    shown = cause.site.text
    assert shown == storm.site, (shown, cause.site_kind)
    source = linecache.getline(path, cause.site.line)
    assert cause.site.source == source.rstrip("\n") and storm.site.split("\n")[0] in source
    if storm.used:
        assert cause.used is not None and cause.used.source.strip() == storm.used
        assert "^" in underlined(cause.used)[1]
    assert bool(cause.edits) != bool(storm.fixed), (
        "a printed fix with edits is applied, another has the mended program"
    )
    mended = PRELUDE + storm.fixed if storm.fixed else apply(text, cause.edits)
    again, _ = run(tmp_path, mended)
    assert again.recompiles == [], (mended, [(c.code, c.name, c.old, c.new) for c in again.recompiles])
    assert len(entry_compiles(again)) == max(1, storm.fixed.count("isolate=True") and 2)


def test_there_are_forty_and_every_code():
    assert len(STORMS) >= 40
    codes = {row.code for row in REASONS.values() if row.code.startswith("MD1")}
    assert codes - {storm.code for storm in STORMS} == {"MD115"}  # a test of its own, below
    assert {REASONS[name].code for name in recompile_examples.STORMS} == codes  # each page has a program


def test_the_limit(tmp_path):
    """MD115: one row of its own, with the values; the cause says that it goes on as plain Python."""
    found, _ = run(
        tmp_path,
        PRELUDE + "@opt\ndef f(x, n):\n    return x * n\n\nfor i in range(20):\n    f(torch.ones(3), i)\n",
    )
    (limit,) = found.run.limits
    assert (limit.limit, limit.key[2], limit.causes) == (8, "f", [["MD105", "n"]])
    assert limit.values[-2:] == ["7", "8"]
    (cause,) = found.recompiles
    assert (
        cause.ends == "limit reached after 9 values in 8 calls: calls that fit no entry run as plain Python"
    )
    assert cause.compiles == 7
    mended, _ = run(tmp_path, apply((tmp_path / f"storm{next(_numbers) - 1}.py").read_text(), cause.edits))
    assert mended.run.limits == [] and mended.recompiles == []


def test_after_the_limit_nothing_is_recorded(tmp_path):
    text = PRELUDE + "@opt\ndef f(x, n):\n    return x * n\n\nfor i in range({}):\n    f(torch.ones(3), i)\n"
    sizes = [len(run(tmp_path, text.format(count))[0].records) for count in (20, 200)]
    assert sizes[0] == sizes[1]


def test_an_entry_that_was_declared_dead(tmp_path):
    """MD117 also where no object is known: somebody has set `valid`."""

    def f(x):
        return x * 2

    g = minidynamo.optimize("eager")(f)
    g(torch.ones(3))
    with minidynamo.record() as found:
        minidynamo.cache_entries(f)[0].valid = False
        g(torch.ones(3))
    (cause,) = found.recompiles
    assert (cause.code, cause.name, cause.old) == ("MD117", "this entry", "alive")
    assert found.compiles == 1


def test_behind_a_graph_break_the_value_has_the_name_it_is_assigned_to(tmp_path):
    source = """
largest = minidynamo.disable(lambda x: float(x.abs().max()))

@opt
def f(x):
    scale = largest(x)
    return x / scale

for i in range(3):
    f(torch.full((3,), i + 1.0))
"""
    found, path = run(tmp_path, PRELUDE + source)
    (cause,) = found.recompiles
    assert (cause.code, cause.name, cause.old, cause.new) == ("MD106", "scale", "2.0", "3.0")
    assert cause.site.text == "scale = largest(x)" and cause.site_kind == "made"
    (row,) = found.graph_breaks
    assert (row.code, row.count, row.before, row.after) == ("MD221", 3, 0, 1)


def test_two_causes_at_once_are_two_rows(tmp_path):
    source = "@opt\ndef f(x, n, m):\n    return x * n + m\n\nfor i in range(1, 3):\n    f(torch.ones(3), i, 5 * i)\n"
    found, _ = run(tmp_path, PRELUDE + source)
    assert sorted((c.name, c.old, c.new) for c in found.recompiles) == [("m", "5", "10"), ("n", "1", "2")]
    assert found.recompile_count == 1 and [c.compiles for c in found.recompiles] == [1, 1]


def test_decisions_are_told_to_be_made_outside(tmp_path):
    source = """
class Config:
    step = 0

@opt
def f(x, cfg):
    if cfg.step % 2 == 0:
        return x + 1
    return x + 2

cfg = Config()
for i in range(3):
    cfg.step = i
    f(torch.ones(3), cfg)
"""
    found, _ = run(tmp_path, PRELUDE + source)
    (cause,) = found.recompiles
    assert cause.fix == "decide outside: pass `cfg.step % 2 == 0` as a bool in place of cfg.step"


@pytest.mark.parametrize(
    ("calls", "ends"),
    [
        ((1, 2, 1, 2, 1), "2 values: harmless"),
        ((1, 2, 3, 3, 3, 3), "settled: the last entry served 3 more calls"),
        ((1, 2, 3, 4), "unbounded: 4 values in 4 calls"),
        ((1, 2), "2 values in 2 calls so far"),
    ],
)
def test_whether_it_goes_on(tmp_path, calls, ends):
    source = f"@opt\ndef f(x, n):\n    return x * n\n\nfor i in {calls}:\n    f(torch.ones(3), i)\n"
    found, _ = run(tmp_path, PRELUDE + source)
    (cause,) = found.recompiles
    assert cause.ends == ends


BREAKS = {name: example for name, example in EXAMPLES.items() if REASONS[name].code.startswith("MD2")}


@pytest.mark.parametrize("name", BREAKS)
def test_a_graph_break_is_one_row(name, tmp_path):
    """The reason, the line and what to do; what the page shows instead has none."""
    example = BREAKS[name]
    call = f"\nfor _ in range(3):\n    opt(f)({example.args})\n"
    found, path = run(tmp_path, PRELUDE + example.source + call)
    codes = [row.code for row in found.graph_breaks]
    assert REASONS[name].code in codes
    row = found.graph_breaks[codes.index(REASONS[name].code)]
    assert row.hint == REASONS[name].hint or name == "INLINE_BREAK"
    assert row.place.file == path and row.place.text == linecache.getline(path, row.place.line).strip() != ""
    assert row.count == 3
    if example.instead:
        again, _ = run(tmp_path, PRELUDE + example.instead + call)
        assert again.graph_breaks == [] and again.compiles == 1


SKIPS = {name: example for name, example in EXAMPLES.items() if REASONS[name].code.startswith("MD3")}


@pytest.mark.parametrize("name", SKIPS)
def test_a_frame_that_is_not_compiled_is_told_once_with_its_reason(name, tmp_path):
    example = SKIPS[name]
    found, path = run(
        tmp_path, PRELUDE + example.source + f"\nfor _ in range(3):\n    opt(f)({example.args})\n"
    )
    assert (path, REASONS[name].code) in [(skip.key[0], skip.code) for skip in found.run.skips]
    keys = [(skip.key, skip.code) for skip in found.run.skips]
    assert len(keys) == len(set(keys))


@pytest.mark.parametrize("name", recompile_examples.STORMS)
def test_the_example_of_a_page(name, tmp_path):
    example, code = recompile_examples.STORMS[name], REASONS[name].code
    found, _ = run(tmp_path, PRELUDE + example.source)
    codes = [cause.code for cause in found.recompiles]
    assert codes == [code] if code != "MD115" else found.run.limits
    mended, _ = run(tmp_path, PRELUDE + example.instead)
    assert (mended.recompiles, mended.compiles, mended.run.limits) == ([], 1, [])
