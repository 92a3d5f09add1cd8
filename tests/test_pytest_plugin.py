"""The pytest plugin, in sessions of its own."""

from __future__ import annotations

import importlib.metadata
import subprocess
import sys

import pytest

pytest_plugins = ["pytester"]

HEAD = """
import pytest, torch, minidynamo

@minidynamo.optimize("eager", isolate=True)
def train_step(x, lr):
    return x * lr

@minidynamo.optimize("eager", isolate=True)
def noisy(x):
    y = x + 1
    print(end="")
    return y * 2
"""


@pytest.fixture
def session(pytester):
    """Run tests under the plugin (once, whether its entry point is installed or not)."""
    installed = any(
        e.value == "minidynamo.pytest_plugin" for e in importlib.metadata.entry_points(group="pytest11")
    )
    options = () if installed else ("-p", "minidynamo.pytest_plugin")

    def run(body, *more):
        pytester.makepyfile(test_it=HEAD + body)
        return pytester.runpytest_inprocess(*options, "-p", "no:cacheprovider", *more)

    return run


def test_the_mark_fails_a_test_with_the_cause(session):
    done = session("""
@pytest.mark.minidynamo(max_recompiles=0)
def test_steps():
    for i in range(3):
        train_step(torch.ones(2), 0.1 / (i + 1))
""")
    done.assert_outcomes(failed=1)
    (line,) = [
        line for line in done.outlines if line.startswith("2 recompiles of train_step: lr 0.05 → 0.0333")
    ]
    assert line.endswith("passed at test_it.py:16  0.1 / (i + 1)   [MD106]")


def test_limits_that_hold_and_graph_breaks(session):
    done = session("""
@pytest.mark.minidynamo(max_recompiles=2, max_graph_breaks=0, max_compiles=3)
def test_steps():
    for i in range(3):
        train_step(torch.ones(2), 0.1 / (i + 1))

@pytest.mark.minidynamo(max_graph_breaks=0)
def test_noise():
    noisy(torch.ones(2))

@pytest.mark.minidynamo(max_compiles=0)
def test_compiles():
    noisy(torch.ones(3))
""")
    done.assert_outcomes(passed=1, failed=2)
    done.stdout.fnmatch_lines(["graph break in noisy at test_it.py:*: call of print   [[]MD210[]]"])
    done.stdout.fnmatch_lines(["2 compilations, at most 0 are allowed"])


def test_the_closest_mark_wins_and_a_failing_test_keeps_its_error(session):
    done = session("""
pytestmark = pytest.mark.minidynamo(max_recompiles=0)

@pytest.mark.minidynamo(max_recompiles=5)
def test_steps():
    for i in range(3):
        train_step(torch.ones(2), 0.1 / (i + 1))

def test_other():
    for i in range(3):
        train_step(torch.ones(3), 0.1 / (i + 1))
    assert 1 == 2
""")
    done.assert_outcomes(passed=1, failed=1)
    done.stdout.fnmatch_lines(["E       assert 1 == 2"])


def test_the_fixture(session):
    done = session("""
def test_log(compile_log):
    train_step(torch.ones(2), 0.5)
    assert compile_log.compiles == 1
    train_step(torch.ones(2), 0.25)
    (cause,) = compile_log.recompiles
    assert (cause.code, cause.old, cause.new) == ("MD106", "0.5", "0.25")
    assert compile_log.to_json()["recompiles"] == 1
""")
    done.assert_outcomes(passed=1)


@pytest.mark.parametrize("arguments", ["max_recompile=0", "max_recompiles='0'", "0"])
def test_wrong_marks_are_told(session, arguments):
    done = session(f"""
@pytest.mark.minidynamo({arguments})
def test_it():
    pass
""")
    assert done.parseoutcomes().get("passed") is None
    assert any("takes" in line and "max_recompiles" in line for line in done.outlines + done.errlines)


def test_the_mark_is_declared(session):
    session("def test_it(): pass", "--strict-markers").assert_outcomes(passed=1)
    done = session("", "--markers")
    done.stdout.fnmatch_lines(["@pytest.mark.minidynamo(max_recompiles=None, *"])


def test_the_module_imports_no_torch():
    program = "import sys; sys.modules['torch'] = sys.modules['minidynamo._C'] = None; import minidynamo.pytest_plugin"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
