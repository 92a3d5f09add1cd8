"""FILE:FUNC on a command line: the function, and arguments to call it with. Whatever is wrong is told in one
line."""

from __future__ import annotations

import difflib
import importlib.util
import inspect
import os
import sys
import traceback
import types
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


class BadTarget(Exception):
    """What was asked for cannot be done; the message is one line for the user."""


@dataclass(frozen=True, slots=True)
class Target:
    """A function of a file. `label` is how the user named it."""

    label: str
    fn: Callable[..., Any]
    module: types.ModuleType


Arguments = tuple[tuple[Any, ...], dict[str, Any]]


def load_target(spec: str) -> Target:
    """The function that FILE:FUNC names; FUNC may be dotted. Raises BadTarget: no such file, a file that
    cannot be imported, no such name (with the nearest one), something that cannot be called."""
    filename, colon, name = spec.rpartition(":")
    if not colon or not filename or not name:
        raise BadTarget(f"{spec!r} is not FILE:FUNC, e.g. examples/toy_example.py:toy_example")
    if not os.path.isfile(filename):
        raise BadTarget(f"no file {filename!r}")
    module = _load(filename)
    found: Any = module
    for part in name.split("."):
        owner, found = found, getattr(found, part, None)
        if found is None:
            near = difflib.get_close_matches(
                part, [n for n in dir(owner) if callable(getattr(owner, n, None))], n=1
            )
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise BadTarget(f"{filename} has no {name!r}{hint}")
    if not callable(found) or isinstance(found, type):
        raise BadTarget(
            f"{name} in {filename} is {type(found).__name__}, not a function, method or module object"
        )
    return Target(spec, found, module)


def _load(filename: str) -> types.ModuleType:
    """Import FILE as a module of its own name (not `__main__`), its folder first on the path."""
    name = os.path.splitext(os.path.basename(filename))[0]
    name = name if name not in sys.modules else f"{name} (traced)"
    spec = importlib.util.spec_from_file_location(name, os.path.abspath(filename))
    if spec is None or spec.loader is None:
        raise BadTarget(f"{filename!r} is not a Python file")
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    folder = os.path.dirname(os.path.abspath(filename))
    if sys.path[:1] != [folder]:
        sys.path.insert(0, folder)
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        raise BadTarget(f"{filename} cannot be imported: {raised(error)}") from error
    return module


def raised(error: BaseException) -> str:
    """An exception in one line, with the innermost place where it was raised."""
    text = " ".join(str(error).split())
    frames = traceback.extract_tb(error.__traceback__)
    at = f" ({os.path.basename(frames[-1].filename)}:{frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}{': ' if text else ''}{text}{at}"


def arguments(target: Target, text: str | None) -> Arguments:
    """What to call the target with: `text` as it would stand between the parentheses of a call, evaluated
    among the file's names and torch; without it the file's `example_args()` or `EXAMPLE_ARGS` (a tuple or
    list of positional arguments, or a dict of keywords); without those nothing.

    Raises BadTarget when they cannot be had or the function does not take them.
    """
    args, kwargs = _evaluated(target, text) if text is not None else _provided(target.module)
    try:
        inspect.signature(target.fn).bind(*args, **kwargs)
    except TypeError as error:
        if text is None and not args and not kwargs:
            raise BadTarget(
                f"{target.label} needs arguments ({error}): pass --args, or define example_args() or "
                "EXAMPLE_ARGS in the file"
            ) from error
        raise BadTarget(f"{target.label} does not take these arguments: {error}") from error
    except ValueError:
        pass  # a callable without a signature: the call itself will tell
    return args, kwargs


def _evaluated(target: Target, text: str) -> Arguments:
    import torch

    names = {"torch": torch, **vars(target.module), "___collect": lambda *args, **kwargs: (args, kwargs)}
    try:
        made: Arguments = eval(f"___collect({text})", names)
    except Exception as error:
        raise BadTarget(f"--args {text!r} cannot be evaluated: {type(error).__name__}: {error}") from error
    return made


def _provided(module: types.ModuleType) -> Arguments:
    made = getattr(module, "example_args", None)
    if made is None:
        made = getattr(module, "EXAMPLE_ARGS", ())
    elif callable(made):
        try:
            made = made()
        except Exception as error:
            raise BadTarget(f"example_args() of {module.__file__} raised {raised(error)}") from error
    if isinstance(made, dict):
        return (), made
    if isinstance(made, (tuple, list)):
        return tuple(made), {}
    raise BadTarget(
        f"the example arguments are {type(made).__name__}; they must be a tuple, a list or a dict of keywords"
    )
