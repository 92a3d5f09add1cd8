"""Running somebody's program as the interpreter would: `__main__`, sys.argv, sys.path[0], exit codes, tracebacks."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import io
import linecache
import os
import sys
import threading
import traceback
import types
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

COMMAND_FILE = "<command>"


class NotRunnable(Exception):
    """There is nothing to run; the message is one line."""


@dataclass(frozen=True, slots=True)
class Program:
    """What to run: its code, sys.argv, sys.path[0], the names that its `__main__` begins with."""

    code: types.CodeType
    argv: list[str]
    path: str
    names: dict[str, Any]


def script(filename: str, arguments: Sequence[str]) -> Program:
    """A file, or a folder with a `__main__.py`. Raises NotRunnable; SyntaxError is the program's."""
    name = os.path.join(os.getcwd(), filename)
    folder = os.path.isdir(name)
    path = name if folder else os.path.dirname(os.path.abspath(name))
    if folder:
        name = os.path.join(name, "__main__.py")
    if not os.path.isfile(name):
        raise NotRunnable(f"no file {filename!r}")
    with io.open_code(name) as file:
        source = file.read()
    loader = importlib.machinery.SourceFileLoader("__main__", name)
    spec = importlib.util.spec_from_file_location("__main__", name, loader=loader) if folder else None
    names = {
        "__file__": name,
        "__spec__": spec,
        "__package__": "" if folder else None,
        "__loader__": loader,
        "__cached__": spec.cached if spec is not None else None,
    }
    code = compile(source, name, "exec", dont_inherit=True)
    return Program(code, [filename, *arguments], path, names)


def module(name: str, arguments: Sequence[str]) -> Program:
    """A module by name, a package's `__main__` (as `python -m`). Raises NotRunnable."""
    sys.path.insert(0, os.getcwd())
    try:
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.submodule_search_locations is not None:
            spec = importlib.util.find_spec(f"{name}.__main__")
    except (ImportError, ValueError, AttributeError) as error:
        raise NotRunnable(f"no module {name!r}: {error}") from error
    finally:
        del sys.path[0]
    loader: Any = spec.loader if spec is not None else None
    if spec is None or loader is None or not hasattr(loader, "get_code"):
        raise NotRunnable(f"no module {name!r}")
    code = loader.get_code(spec.name)
    if code is None:
        raise NotRunnable(f"module {name!r} has no Python code")
    names = {
        "__file__": spec.origin,
        "__spec__": spec,
        "__package__": spec.parent,
        "__loader__": loader,
        "__cached__": spec.cached,
    }
    return Program(code, [spec.origin or name, *arguments], os.getcwd(), names)


def command(text: str, arguments: Sequence[str]) -> Program:
    """The text of `-c`."""
    lines = text.splitlines(keepends=True)
    linecache.cache[COMMAND_FILE] = (len(text), None, lines, COMMAND_FILE)
    code = compile(text, COMMAND_FILE, "exec", dont_inherit=True)
    names = {"__spec__": None, "__package__": None, "__loader__": None}
    return Program(code, ["-c", *arguments], "", names)


def execute(program: Program) -> int:
    """Run it to its end, threads included, and give the exit code that the interpreter would."""
    main = types.ModuleType("__main__")
    main.__dict__.update({"__builtins__": __builtins__, **program.names})
    if "__annotations__" in sys.modules["__main__"].__dict__:  # the interpreter's own has it
        main.__dict__["__annotations__"] = {}
    sys.modules["__main__"] = main
    sys.argv = list(program.argv)
    sys.path[0] = program.path
    code = 0
    try:
        exec(program.code, main.__dict__)
    except SystemExit as stop:
        code = exit_code(stop)
    except KeyboardInterrupt as stop:
        show(stop, program.code)
        code = 130
    except BaseException as error:
        show(error, program.code)
        code = 1
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join()
    return code


def exit_code(stop: SystemExit) -> int:
    """As the interpreter understands it: nothing is 0, a number is itself, anything else is printed and 1."""
    if stop.code is None:
        return 0
    if isinstance(stop.code, int):
        return stop.code & 0xFF
    print(stop.code, file=sys.stderr)
    return 1


def show(error: BaseException, code: types.CodeType) -> None:
    """The traceback from the program's first frame on, through `sys.excepthook`."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code is not code:
        trace = trace.tb_next
    error = error.with_traceback(trace)
    try:
        sys.excepthook(type(error), error, trace)
    except Exception:  # the program's own hook failed: as the interpreter does, both are told
        traceback.print_exc()
