"""`minidynamo doctor`: what of an installation is present, missing or slower, one line each.

Works with anything missing: torch, the native extension, rich. Exit code 0 when minidynamo is usable, else 1.
"""

from __future__ import annotations

import ctypes
import difflib
import importlib
import importlib.machinery
import importlib.metadata
import importlib.util
import os
import platform
import re
import shutil
import sys
import sysconfig
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from minidynamo.cli.main import OneLineParser

OLDEST_TORCH = (2, 6)
ENVIRONMENT: dict[str, str] = {
    "MINIDYNAMO_DISABLE": "decorated functions run as plain Python",
    "MINIDYNAMO_GUARDS": "how guards are checked: native, text or both",
    "MINIDYNAMO_VERIFY": "check emitted code and first results",
    "MINIDYNAMO_LOG": "log topics that are printed",
    "MINIDYNAMO_TRACE": "record every process to this file; %p is its id",
    "MINIDYNAMO_REDACT": "recordings without text of the program",
    "MINIDYNAMO_REPRO": "a backend that raises: write a script of its graph into the current folder",
    "MINIDYNAMO_BUILD_CXX": "building: the C++ modules",
    "MINIDYNAMO_SANITIZE": "building: sanitizers",
    "MINIDYNAMO_WERROR": "building: warnings as errors",
}
REBUILD = "pip install --force-reinstall --no-deps --no-build-isolation minidynamo (source tree: make build)"


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the report: `state` is ok, slow (works, could be better) or bad (not usable)."""

    subject: str
    state: str
    text: str
    fix: str = ""


def run(argv: list[str]) -> int:
    """The command. Prints a table on a terminal, `subject: state: text` lines elsewhere or with --plain."""
    parser = OneLineParser(prog="minidynamo doctor", description="Says what of this installation is present.")
    parser.add_argument("--plain", action="store_true", help="one line per finding, no table")
    options = parser.parse_args(argv)
    findings = examine()
    if options.plain or not sys.stdout.isatty() or not _print_table(findings):
        for row in findings:
            print(f"{row.subject}: {row.state}: {row.text}" + (f"; {row.fix}" if row.fix else ""))
    broken = [row.subject for row in findings if row.state == "bad"]
    print(f"not usable: {', '.join(broken)}" if broken else "usable")
    return 1 if broken else 0


def examine() -> list[Finding]:
    """Every finding, in the order of PROBES. A probe that fails itself is a finding, never an exception."""
    return [row for probe in PROBES for row in probe()]


def python() -> Iterator[Finding]:
    name = f"{platform.python_implementation()} {platform.python_version()}"
    if platform.python_implementation() != "CPython":
        yield Finding("Python", "bad", f"{name}: frames can be intercepted on CPython only")
    elif sysconfig.get_config_var("Py_GIL_DISABLED"):
        yield Finding("Python", "bad", f"{name}, free-threaded build", "use a build with the GIL")
    else:
        lift, why = _load("minidynamo.pycode.lift")
        if lift is None:
            text = f"{name}: bytecode tables do not load ({why})"
            yield Finding("Python", "bad", text, "use CPython 3.11-3.14")
        else:
            yield Finding("Python", "ok", f"{name}, with the GIL")


def dependencies() -> Iterator[Finding]:
    for name in ("bytecode", "rich"):
        module, why = _load(name)
        if module is None:
            state = "bad" if name == "bytecode" else "slow"
            yield Finding(name, state, f"missing ({why})", f"pip install {name}")
        else:
            yield Finding(name, "ok", _distribution_version(name))


def torch() -> Iterator[Finding]:
    module, why = _load("torch")
    if module is None:
        yield Finding("torch", "bad", f"not importable ({why})", "pip install 'torch>=2.6'")
        return
    version = str(module.__version__)
    if _numbers(version) < OLDEST_TORCH:
        yield Finding("torch", "bad", f"{version}: older than 2.6", "pip install --upgrade 'torch>=2.6'")
    else:
        yield Finding("torch", "ok", version)


def native() -> Iterator[Finding]:
    module, why = _load("minidynamo._C")
    if module is not None:
        yield Finding("native extension", "ok", os.path.basename(str(module.__file__)))
    elif importlib.util.find_spec("minidynamo._C") is None:
        yield Finding("native extension", "bad", "minidynamo._C is not built for this Python", REBUILD)
    else:
        yield Finding("native extension", "bad", f"minidynamo._C does not load ({why})", REBUILD)


def tensor_leaf() -> Iterator[Finding]:
    subject, slow = "tensor guards", "Python leaf in use, about 70 times slower for each tensor"
    torch, _ = _load("torch")
    if torch is None:
        yield Finding(subject, "slow", "not examined: they need torch")
        return
    if importlib.util.find_spec("minidynamo._tensor_guards") is None:
        if _compiler("CXX", "c++") is None:
            yield Finding(subject, "slow", f"{slow}: no C++ compiler", f"install one, then {REBUILD}")
        else:
            yield Finding(subject, "slow", f"{slow}: minidynamo was built without torch", REBUILD)
        return
    leaf, why = _load("minidynamo._tensor_guards")
    built_for = getattr(leaf, "torch_version", None)
    if leaf is None:
        yield Finding(subject, "slow", f"{slow}: built for another torch, does not load ({why})", REBUILD)
    elif built_for is not None and built_for != torch.__version__:
        text = f"{slow}: built for torch {built_for}, {torch.__version__} is installed"
        yield Finding(subject, "slow", text, REBUILD)
    else:
        yield Finding(subject, "ok", "C++ leaf")


def accelerator() -> Iterator[Finding]:
    """Looked for, not imported: importing it registers the device."""
    subject = "openreg"
    folder = Path(__file__).parents[1] / "openreg"
    if any((folder / f"_C{suffix}").exists() for suffix in importlib.machinery.EXTENSION_SUFFIXES):
        yield Finding(subject, "ok", "the simulated accelerator is built")
    else:
        yield Finding(subject, "slow", "the simulated accelerator is not built", REBUILD)


def eval_frame_hook() -> Iterator[Finding]:
    taken = _evaluator_taken()
    if taken is None:
        yield Finding("eval-frame hook", "slow", "not examined: this Python does not tell")
    elif taken:
        yield Finding("eval-frame hook", "ok", "another evaluator is installed; minidynamo chains to it")
    else:
        yield Finding("eval-frame hook", "ok", "free")


def backends() -> Iterator[Finding]:
    module, why = _load("minidynamo.backends.registry")
    if module is None:
        yield Finding("backends", "bad", f"the registry does not load ({why})")
    else:
        yield Finding("backends", "ok", ", ".join(module.list_backends()))


def compilers() -> Iterator[Finding]:
    for subject, variable, default in (("C compiler", "CC", "cc"), ("C++ compiler", "CXX", "c++")):
        found = _compiler(variable, default)
        if found is None:
            yield Finding(subject, "slow", "none found: needed only to build from source")
        else:
            yield Finding(subject, "ok", found)


def environment() -> Iterator[Finding]:
    for name, value in sorted(os.environ.items()):
        if not name.startswith("MINIDYNAMO_"):
            continue
        if name in ENVIRONMENT:
            yield Finding("environment", "ok", f"{name}={value} ({ENVIRONMENT[name]})")
        else:
            near = difflib.get_close_matches(name, ENVIRONMENT, n=1)
            fix = f"did you mean {near[0]}?" if near else "unset it"
            yield Finding("environment", "slow", f"{name} means nothing", fix)


PROBES: tuple[Callable[[], Iterator[Finding]], ...] = (
    python,
    dependencies,
    torch,
    native,
    tensor_leaf,
    accelerator,
    eval_frame_hook,
    backends,
    compilers,
    environment,
)


def _load(name: str) -> tuple[Any, str]:
    """Module `name` and "", or None and the first line of why it cannot be imported."""
    try:
        module: ModuleType = importlib.import_module(name)
    except (ImportError, OSError, RuntimeError, AttributeError) as error:
        return None, str(error).splitlines()[0] if str(error) else type(error).__name__
    return module, ""


def _evaluator_taken() -> bool | None:
    """Whether this process's frames go to another function than CPython's own (PEP 523); None: not known."""
    try:
        api = ctypes.pythonapi
        default = ctypes.cast(api._PyEval_EvalFrameDefault, ctypes.c_void_p).value
        api.PyInterpreterState_Get.restype = ctypes.c_void_p
        api._PyInterpreterState_GetEvalFrameFunc.restype = ctypes.c_void_p
        api._PyInterpreterState_GetEvalFrameFunc.argtypes = [ctypes.c_void_p]
        return api._PyInterpreterState_GetEvalFrameFunc(api.PyInterpreterState_Get()) != default
    except AttributeError:
        return None


def _distribution_version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "version unknown"


def _numbers(version: str) -> tuple[int, ...]:
    """The leading numbers of a version: (2, 13, 0) for "2.13.0+cpu", (2, 6) for "2.6a0"."""
    found = re.match(r"\d+(\.\d+)*", version)
    return tuple(map(int, found[0].split("."))) if found else ()


def _compiler(variable: str, default: str) -> str | None:
    """The name of the compiler that a build would use, if it is there."""
    command = (os.environ.get(variable) or sysconfig.get_config_var(variable) or default).split()[0]
    return os.path.basename(command) if shutil.which(command) else None


def _print_table(findings: list[Finding]) -> bool:
    """False when rich is missing."""
    try:
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text
    except ImportError:
        return False
    table = Table(title="minidynamo doctor", title_justify="left")
    for heading in ("", "state", "found", "to do"):
        table.add_column(heading)
    colours = {"ok": "green", "slow": "yellow", "bad": "red"}
    for row in findings:
        state = Text(row.state, style=colours[row.state])
        table.add_row(Text(row.subject), state, Text(row.text), Text(row.fix))
    Console().print(table)
    return True
