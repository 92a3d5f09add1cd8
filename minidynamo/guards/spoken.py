"""A guarded place as the program spells it: `cfg.step`, `items[0]`, `scale`, and what kind of place it is."""

from __future__ import annotations

import types
from dataclasses import dataclass
from typing import Any

from minidynamo.literals import literal
from minidynamo.sources import (
    PLAIN_MEMBERS,
    AttrSource,
    BuiltinSource,
    CellSource,
    ClosureSource,
    DefaultSource,
    DictItemSource,
    FrameValues,
    GlobalSource,
    ItemSource,
    KwDefaultSource,
    LocalSource,
    Source,
    StateSource,
)


@dataclass(frozen=True, slots=True)
class Spoken:
    """text: the place as the program spells it; root: argument, global, closure, default, state or other;
    name: the root's name; member: the last step ("attr", name) or ("item", literal), ("name", root) for a root."""

    text: str
    root: str
    name: str
    member: tuple[str, str]


_ROOTS: dict[type, tuple[str, str]] = {
    LocalSource: ("argument", "local"),
    GlobalSource: ("global", "global_name"),
    BuiltinSource: ("global", "builtin_name"),
    ClosureSource: ("closure", "var"),
}


def spoken(path: Source, frame: FrameValues) -> Spoken:
    """`path` in the program's own spelling. Never raises for a value that is gone."""
    if type(path) in _ROOTS:
        root, field = _ROOTS[type(path)]
        name = str(getattr(path, field))
        if isinstance(path, ClosureSource) and path.index < len(frame.freevars):
            name = frame.freevars[path.index]
        return Spoken(name, root, name, ("name", name))
    if isinstance(path, StateSource):
        return Spoken("torch's global state", "state", "", ("name", ""))
    if isinstance(path, CellSource):
        name = _cell_name(path, frame)
        return Spoken(name, "closure", name, ("name", name))
    if isinstance(path, (DefaultSource, KwDefaultSource)):
        name = _default_name(path, frame)
        return Spoken(name, "default", name, ("name", name))
    base = path.parent()
    if base is None:
        return Spoken(path.describe(), "other", path.describe(), ("name", path.describe()))
    below = spoken(base, frame)
    if isinstance(path, AttrSource):
        if path.member in PLAIN_MEMBERS:
            return below
        return Spoken(f"{below.text}.{path.member}", below.root, below.name, ("attr", path.member))
    if isinstance(path, (ItemSource, DictItemSource)):
        key = path.key
        if isinstance(base, AttrSource) and base.member == "__globals__":
            return Spoken(str(key), "global", str(key), ("name", str(key)))
        if isinstance(base, AttrSource) and base.member in PLAIN_MEMBERS and type(key) is str:
            return Spoken(f"{below.text}.{key}", below.root, below.name, ("attr", key))
        return Spoken(f"{below.text}[{literal(key)}]", below.root, below.name, ("item", literal(key)))
    return Spoken(path.describe(), below.root, below.name, below.member)


def _function(path: Any, frame: FrameValues) -> types.CodeType | None:
    try:
        found = path.base.read(frame)
    except Exception:  # the function is gone: its names are not known
        return None
    return found.__code__ if type(found) is types.FunctionType else None


def _cell_name(path: CellSource, frame: FrameValues) -> str:
    code = _function(path, frame)
    known = code is not None and path.index < len(code.co_freevars)
    return code.co_freevars[path.index] if code is not None and known else path.describe()


def _default_name(path: DefaultSource | KwDefaultSource, frame: FrameValues) -> str:
    if isinstance(path, KwDefaultSource):
        return path.parameter
    code = _function(path, frame)
    if code is None:
        return path.describe()
    count = len(path.base.read(frame).__defaults__ or ())
    index = code.co_argcount - count + path.index
    return code.co_varnames[index] if 0 <= index < code.co_argcount else path.describe()
