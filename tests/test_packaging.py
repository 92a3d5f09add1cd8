"""What is promised to installers: metadata, the console script, and what goes into sdist and wheel."""

from __future__ import annotations

import configparser
import importlib
import os
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def cfg() -> configparser.ConfigParser:
    parser = configparser.ConfigParser()
    assert parser.read(ROOT / "setup.cfg")
    return parser


def lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]


def test_dependencies_are_exactly_three(cfg):
    assert lines(cfg["options"]["install_requires"]) == ["bytecode", "torch>=2.6", "rich"]


def test_extras(cfg):
    assert set(cfg["options.extras_require"]) == {"test", "bench", "demo", "models"}
    assert lines(cfg["options.extras_require"]["demo"]) == ["tabulate"]


def test_supported_pythons_are_those_of_the_classifiers(cfg):
    assert cfg["options"]["python_requires"] == ">=3.11,<3.15"
    minors = re.findall(r"Python :: 3\.(\d+)\n", cfg["metadata"]["classifiers"] + "\n")
    assert minors == ["11", "12", "13", "14"]


def test_licence(cfg):
    assert cfg["metadata"]["license"] == "MIT"
    assert (ROOT / "LICENSE").read_text().startswith("MIT License\n")


def test_version_is_one_number(cfg):
    import minidynamo

    assert minidynamo.__version__ == cfg["metadata"]["version"]


def test_entry_points_can_be_imported(cfg):
    scripts = dict(line.split(" = ") for line in lines(cfg["options.entry_points"]["console_scripts"]))
    assert set(scripts) == {"minidynamo"}
    for rows in cfg["options.entry_points"].values():
        for line in lines(rows):
            module, _, name = line.split(" = ")[1].partition(":")
            loaded = importlib.import_module(module)
            assert not name or callable(getattr(loaded, name))


def test_pyproject_holds_the_build_system_only():
    content = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert set(content) == {"build-system"}
    assert content["build-system"]["build-backend"] == "setuptools.build_meta"


def test_pins_are_exact_and_cover_the_dependencies(cfg):
    pins = {}
    for line in lines((ROOT / "requirements-dev.txt").read_text()):
        if not line.startswith("#"):
            name, _, version = line.partition("==")
            assert re.fullmatch(r"\d+(\.\d+)*", version), line
            pins[name.lower().replace("_", "-")] = version
    wanted = lines(cfg["options"]["install_requires"]) + lines(cfg["options.extras_require"]["test"])
    assert {re.split(r"[<>=]", line)[0] for line in wanted} <= pins.keys()


def test_nothing_names_a_place_outside_the_tree():
    """No absolute path, address or registry in what builds and tests the project."""
    names = [
        "setup.py",
        "setup.cfg",
        "pyproject.toml",
        "Makefile",
        "requirements-dev.txt",
        "MANIFEST.in",
        ".ci/run",
    ]
    for path in [*(ROOT / name for name in names), *(ROOT / "scripts").iterdir()]:
        for number, line in enumerate(path.read_text().splitlines(), 1):
            rest = line.replace("#!/usr/bin/env", "").replace("/dev/null", "")
            found = re.search(
                r"://|(?<![\w.$}*)\"'\]])/(usr|opt|home|root|tmp|work|etc)\b|--(extra-)?index-url", rest
            )
            assert not found, f"{path.name}:{number}: {line}"


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Path:
    """A folder with an sdist, and a wheel made from it without the C++ leaf."""
    out = tmp_path_factory.mktemp("dist")
    environment = os.environ | {"MINIDYNAMO_BUILD_CXX": "off"}
    common = {"check": True, "capture_output": True, "text": True, "env": environment}
    subprocess.run(
        [sys.executable, "-m", "build", "--sdist", "--no-isolation", "--outdir", str(out), str(ROOT)],
        **common,
    )
    (sdist,) = out.glob("*.tar.gz")
    options = ["--no-deps", "--no-build-isolation", "--no-cache-dir", "-w", str(out)]
    subprocess.run([sys.executable, "-m", "pip", "wheel", *options, str(sdist)], **common)
    return out


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_the_wheel_has_the_package_and_only_it(built):
    (path,) = built.glob("*.whl")
    with zipfile.ZipFile(path) as wheel:
        names = wheel.namelist()
        metadata = Parser().parsestr(wheel.read("minidynamo-0.1.0.dist-info/METADATA").decode())
    modules = {p.relative_to(ROOT).as_posix() for p in (ROOT / "minidynamo").rglob("*.py")}
    assert modules <= set(names)
    assert {name.split("/")[0] for name in names} == {"minidynamo", "minidynamo-0.1.0.dist-info"}
    assert [name for name in names if re.fullmatch(r"minidynamo/_C\..*\.so", name)]
    assert "minidynamo/py.typed" in names
    assert any(name.endswith("/LICENSE") for name in names)
    assert metadata["License"] == "MIT" or metadata["License-Expression"] == "MIT"
    required = [row for row in metadata.get_all("Requires-Dist") if "extra ==" not in row]
    assert sorted(required) == ["bytecode", "rich", "torch>=2.6"]


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_the_sdist_has_what_a_build_and_a_test_run_need(built):
    (path,) = built.glob("*.tar.gz")
    with tarfile.open(path) as sdist:
        names = {name.partition("/")[2] for name in sdist.getnames()}
    native = {p.relative_to(ROOT).as_posix() for p in (ROOT / "native").rglob("*") if p.is_file()}
    needed = {
        "setup.py",
        "setup.cfg",
        "pyproject.toml",
        "LICENSE",
        "Makefile",
        "requirements-dev.txt",
        "ruff.toml",
    }
    assert needed | native | {"tests/test_packaging.py", "scripts/find-python"} <= names
    assert not [name for name in names if name.endswith((".so", ".pyc"))]
