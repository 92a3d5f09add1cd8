"""Fixtures for the tests of `minidynamo._C`. Nothing here needs torch."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import textwrap
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]

try:
    C: Any = importlib.import_module("minidynamo._C")
except ImportError as error:
    raise pytest.UsageError(
        f"minidynamo._C is not built for Python {sys.version.split()[0]} ({sys.executable}): {error}\n"
        "build it with: python setup.py build_ext --inplace"
    ) from error


def always(*_values: object) -> bool:
    """A check function that holds."""
    return True


def never(*_values: object) -> bool:
    """A check function that fails."""
    return False


@dataclass
class Guarded:
    """What a compiler answers: the attributes that `add_entry` and `set_convert_frame` ask for."""

    code: types.CodeType
    check_fn: Callable[..., object] = always
    validity: Any = field(default_factory=C.Validity)
    handles: tuple[Any, ...] = ()
    owned: tuple[object, ...] = ()
    has_break: bool = False
    rerunnable: bool = False
    payload: object = None
    direct: tuple[Any, tuple[int, ...], tuple[str, object]] | None = None


def define(source: str, **names: object) -> types.FunctionType:
    """The function that `source` defines last, in a module of its own with `names` as globals."""
    module: dict[str, Any] = {"__name__": "user_module", **names}
    exec(compile(textwrap.dedent(source), "<user>", "exec"), module)
    return [value for value in module.values() if isinstance(value, types.FunctionType)][-1]


def with_constants(fn: types.FunctionType, **constants: object) -> types.CodeType:
    """The code of `fn` with each constant string "<name>" replaced by the object given for `name`."""
    table = {f"<{name}>": value for name, value in constants.items()}
    consts = tuple(table.get(c, c) if isinstance(c, str) else c for c in fn.__code__.co_consts)
    return fn.__code__.replace(co_consts=consts)


class Kit:
    """The extension module and the helpers that most tests need."""

    C = C
    Guarded = Guarded
    always = staticmethod(always)
    never = staticmethod(never)
    define = staticmethod(define)
    with_constants = staticmethod(with_constants)

    def __init__(self) -> None:
        self.key = C.CompileKey("test backend")
        self.ctx = C.OptimizeContext(self.key)
        self.before = C.stats()

    def counted(self, *names: str) -> tuple[int, ...]:
        """How often each event happened since the test began."""
        now = C.stats()
        return tuple(now[name] - self.before[name] for name in names)

    def add(
        self, fn: Any, new: Any, check: Callable[..., object] = always, ctx: Any = None, **rest: Any
    ) -> Any:
        """An entry that lets `fn` (function or code) run as `new` (function or code) does."""
        code = new if isinstance(new, types.CodeType) else new.__code__
        original = fn if isinstance(fn, types.CodeType) else fn.__code__
        return C.add_entry(original, ctx or self.ctx, Guarded(code, check, **rest))

    def direct(self, how: str, *args: Any, **kwargs: Any) -> Direct:
        return Direct(self, how, *args, **kwargs)

    def optimized(self, fn: Any, ctx: Any = None) -> Any:
        return C.OptimizedFunction(fn, ctx or self.ctx)

    def hooked(self, fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Calls `fn` with the context active, so that frames below it reach the evaluator."""
        before = C.swap_active(self.ctx)
        try:
            return fn(*args, **kwargs)
        finally:
            C.swap_active(before)


class Direct:
    """f with one direct entry whose code, should it ever run, returns "code"; `call` runs f in one of two ways."""

    def __init__(
        self,
        kit: Kit,
        how: str,
        graph: Callable[..., object],
        recipe: tuple[str, object] = ("output", 0),
        inputs: tuple[int, ...] = (0,),
        outputs: int = 1,
        signature: str = "a, b=None",
        **names: object,
    ) -> None:
        self.kit, self.how = kit, how
        self.f = kit.define(
            f"def f({signature}): return eager(a)", **{"eager": lambda a: ("eager", a), **names}
        )
        self.handle = kit.C.EntryHandle(graph, outputs)
        self.spec = (self.handle, inputs, recipe)
        self.new = kit.define(f"def f({signature}): return 'code'")
        self.entry = kit.add(self.f, self.new, handles=(self.handle,), rerunnable=True, direct=self.spec)
        self.optimized = kit.optimized(self.f)

    def call(self, *args: Any, **kwargs: Any) -> Any:
        if self.how == "optimized":
            return self.optimized(*args, **kwargs)
        return self.kit.hooked(self.f, *args, **kwargs)


@pytest.fixture(autouse=True)
def no_compiler() -> Iterator[None]:
    """Nothing is compiled unless a test says how; afterwards the callbacks are those of before."""
    convert, rerun = C.set_convert_frame(None), C.set_rerun_callback(None)
    yield
    C.set_convert_frame(convert)
    C.set_rerun_callback(rerun)


@pytest.fixture
def kit() -> Iterator[Kit]:
    """A fresh key and context; afterwards nothing may be active or installed."""
    C.reset_all()
    yield Kit()
    leftovers = C.active(), C.hook_installed()
    C.swap_active(None)
    C.set_convert_frame(None)
    C.set_rerun_callback(None)
    C.reset_all()
    assert leftovers == (None, False)


@pytest.fixture(params=["optimized", "hooked"])
def direct(kit: Kit, request: pytest.FixtureRequest) -> Callable[..., Direct]:
    """direct(graph, recipe, inputs, outputs, signature): an f with a direct entry, called in both ways."""
    return lambda *args, **kwargs: kit.direct(request.param, *args, **kwargs)


@pytest.fixture
def python() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs a program in a new interpreter of this version; the test fails unless it exits with 0."""

    def run(source: str, *args: str, **environment: str) -> subprocess.CompletedProcess[str]:
        paths = [str(Path(C.__file__).parents[1]), str(ROOT), os.environ.get("PYTHONPATH", "")]
        program = "import minidynamo._C as C\n" + textwrap.dedent(source)
        done = subprocess.run(
            [sys.executable, "-P", "-X", "faulthandler", "-c", program, *args],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths)), **environment},
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == 0, f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done

    return run
