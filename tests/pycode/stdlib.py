"""Code objects of the standard library, as the corpus that nobody wrote for these tests."""

from __future__ import annotations

import sysconfig
import warnings
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import CodeType

LIBRARY = Path(sysconfig.get_paths()["stdlib"])
LEFT_OUT = frozenset({"site-packages", "lib2to3", "dist-packages"})
# Few files, many features: async code, match, class bodies, large functions, generators.
SAMPLE = """argparse.py ast.py asyncio/base_events.py asyncio/taskgroups.py contextlib.py dataclasses.py
enum.py functools.py inspect.py typing.py traceback.py _pydecimal.py tokenize.py""".split()


def nested(code: CodeType) -> Iterator[CodeType]:
    """`code` and all code objects in its constants."""
    yield code
    for const in code.co_consts:
        if isinstance(const, CodeType):
            yield from nested(const)


def compiled(path: Path) -> Iterator[CodeType]:
    """The code objects of a source file; nothing for one that is no program for this Python."""
    if not path.is_file():
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            code = compile(path.read_bytes(), str(path), "exec", dont_inherit=True)
        except (SyntaxError, ValueError):
            return
    yield from nested(code)


@cache
def sample() -> list[CodeType]:
    """A few thousand code objects."""
    return [code for name in SAMPLE for code in compiled(LIBRARY / name)]


def everything() -> Iterator[CodeType]:
    """All of the library, its own tests included."""
    for path in sorted(LIBRARY.rglob("*.py")):
        if not LEFT_OUT & set(path.parts):
            yield from compiled(path)
