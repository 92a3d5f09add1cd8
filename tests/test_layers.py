"""The shape of the source tree: imports go downward only, and facts live in their homes.

Everything is read with `ast`; function-level and TYPE_CHECKING imports count like any other.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import warnings
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "minidynamo"

# Top to bottom. A module may import from its own layer and from those below it. Names are minidynamo's direct
# children; "" is minidynamo/__init__.py, the public API.
LAYERS: tuple[tuple[str, ...], ...] = (
    ("__main__", "cli", "pytest_plugin"),
    ("", "eval_frame", "testing"),
    ("debug",),
    ("on_miss",),
    ("convert_frame",),
    ("misses",),
    ("compile_frame",),
    ("compile_again",),
    ("entry",),
    ("first_run",),
    ("backends", "openreg"),
    ("translate",),
    ("rules",),
    ("polyfills",),
    ("variables",),
    ("graph",),
    ("guards",),
    ("sources",),
    ("literals", "static_access", "optimized_module", "stance"),
    ("pycode",),
    ("cache",),
    ("recording",),
    ("events", "reasons", "exc", "config", "markers", "logs"),
    ("_C", "_tensor_guards"),
)
DEPTH = {name: depth for depth, layer in enumerate(LAYERS) for name in layer}
TORCH_FREE = ("pycode", "cache", "recording", "events", "reasons", "exc", "config")
DYNAMO_ALLOWED = frozenset(
    {"minidynamo/backends/others.py"}
)  # files that may import torch._dynamo, inside functions only
VERSION_HOMES = ("minidynamo/pycode/versions/", "native/frame_compat.h", "native/openreg/")
VERSION_CHECK = re.compile(
    r"\b(version_info|hexversion|python_version_tuple|PY_(VERSION_HEX|M[A-Z]+_VERSION))\b"
)
IMPORTERS = ("import_module", "__import__", "find_spec")


def files() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(), filename=str(path))


def is_module(name: str) -> bool:
    """True for a module or package of the project, native ones included."""
    path = ROOT.joinpath(*name.split("."))
    native = name in ("minidynamo._C", "minidynamo._tensor_guards", "minidynamo.openreg._C")
    return native or path.with_suffix(".py").exists() or (path / "__init__.py").exists()


def from_base(node: ast.ImportFrom, name: str, package: bool) -> str:
    """The absolute module that `from ... import` reads from, in module `name`."""
    if not node.level:
        return node.module or ""
    parts = name.split(".")
    parts = parts[: len(parts) - node.level + package]
    return ".".join([*parts, *([node.module] if node.module else [])])


def imports(source: ast.AST, name: str, package: bool = False) -> list[tuple[str, int]]:
    """(module, line) of every import in `source`, the tree of module `name`; constant dynamic ones count."""
    found: list[tuple[str, int]] = []
    for node in ast.walk(source):
        if isinstance(node, ast.Import):
            found += [(alias.name, node.lineno) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = from_base(node, name, package)
            for alias in node.names:
                inner = f"{base}.{alias.name}"
                own = inner.partition(".")[0] == "minidynamo" and not is_module(inner)
                found.append((base if own else inner, node.lineno))
        elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            called = node.func
            what = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
            if what in IMPORTERS and isinstance(node.args[0].value, str):
                found.append((node.args[0].value, node.lineno))
    return found


def imports_of(path: Path) -> list[tuple[str, int]]:
    return imports(tree(path), module_name(path), path.name == "__init__.py")


def layer_of(module: str) -> str:
    """minidynamo's direct child that `module` is or lies in; "" for minidynamo itself."""
    return module.split(".")[1] if "." in module else ""


def upward(source: ast.AST, name: str, package: bool = False) -> list[str]:
    """The imports of module `name` that go up."""
    depth = DEPTH.get(layer_of(name), 0)
    targets = [(m, line) for m, line in imports(source, name, package) if m.partition(".")[0] == "minidynamo"]
    return [
        f"line {line}: {name} imports {m}" for m, line in targets if DEPTH.get(layer_of(m), depth) < depth
    ]


def mentions(source: ast.AST, name: str) -> list[int]:
    """Lines where the dotted `name` is imported or read as an attribute chain."""
    lines = [line for module, line in imports(source, "minidynamo.x") if f"{module}.".startswith(f"{name}.")]
    chains = [n for n in ast.walk(source) if isinstance(n, ast.Attribute) and ast.unparse(n) == name]
    return sorted({*lines, *(n.lineno for n in chains)})


def test_every_module_has_a_layer():
    children = {layer_of(module_name(path)) for path in files()}
    assert children <= DEPTH.keys(), f"give {sorted(children - DEPTH.keys())} a place in LAYERS"


