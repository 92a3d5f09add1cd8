"""torch's structured log: tlparse reads it, every record known to it."""

import os
import shutil
import subprocess
import sys

import pytest
import torch

import minidynamo
from minidynamo.debug.torch_trace import start

TLPARSE = shutil.which("tlparse", path=os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]]))


@pytest.fixture
def log(tmp_path):
    """The log of a program that recompiles and breaks the graph."""

    def f(x, n):
        y = x * n
        if y.sum() > 0:
            y = y + 1
        return y

    stop = start(str(tmp_path / "trace"))
    try:
        g = minidynamo.optimize("eager")(f)
        for n in (1, 2):
            g(torch.ones(3), n)
    finally:
        stop()
    g(torch.ones(3), 3)
    (path,) = (tmp_path / "trace").iterdir()
    return path


def test_the_records(log):
    text = log.read_text()
    for name in (
        "dynamo_start",
        "dynamo_output_graph",
        "dynamo_cpp_guards_str",
        "compilation_metrics",
        "recompile_reasons",
    ):
        assert name in text
    assert text.count('"dynamo_start"') == 3  # nothing after `stop`
    assert "n == 1: 1 -> 2" in text


@pytest.mark.skipif(TLPARSE is None, reason="tlparse is not installed (requirements-dev.txt has it)")
def test_tlparse_reads_it(log, tmp_path):
    command = [TLPARSE, str(log), "-o", str(tmp_path / "out"), "--no-browser"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    stats = (done.stdout + done.stderr).partition("Stats { ")[2].partition(" }")[0]
    assert stats.startswith("ok: ") and "," not in stats  # no unknown or failed record
    assert {path.name[2:6] for path in (tmp_path / "out").glob("-_*")} >= {"0_0_", "0_1_"}
