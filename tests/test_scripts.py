"""The scripts that look for other Pythons say why there is none, and leave nothing behind."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def run(script: str, *args: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [str(ROOT / "scripts" / script), *args]
    return subprocess.run(
        command, env=os.environ | environment, capture_output=True, text=True, check=False, timeout=60
    )


def test_a_python_that_is_named_must_fit():
    done = run("find-python", "3.99", PYTHON="python3")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "PYTHON=python3 is not CPython 3.99 with headers, venv and a GIL\n"


def test_no_debian_system_without_a_suite():
    done = run("python-root", "3.99")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "no Debian system with Python 3.99: no suite is known to have it\n"


def test_both_reasons_are_given_when_a_python_cannot_be_had():
    done = run("test-python", "3.99")
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.splitlines() == [
        "no Debian system with Python 3.99: no suite is known to have it",
        "no CPython 3.99 with headers and venv was found by name or in pyenv",
    ]
    assert not (ROOT / ".venv-3.99").exists()
    assert not (ROOT / "build" / "py399-root").exists()


def test_pythons_without_torch_are_named(tmp_path):
    shutil.copytree(ROOT / "scripts", tmp_path / "scripts")
    done = subprocess.run(
        [tmp_path / "scripts" / "test-torch"],
        env=os.environ | {"VENV": ".venv", "WITH_TORCH": ""},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        f"NOT RUN: tests with torch on Python {version}: no torch in .venv-{version} (WITH_TORCH=1 installs it)"
        for version in ("3.11", "3.12", "3.13", "3.14")
    ]
