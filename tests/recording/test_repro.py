"""`config.repro` (MINIDYNAMO_REPRO=1): a backend that fails leaves a script of the graph that it was given."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import minidynamo

ROOT = str(Path(__file__).resolve().parents[2])
HERE = {**os.environ, "PYTHONPATH": ROOT}


def ruinous(gm, inputs):
    for node in list(gm.graph.nodes)[::-1]:
        gm.graph.erase_node(node)
    gm.recompile()
    raise ValueError("cannot do this")


def listless(gm, inputs):
    return [gm]


@pytest.mark.slow
@pytest.mark.parametrize("backend", [ruinous, listless])
def test_script_of_the_graph_as_given(tmp_path, monkeypatch, backend):
    monkeypatch.chdir(tmp_path)
    fn = minidynamo.optimize(backend)(lambda x, y: torch.sin(x) @ y)
    with (
        minidynamo.config.patch(repro=True),
        pytest.raises(minidynamo.exc.BackendCompilerFailed) as failed,
    ):
        fn(torch.ones(2, 3), torch.ones(3))
    [path] = tmp_path.iterdir()
    assert str(failed.value).splitlines()[-1] == f"  repro: {path.name}"
    text = path.read_text().replace(f"lookup_backend({backend.__name__!r})", "lookup_backend('eager')")
    path.write_text(text)
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, check=False, env=HERE)
    assert done.returncode == 0, done.stderr
    expected, compiled = done.stdout.splitlines()
    assert expected.removeprefix("expected ") == compiled.removeprefix("compiled ")


def test_nothing_is_written_otherwise(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(minidynamo.exc.BackendCompilerFailed) as failed:
        minidynamo.optimize(ruinous)(lambda x: x + 1)(torch.ones(2))
    with minidynamo.config.patch(repro=True):
        minidynamo.optimize("eager")(lambda x: x + 2)(torch.ones(2))
    assert not list(tmp_path.iterdir()) and "-repro-" not in str(failed.value)


def test_a_place_that_cannot_be_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    minidynamo.reset()
    (tmp_path / f"minidynamo-repro-{os.getpid()}-0-0.py").mkdir()
    with (
        minidynamo.config.patch(repro=True),
        pytest.raises(minidynamo.exc.BackendCompilerFailed, match="no repro: .*-0-0.py: Is a directory"),
    ):
        minidynamo.optimize(ruinous)(lambda x: x + 1)(torch.ones(2))


@pytest.mark.parametrize("value", ["1", "0"])
def test_environment(value):
    code = "from minidynamo import config; print(int(config.repro))"
    env = {**HERE, "MINIDYNAMO_REPRO": value}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=env)
    assert done.stdout == f"{value}\n"
