"""The examples, each as a user starts it; the demo fails when what it shows does not hold."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from minidynamo import config

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
OF_TESTS = ("MINIDYNAMO_GUARDS", "MINIDYNAMO_VERIFY", "COLUMNS")


def run(name: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Start one example in the project's folder with a user's environment."""
    env = {key: value for key, value in os.environ.items() if key not in OF_TESTS}
    env |= {"PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "utf-8"} | environment
    command = [sys.executable, f"examples/{name}.py"]
    return subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)


def test_these_are_the_examples():
    assert [path.stem for path in EXAMPLES] == ["mlp", "nopython", "toy_example"]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_examples_are_short(path):
    assert len(path.read_text().splitlines()) < 100


@pytest.mark.slow
def test_toy_example():
    done = run("toy_example")
    assert (done.returncode, done.stderr) == (0, "")
    out = done.stdout
    assert out.count("graph of toy_example(") == 3
    assert "WRONG" not in out and out.count("\nok ") == 9
    rows = re.findall(
        r"^( *)(\d)/0 toy_example +│ line (\d+) +│ (\d+) +│ (\d) +│ (break|return)", out, re.MULTILINE
    )
    lines = (ROOT / "examples/toy_example.py").read_text().splitlines()
    begins = {lines[int(line) - 1].strip(): (indent, ops, exit_) for indent, _, line, _, ops, exit_ in rows}
    assert begins == {
        '@minidynamo.optimize("debug")': ("", "5", "break"),
        "return x * b": ("  ", "1", "return"),
        "b = b * -1": ("  ", "2", "return"),
    }
    assert sum(int(hits) for indent, _, _, hits, _, _ in rows if indent) == 98
    assert out.count("___guarded_code.valid") == 3
    assert "branch on a tensor's value [MD201]" in out


def test_the_demo_fails_when_nothing_is_captured(capsys):
    spec = importlib.util.spec_from_file_location("toy_example", ROOT / "examples/toy_example.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    with config.patch(disable=True):
        assert module.main() == 1
    out = capsys.readouterr().out
    assert "toy_example: nothing is compiled" in out and "WRONG" in out
    assert module.main() == 0


@pytest.mark.slow
def test_mlp():
    done = run("mlp")
    assert (done.returncode, done.stderr) == (0, "")
    assert "WRONG" not in done.stdout and done.stdout.count("\nok ") == 5
    assert done.stdout.count("linear(") == 3


@pytest.mark.slow
def test_nopython():
    done = run("nopython")
    assert (done.returncode, done.stderr) == (0, "")
    first, line, hint, *_ = done.stdout.splitlines()
    assert re.fullmatch(r"refused: .*nopython\.py:\d+: branch on a tensor's value \[MD201\]", first)
    assert line == "    if y.sum() < 0:" and hint.startswith("  to do: use torch.where")
    assert "rewritten with torch.where: one graph of 5 operators" in done.stdout
