"""The documents tell the truth: code runs and prints what stands below it, commands print what is shown,
links and the index lead somewhere."""

from __future__ import annotations

import contextlib
import importlib
import io
import linecache
import logging
import re
import shlex
from pathlib import Path
from typing import NamedTuple

import pytest
import torch

import minidynamo
from minidynamo import events
from minidynamo.backends import registry
from minidynamo.cli import main as cli

ROOT = Path(__file__).resolve().parent.parent
DOCUMENTS = [ROOT / "README.md", ROOT / "ARCHITECTURE.md", *sorted((ROOT / "docs").glob("*.md"))]


class Block(NamedTuple):
    """A fenced block: language, text, line of its first line."""

    language: str
    text: str
    line: int


def blocks(path: Path) -> list[Block]:
    """The fenced blocks of a document."""
    text = path.read_text()
    found = re.finditer(r"^```(\w+)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return [Block(m[1], m[2], text[: m.start(2)].count("\n") + 1) for m in found]


def rows(path: Path, width: int) -> list[list[str]]:
    """The rows of the tables of that many columns, headings included."""
    lines = [line for line in path.read_text().splitlines() if line.startswith("| ")]
    cells = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]
    return [row for row in cells if len(row) == width]


@pytest.fixture
def as_found(monkeypatch):
    """Backends, log topics and root handlers as they were."""
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(registry, "_REGISTRY", dict(registry._REGISTRY))
    handlers = logging.getLogger().handlers[:]
    yield
    logging.getLogger().handlers[:] = handlers
    minidynamo.set_logs()


@pytest.mark.parametrize(
    "path", [p for p in DOCUMENTS if any(b.language == "python" for b in blocks(p))], ids=str
)
def test_python_blocks_run_and_print_what_stands_below_them(path, as_found, capsys):
    """The blocks of one document are one program."""
    name = path.relative_to(ROOT).as_posix()
    linecache.cache[name] = (0, None, path.read_text().splitlines(keepends=True), name)
    namespace: dict[str, object] = {"__name__": "document"}
    found = blocks(path)
    for block, following in zip(found, [*found[1:], None], strict=True):
        if block.language != "python":
            continue
        exec(compile("\n" * (block.line - 1) + block.text, name, "exec"), namespace)
        printed = capsys.readouterr().out
        if following is not None and following.language == "text":
            assert printed == following.text


def console_commands() -> list[tuple[str, list[str]]]:
    """(command, lines shown below it) of every console block."""
    found = []
    for path in DOCUMENTS:
        for block in blocks(path):
            if block.language == "console":
                for part in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
                    command, *lines = part.splitlines()
                    found.append((command, lines))
    return found


@pytest.mark.parametrize(("command", "lines"), console_commands(), ids=lambda value: str(value)[:40])
def test_commands_print_what_is_shown(command, lines, as_found):
    words = shlex.split(command)
    if words[0] == "make":
        assert re.search(rf"^{words[1]}:", (ROOT / "Makefile").read_text(), re.MULTILINE)
        return
    assert words[:3] == ["python", "-m", "minidynamo"]
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        assert cli.main(words[3:]) == 0
    printed = iter(line.rstrip() for line in out.getvalue().splitlines())
    for line in lines:
        wanted = re.escape(line.rstrip()).replace(r"\.\.\.", ".*")
        assert any(re.fullmatch(wanted, got) for got in printed), f"not printed (in this order): {line}"


def test_the_two_commands_are_on_the_first_screen():
    first = "\n".join((ROOT / "README.md").read_text().splitlines()[:24])
    assert "$ make demo" in first and "$ make test" in first


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_somewhere(path):
    targets = re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", path.read_text())
    missing = [t for t in targets if "://" not in t and not (path.parent / t).exists()]
    assert missing == []


INDEX = [row for row in rows(ROOT / "ARCHITECTURE.md", 3) if row[0] not in ("X", "stage", "---")]


def test_the_index_is_read():
    assert len(INDEX) > 50


@pytest.mark.parametrize("row", INDEX, ids=lambda row: row[0])
def test_where_is_x(row):
    _, file, name = row
    path = ROOT / file
    assert path.is_file()
    if file.startswith("minidynamo/"):
        parts = path.relative_to(ROOT).with_suffix("").parts
        module = importlib.import_module(".".join(parts[:-1] if parts[-1] == "__init__" else parts))
        assert hasattr(module, name)
    else:
        assert re.search(rf"\b{re.escape(name)}\b", path.read_text())


@pytest.mark.parametrize(
    "row", [r for r in rows(ROOT / "ARCHITECTURE.md", 4) if r[0][0].isdigit()], ids=lambda r: r[0]
)
def test_stages_are_where_it_says(row):
    file, _, name = row[3].strip("`").partition(": ")
    path = ROOT / file if file.startswith("native/") else ROOT / "minidynamo" / file
    assert path.is_file() and name in path.read_text()


def test_recipes_have_at_most_four_steps():
    text = (ROOT / "ARCHITECTURE.md").read_text().partition("## Recipes")[2].partition("## Where")[0]
    recipes = re.findall(r"^\*\*(.+?)\*\*(.*?)(?=^\*\*|\Z)", text, re.MULTILINE | re.DOTALL)
    assert [name for name, _ in recipes] == [
        *("An opcode.", "A tracker.", "A guard.", "A backend.", "A rule for a builtin.", "A Python version."),
    ]
    for name, steps in recipes:
        numbers = [int(n) for n in re.findall(r"(?:^|\s)(\d)\. ", steps)]
        assert numbers == list(range(1, len(numbers) + 1)) and 3 <= len(numbers) <= 4, name


LIMITS = [row for row in rows(ROOT / "README.md", 3) if row[2].startswith("MD")]


def test_the_limits_are_read():
    assert len(LIMITS) == 7


@pytest.mark.parametrize("row", LIMITS, ids=lambda row: row[0])
def test_a_limit_is_still_one(row, tmp_path):
    """The example breaks the graph with that code and gives eager's result. If it is captured now: take the
    row out."""
    what, code, md = row
    lines = ("def f(y, thing, layer, plain, options, seen):", "y = y * 2", code.strip("`"), "return y + 1")
    source = "\n    ".join(lines)
    namespace: dict[str, object] = {"torch": torch, "time": importlib.import_module("time")}
    exec(compile(source, f"<{what}>", "exec"), namespace)
    f = namespace["f"]
    thing = type("Thing", (), {})()
    thing.weight = torch.full((3,), 2.0)
    args = (torch.ones(3), thing, torch.nn.Linear(3, 3), torch.add, {"alpha": 2}, [])
    found: list[events.Event] = []
    with events.listen(found.append), contextlib.redirect_stdout(io.StringIO()):
        result, want = minidynamo.optimize("eager")(f)(*args), f(*args)
    assert torch.equal(result, want)
    assert md in [event.code for event in found if isinstance(event, events.GraphBreak)]
