"""`minidynamo doctor`: one clear line for whatever is missing, and the exit code."""

from __future__ import annotations

import importlib.machinery
import re
import subprocess
import sys
import types
from pathlib import Path

import pytest

from minidynamo.cli import doctor

ROOT = Path(__file__).resolve().parents[2]


def module(name: str, **attributes: object) -> types.ModuleType:
    """A stand-in for an installed module."""
    made = types.ModuleType(name)
    made.__spec__ = importlib.machinery.ModuleSpec(name, None)
    made.__dict__.update(attributes)
    return made


@pytest.fixture
def install(monkeypatch):
    """install(NAME, MODULE or None): what `import NAME` finds; None means an ImportError."""
    return lambda name, what: monkeypatch.setitem(sys.modules, name, what)


@pytest.fixture
def healthy(install, monkeypatch):
    """Everything that minidynamo wants, as stand-ins."""
    install("torch", module("torch", __version__="2.13.0"))
    install("bytecode", module("bytecode"))
    install("rich", module("rich"))
    install("minidynamo.pycode.lift", module("lift"))
    install("minidynamo._C", module("minidynamo._C", __file__="x/_C.so"))
    install("minidynamo._tensor_guards", module("_tensor_guards", torch_version="2.13.0"))
    install("minidynamo.backends.registry", module("registry", list_backends=lambda: ["eager", "inductor"]))
    for name in doctor.ENVIRONMENT:
        monkeypatch.delenv(name, raising=False)


def line(subject: str) -> doctor.Finding:
    (found,) = (row for row in doctor.examine() if row.subject == subject)
    return found


def test_a_complete_installation_is_usable(healthy, capsys):
    assert doctor.run(["--plain"]) == 0
    text = capsys.readouterr().out
    assert text.endswith("\nusable\n")
    assert "torch: ok: 2.13.0\n" in text
    assert "tensor guards: ok: C++ leaf\n" in text
    assert "backends: ok: eager, inductor\n" in text
    assert "eval-frame hook: ok: free\n" in text


@pytest.mark.parametrize(
    ("name", "subject", "words"),
    [
        ("torch", "torch", "not importable"),
        ("minidynamo._C", "native extension", "not load|not built"),
        ("bytecode", "bytecode", "missing"),
        ("minidynamo.pycode.lift", "Python", "bytecode tables"),
        ("minidynamo.backends.registry", "backends", "registry does not load"),
    ],
)
def test_a_missing_part_is_one_line_and_exit_1(healthy, install, capsys, name, subject, words):
    install(name, None)
    assert doctor.run(["--plain"]) == 1
    text = capsys.readouterr().out
    (found,) = re.findall(rf"^{subject}: bad: .*$", text, re.MULTILINE)
    assert re.search(words, found)
    assert text.endswith(f"\nnot usable: {subject}\n")


def test_everything_missing_at_once_does_not_crash(healthy, install, capsys):
    for name in ("torch", "bytecode", "rich", "minidynamo._C", "minidynamo._tensor_guards"):
        install(name, None)
    assert doctor.run([]) == 1
    assert "not usable: bytecode, torch, native extension" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("version", "state"),
    [("2.5.1", "bad"), ("2.6.0", "ok"), ("2.6.0a0+git1", "ok"), ("2.13.0+cpu", "ok"), ("3.0", "ok")],
)
def test_torch_must_be_2_6(healthy, install, version, state):
    install("torch", module("torch", __version__=version))
    assert line("torch").state == state


def test_a_leaf_for_another_torch_is_slow_but_usable(healthy, install):
    install("minidynamo._tensor_guards", module("_tensor_guards", torch_version="2.12.0"))
    found = line("tensor guards")
    assert found.state == "slow"
    assert "built for torch 2.12.0, 2.13.0 is installed" in found.text


@pytest.mark.parametrize(("compiler", "reason"), [(None, "no C++ compiler"), ("c++", "built without torch")])
def test_without_a_leaf_the_reason_is_told(healthy, monkeypatch, compiler, reason):
    monkeypatch.setattr(doctor.importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(doctor, "_compiler", lambda variable, default: compiler)
    found = line("tensor guards")
    assert found.state == "slow"
    assert found.text.startswith("Python leaf in use") and found.text.endswith(reason)


@pytest.mark.parametrize(
    ("taken", "text"), [(True, "another evaluator"), (False, "free"), (None, "not examined")]
)
def test_the_evaluator_is_reported(healthy, monkeypatch, taken, text):
    monkeypatch.setattr(doctor, "_evaluator_taken", lambda: taken)
    assert line("eval-frame hook").text.startswith(text)


def test_the_evaluator_of_a_plain_process_is_found_free():
    program = "import sys; from minidynamo.cli import doctor; sys.exit(repr(doctor._evaluator_taken()))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stderr == "False\n"


def test_environment_variables_are_explained_and_misspelt_ones_corrected(healthy, monkeypatch):
    monkeypatch.setenv("MINIDYNAMO_GUARDS", "both")
    monkeypatch.setenv("MINIDYNAMO_VERFIY", "1")
    rows = [row for row in doctor.examine() if row.subject == "environment"]
    assert [(row.state, row.text, row.fix) for row in rows] == [
        ("ok", "MINIDYNAMO_GUARDS=both (how guards are checked: native, text or both)", ""),
        ("slow", "MINIDYNAMO_VERFIY means nothing", "did you mean MINIDYNAMO_VERIFY?"),
    ]


def test_the_table_of_variables_is_what_the_sources_read():
    sources = [*(ROOT / "minidynamo").rglob("*.py"), ROOT / "setup.py"]
    read = {
        name
        for path in sources
        if path.name != "doctor.py" and path.exists()
        for name in re.findall(r"""["'](MINIDYNAMO_[A-Z_]+)["']""", path.read_text())
    }
    assert set(doctor.ENVIRONMENT) == read - {"MINIDYNAMO_TORCH_VERSION"}


@pytest.mark.parametrize("variable", ["CC", "CXX"])
def test_a_compiler_that_is_not_there_is_found_out(healthy, monkeypatch, variable):
    monkeypatch.setenv(variable, "no-such-compiler-9")
    assert line({"CC": "C compiler", "CXX": "C++ compiler"}[variable]).text.startswith("none found")


def test_a_terminal_gets_a_table(monkeypatch, capsys):
    pytest.importorskip("rich")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "200")
    code = doctor.run([])
    text = capsys.readouterr().out
    assert "minidynamo doctor" in text and "┃" in text
    assert code == int("not usable" in text)


def test_a_narrow_terminal_loses_nothing(monkeypatch, capsys):
    pytest.importorskip("rich")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "40")
    doctor.run([])
    words = re.sub(r"[^A-Za-z+]", "", capsys.readouterr().out)
    assert "Python" in words and "usable" in words
