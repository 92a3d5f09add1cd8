"""The gallery: each script's report names its cause; the fixed version compiles once and gives the same values."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import minidynamo

FOLDER = Path(__file__).resolve().parent.parent / "examples" / "recompiles"

# script -> (code, what changes, what is passed or written), (code of the graph break or None)
GALLERY = {
    "lr_schedule": (("MD106", "lr", "lr"), None),
    "step_counter": (("MD107", "self.calls", "self.calls += 1"), None),
    "varying_batch": (("MD101", "batch.size(0)", "batch"), None),
    "lambda_in_loop": (("MD107", "k", "for k in range(1, 5):"), None),
    "per_layer_instances": (("MD107", "self.scale", "self.scale = scale"), None),
    "item_branch": (("MD106", "top", "top = x.abs().max().item()"), "MD203"),
}


def run(name, fixed):
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    with minidynamo.record() as found:
        result = module.main(fixed)
    return result, found


def test_every_script_is_here():
    assert {path.stem for path in FOLDER.glob("*.py")} == set(GALLERY)


@pytest.mark.parametrize("name", GALLERY)
def test_a_script(name):
    cause, broken = GALLERY[name]
    result, found = run(name, fixed=False)
    assert [(c.code, c.name, c.site.text) for c in found.recompiles] == [cause]
    assert found.recompiles[0].compiles >= 1 and found.recompiles[0].fix
    assert [b.code for b in found.graph_breaks][:1] == ([broken] if broken else [])
    mended, again = run(name, fixed=True)
    assert (again.compiles, again.recompile_count, again.graph_breaks) == (1, 0, [])
    torch.testing.assert_close(mended, result)


def shell_blocks():
    """(command, lines below it) of every `shell` block of the README and the page."""
    root = FOLDER.parent.parent
    for page in (root / "README.md", root / "docs" / "recompiles.md"):
        for block in re.findall(r"^```shell\n\$ (.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL):
            command, *lines = block.splitlines()
            yield command, lines


def without_times(line):
    """Colours off, times (and what depends on their width) as a mark."""
    line = re.sub(r"\x1b\[\d*m", "", line).rstrip()
    line = re.sub(r"\d[\d.]* m?s\b.*", "TIME", line)
    return line


@pytest.mark.slow
def test_the_pages_show_what_is_printed(tmp_path):
    root = FOLDER.parent.parent
    env = {
        name: value for name, value in os.environ.items() if not name.startswith(("MINIDYNAMO_", "COLUMNS"))
    }
    env |= {"PYTHONPATH": str(root), "XDG_CACHE_HOME": str(tmp_path)}
    found = list(shell_blocks())
    assert len(found) == 3
    for command, lines in found:
        words = [sys.executable, *command.split()[1:]]
        done = subprocess.run(words, cwd=root, env=env, capture_output=True, text=True, check=False)
        shown = [without_times(line) for line in (done.stdout + done.stderr).splitlines()]
        assert shown == [without_times(line) for line in lines]