def test_imports_go_downward():
    wrong = [row for p in files() for row in upward(tree(p), module_name(p), p.name == "__init__.py")]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("minidynamo.graph.x", "from ..translate import emit"),
        ("minidynamo.graph.x", "from minidynamo import variables"),
        ("minidynamo.graph.x", "def f():\n    import minidynamo.rules.builtins"),
        ("minidynamo.pycode.lift", "from minidynamo.sources import LocalSource"),
        ("minidynamo.cache", "import minidynamo"),
        ("minidynamo.exc", "importlib.import_module('minidynamo.cache')"),
    ],
)
def test_an_upward_import_is_found(name, text):
    assert len(upward(ast.parse(text), name)) == 1


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("minidynamo.translate.x", "from ..graph import output_graph\nfrom . import emit"),
        ("minidynamo.guards.x", "from minidynamo import config, exc"),
        ("minidynamo.cache", "from minidynamo import _C"),
    ],
)
def test_a_downward_import_is_allowed(name, text):
    assert upward(ast.parse(text), name) == []


def cycles(graph: dict[str, set[str]]) -> set[frozenset[str]]:
    """The sets of modules of which each imports each other, directly or not."""
    reach = {name: set(targets) for name, targets in graph.items()}
    for middle in reach:
        for targets in reach.values():
            if middle in targets:
                targets |= reach[middle]
    return {
        frozenset(other for other in targets if name in reach.get(other, ()))
        for name, targets in reach.items()
        if name in targets
    }


def test_no_import_cycles():
    """Between modules; an __init__ that re-exports what lies beside it is left out."""
    plain = [path for path in files() if path.name != "__init__.py"]
    found = cycles({module_name(path): {m for m, _ in imports_of(path) if is_module(m)} for path in plain})
    assert not found, "\n".join(", ".join(sorted(group)) for group in found)


def test_a_cycle_is_found():
    graph = {"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": {"e"}, "e": set()}
    assert cycles(graph) == {frozenset("abc")}


def test_tracing_is_the_only_seam():
    """`Tracing` is declared once, as a Protocol in variables, and subclassed in translate only."""
    declared, implemented = [], []
    for path in files():
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.ClassDef):
                bases = {ast.unparse(base).rpartition(".")[2] for base in node.bases}
                if node.name == "Tracing":
                    declared.append((layer_of(module_name(path)), "Protocol" in bases))
                if "Tracing" in bases:
                    implemented.append(layer_of(module_name(path)))
    assert declared in ([], [("variables", True)])
    assert set(implemented) <= {"translate"}
    assert bool(declared) or not implemented


def test_version_checks_are_in_their_homes():
    sources = [*files(), *sorted(p for p in (ROOT / "native").rglob("*") if p.suffix in (".c", ".h", ".cpp"))]
    wrong = [
        f"{relative(path)}:{number}: {line.strip()}"
        for path in sources
        if not relative(path).startswith(VERSION_HOMES)
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if VERSION_CHECK.search(line)
    ]
    assert not wrong, "\n".join(wrong)


def test_nothing_imports_torch_dynamo():
    wrong = []
    for path in files():
        lines = mentions(tree(path), "torch._dynamo")
        if relative(path) in DYNAMO_ALLOWED:
            inside = {
                inner.lineno
                for node in ast.walk(tree(path))
                if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
                for inner in ast.walk(node)
                if hasattr(inner, "lineno")
            }
            lines = [line for line in lines if line not in inside]
        wrong += [f"{relative(path)}:{line}" for line in lines]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    "text",
    [
        "import torch._dynamo",
        "from torch import _dynamo",
        "from torch._dynamo.utils import counters",
        "torch._dynamo.reset()",
        "importlib.import_module('torch._dynamo.config')",
    ],
)
def test_an_import_of_torch_dynamo_is_found(text):
    assert mentions(ast.parse(text), "torch._dynamo") == [1]


def test_lower_layers_never_import_torch():
    wrong = [
        f"{relative(path)}:{line}: {module}"
        for path in files()
        if layer_of(module_name(path)) in TORCH_FREE
        for module, line in imports_of(path)
        if module.partition(".")[0] == "torch"
    ]
    assert not wrong, "\n".join(wrong)


def test_pycode_never_imports_the_native_extension():
    wrong = [
        f"{relative(path)}:{line}"
        for path in files()
        if layer_of(module_name(path)) in ("pycode", "recording", "events", "reasons", "exc", "config")
        for module, line in imports_of(path)
        if layer_of(module) == "_C" and module.startswith("minidynamo")
    ]
    assert not wrong, "\n".join(wrong)


def test_light_modules_load_without_torch_and_native_extension():
    """In a process where importing either is an error."""
    names = [module_name(path) for path in files()]
    light = [name for name in names if layer_of(name) in TORCH_FREE and layer_of(name) != "cache"]
    program = (
        "import sys, importlib\n"
        "sys.modules['torch'] = sys.modules['minidynamo._C'] = None\n"
        f"for name in {['minidynamo', 'minidynamo.cli.main', *light]!r}:\n"
        "    importlib.import_module(name)\n"
    )
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_there_is_no_utils():
    assert [relative(path) for path in files() if "util" in path.stem] == []


def test_long_files_are_named():
    """A habit, not a rule: files of 600 lines and more show up as warnings."""
    sources = [*files(), *sorted((ROOT / "native").glob("*.[ch]"))]
    lengths = {relative(path): len(path.read_text().splitlines()) for path in sources}
    for name, length in lengths.items():
        if length >= 600:
            warnings.warn(f"{name} has {length} lines: is it one concept?", stacklevel=1)
    assert len(lengths) > 10
