"""`minidynamo explain`: one page per code, examples that really meet their code, no torch."""

from __future__ import annotations

import linecache
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import minidynamo
from minidynamo import events
from minidynamo.cli import explain
from minidynamo.cli import main as cli
from minidynamo.cli.reason_examples import EXAMPLES
from minidynamo.reasons import REASONS


@pytest.mark.parametrize("text", ["MD201", "md201", "TENSOR_BRANCH", "tensor_branch"])
def test_a_page(capsys, text):
    assert cli.main(["explain", text]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "MD201  TENSOR_BRANCH"
    assert lines[1].startswith("  kind   graph break: ")
    assert lines[2] == "  text   branch on a tensor's value"
    assert lines[3] == f"  to do  {REASONS['TENSOR_BRANCH'].hint}"
    assert "      def f(x):" in lines and "  instead" in lines


def test_holes_are_written_as_words(capsys):
    assert cli.main(["explain", "MD231"]) == 0
    assert "  text   missing: <opname>\n" in capsys.readouterr().out


@pytest.mark.parametrize("row", REASONS.values(), ids=lambda row: row.name)
def test_every_code_has_a_page_and_a_kind(row):
    lines = explain.page(row)
    assert lines[0].startswith(row.code) and "{" not in lines[2]
    assert row.code[:3] in explain.KINDS


def test_without_argument_all_codes_are_listed_in_order(capsys):
    assert cli.main(["explain"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[1] for line in lines] == [
        r.name for r in sorted(REASONS.values(), key=lambda r: r.code)
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("MD2010", "did you mean MD201 (branch on a tensor's value)?"),
        ("TENSOR_BRANSH", "did you mean TENSOR_BRANCH (branch on a tensor's value)?"),
        ("xyz", "`minidynamo explain` lists all"),
    ],
)
def test_an_unknown_code(capsys, text, message):
    assert cli.main(["explain", text]) == 2
    out, err = capsys.readouterr()
    assert out == "" and err == f"minidynamo explain: unknown code {text!r}; {message}\n"


def test_neither_torch_nor_the_extension_is_imported():
    program = (
        "import sys; sys.modules['torch'] = sys.modules['minidynamo._C'] = sys.modules['rich'] = None\n"
        "from minidynamo.__main__ import main; sys.exit(main(['explain', 'MD203']))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("MD203  TENSOR_DATA\n")


def run_example(name: str, source: str, args: str) -> tuple[object, list[events.Event]]:
    """Define `f` and call it optimized: its result and what happened."""
    filename = f"<example of {name}>"
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    namespace: dict[str, object] = {"torch": torch, "minidynamo": minidynamo}
    exec(compile(source, filename, "exec"), namespace)
    seen: list[events.Event] = []
    with events.listen(seen.append):
        result = minidynamo.optimize("eager")(namespace["f"])(*eval(f"({args},)", namespace))
    return result, seen


def plain(value: object) -> object:
    """A result with lists and numbers in place of tensors."""
    if isinstance(value, tuple):
        return [plain(item) for item in value]
    return value.tolist() if isinstance(value, torch.Tensor) else value


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_meets_its_code(name):
    example = EXAMPLES[name]
    result, seen = run_example(name, example.source, example.args)
    codes = [event.code for event in seen if isinstance(event, (events.GraphBreak, events.Skipped))]
    assert REASONS[name].code in codes, f"no longer true: take the example of {name} out ({codes})"
    if example.instead:
        other, seen = run_example(name, example.instead, example.args)
        assert [type(event).__name__ for event in seen if not isinstance(event, events.StageDone)] == [
            "Compiled"
        ]
        assert plain(other) == plain(result)


def test_the_pages_of_the_documents_are_those_of_the_rows():
    folder = Path(__file__).resolve().parent.parent.parent / "docs" / "codes"
    found = {path.name: path.read_text() for path in folder.glob("*.md")}
    assert found == explain.pages(), "run: python -m minidynamo explain --write docs/codes"


def test_writing_pages_removes_those_of_codes_that_are_gone(tmp_path, capsys):
    (tmp_path / "MD999.md").write_text("")
    (tmp_path / "other.md").write_text("")
    assert cli.main(["explain", "--write", str(tmp_path)]) == 0
    assert {path.name for path in tmp_path.iterdir()} == {*explain.pages(), "other.md"}
    assert cli.main(["explain", "--write", str(tmp_path / "other.md")]) == 2
    assert capsys.readouterr().err.count("\n") == 1
