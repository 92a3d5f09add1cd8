"""Where a value came from: one frozen `Source` per path.

A source says three things about its value: the guard text that reads it (`name`), the expression that reloads it
in output code (`expr`), and how to read it from a frame now (`read`). Guard text runs no user code: static
steps go through the `___` helpers, plain attribute and item steps are taken only on bases whose exact type is
guarded first (`plain_base` names that base; the guard builder adds the type guard).
"""

from __future__ import annotations

import enum
import keyword
import types
import unicodedata
from dataclasses import dataclass, field
from types import CellType, CodeType
from typing import Any

from minidynamo import exc, static_access
from minidynamo.literals import Ref, literal


class GuardSource(enum.Enum):
    """Which scope a guarded value is found in; nn.Module variants are dropped when `guard_nn_modules` is off."""

    LOCAL = "local"
    GLOBAL = "global"
    LOCAL_NN_MODULE = "local nn module"
    GLOBAL_NN_MODULE = "global nn module"
    STATE = "state"
    CONSTANT = "constant"

    def is_local(self) -> bool:
        return self in (GuardSource.LOCAL, GuardSource.LOCAL_NN_MODULE)

    def is_nn_module(self) -> bool:
        return self in (GuardSource.LOCAL_NN_MODULE, GuardSource.GLOBAL_NN_MODULE)

    def nn_module(self) -> GuardSource:
        """The same scope, as the scope of a module's guard."""
        return _NN_MODULE.get(self, self)


_NN_MODULE = {
    GuardSource.LOCAL: GuardSource.LOCAL_NN_MODULE,
    GuardSource.GLOBAL: GuardSource.GLOBAL_NN_MODULE,
}


@dataclass(frozen=True, slots=True)
class FrameValues:
    """What guards are evaluated on: the values of one frame at its first instruction."""

    locals: dict[str, Any]
    globals: dict[str, Any]
    builtins: dict[str, Any]
    closure: tuple[CellType, ...] | None = None
    freevars: tuple[str, ...] = ()


def check_local_name(name: str) -> None:
    """Raises Unsupported when `name` cannot be a parameter of a check_fn (`.0`, keywords, reserved `___` names)."""
    usable = (
        name.isidentifier()
        and not keyword.iskeyword(name)
        and name != "__debug__"
        and not name.startswith("___")
        and unicodedata.normalize("NFKC", name) == name
    )
    if not usable:
        raise exc.Unsupported(
            f"the argument {name!r} cannot be guarded: its name is no ordinary Python name (names that start with "
            "'___' are reserved for guards); rename it"
        )


@dataclass(frozen=True, slots=True)
class Source:
    """Base of all sources. Equal sources read the same place of the same frame."""

    def name(self) -> str:
        """The guard text that evaluates to the value."""
        raise NotImplementedError

    def expr(self, code: CodeType | None = None) -> Any:
        """The `pycode.expr` value that reloads the value in output code of `code`."""
        raise NotImplementedError

    def read(self, frame: FrameValues) -> Any:
        """The value now. Raises LookupError, AttributeError, TypeError or ValueError (empty cell) when it is gone."""
        raise NotImplementedError

    def guard_source(self) -> GuardSource:
        raise NotImplementedError

    def describe(self) -> str:
        """The place in the user's words, for messages: `argument n`, `global flag`, `self.scale`..."""
        raise NotImplementedError

    def parent(self) -> Source | None:
        """The source that this one is read from; None for a root."""
        return None

    def plain_base(self) -> Source | None:
        """The base on which `name` takes a plain `.x` or `[k]` step, so that its exact type must be guarded before."""
        return None

    def depth(self) -> int:
        """Number of steps from the root; 0 for a root."""
        parent = self.parent()
        return 0 if parent is None else parent.depth() + 1

    def prefixes(self) -> list[Source]:
        """The proper prefixes of the path, root first."""
        out: list[Source] = []
        step = self.parent()
        while step is not None:
            out.append(step)
            step = step.parent()
        return out[::-1]


def _expr() -> Any:
    from minidynamo.pycode import expr

    return expr


# ---------------------------------------------------------------------------------------------------- roots


@dataclass(frozen=True, slots=True)
class LocalSource(Source):
    """An argument of the frame."""

    local: str

    def name(self) -> str:
        check_local_name(self.local)
        return self.local

    def expr(self, code: CodeType | None = None) -> Any:
        e = _expr()
        in_cell = code is not None and self.local in code.co_cellvars
        return e.Deref(self.local) if in_cell else e.Local(self.local)

    def read(self, frame: FrameValues) -> Any:
        return frame.locals[self.local]

    def guard_source(self) -> GuardSource:
        return GuardSource.LOCAL

    def describe(self) -> str:
        return f"argument {self.local}"


@dataclass(frozen=True, slots=True)
class GlobalSource(Source):
    """A name in the frame's globals (not one that falls through to the builtins)."""

    global_name: str

    def name(self) -> str:
        return f"___globals[{self.global_name!r}]"

    def expr(self, code: CodeType | None = None) -> Any:
        return _expr().Global(self.global_name)

    def read(self, frame: FrameValues) -> Any:
        return frame.globals[self.global_name]

    def guard_source(self) -> GuardSource:
        return GuardSource.GLOBAL

    def describe(self) -> str:
        return f"global {self.global_name}"


@dataclass(frozen=True, slots=True)
class GlobalsSource(Source):
    """The frame's globals dictionary itself; the path of GLOBAL_ABSENT."""

    def name(self) -> str:
        return "___globals"

    def expr(self, code: CodeType | None = None) -> Any:
        e = _expr()
        return e.Call(e.Const(globals), ())

    def read(self, frame: FrameValues) -> Any:
        return frame.globals

    def guard_source(self) -> GuardSource:
        return GuardSource.GLOBAL

    def describe(self) -> str:
        return "globals of the function"


@dataclass(frozen=True, slots=True)
class BuiltinSource(Source):
    """A name that is absent in the frame's globals and found in its builtins; goes with a GLOBAL_ABSENT guard."""

    builtin_name: str

    def name(self) -> str:
        return f"___builtins[{self.builtin_name!r}]"

    def expr(self, code: CodeType | None = None) -> Any:
        return _expr().Global(self.builtin_name)

    def read(self, frame: FrameValues) -> Any:
        return frame.builtins[self.builtin_name]

    def guard_source(self) -> GuardSource:
        return GuardSource.GLOBAL

    def describe(self) -> str:
        return f"builtin {self.builtin_name}"


@dataclass(frozen=True, slots=True)
class ClosureSource(Source):
    """A free variable of the frame. `index` is its position in co_freevars; the name is for people only."""

    var: str = field(compare=False)
    index: int

    @classmethod
    def of(cls, code: CodeType, var: str) -> ClosureSource:
        return cls(var, code.co_freevars.index(var))

    def name(self) -> str:
        return f"___closure[{self.index}].cell_contents"

    def expr(self, code: CodeType | None = None) -> Any:
        return _expr().Deref(code.co_freevars[self.index] if code is not None else self.var)

    def read(self, frame: FrameValues) -> Any:
        if frame.closure is None:
            raise LookupError(f"the frame has no closure for {self.var!r}")
        return frame.closure[self.index].cell_contents

    def guard_source(self) -> GuardSource:
        return GuardSource.LOCAL

    def describe(self) -> str:
        return f"closure variable {self.var or self.index}"


@dataclass(frozen=True, slots=True)
class ConstantSource(Source):
    """A value known while tracing: its text is its literal. It needs no guard."""

    value: Any

    def name(self) -> str:
        return literal(self.value)

    def expr(self, code: CodeType | None = None) -> Any:
        return _expr().Const(self.value)

    def read(self, frame: FrameValues) -> Any:
        return self.value

    def guard_source(self) -> GuardSource:
        return GuardSource.CONSTANT

    def describe(self) -> str:
        return f"constant {literal(self.value)}"


@dataclass(frozen=True, slots=True)
class StateSource(Source):
    """The process- and thread-wide state of torch (grad mode, default dtype, ...); the path of GLOBAL_STATE."""

    def name(self) -> str:
        return "___global_state()"

    def expr(self, code: CodeType | None = None) -> Any:
        raise exc.InternalError("torch's global state is guarded only, output code never loads it")

    def read(self, frame: FrameValues) -> Any:
        return None

    def guard_source(self) -> GuardSource:
        return GuardSource.STATE

    def describe(self) -> str:
        return "torch's global state"


# --------------------------------------------------------------------------------------------------- steps


@dataclass(frozen=True, slots=True)
class ChainedSource(Source):
    """One step from a base."""

    base: Source

    def parent(self) -> Source | None:
        return self.base

    def guard_source(self) -> GuardSource:
        return self.base.guard_source()


# Attributes that the type of their owner keeps itself; their plain spelling is readable and runs C code only.
PLAIN_MEMBERS = frozenset({"__dict__", "__globals__", "__func__", "__self__", "_parameters", "_buffers", "_modules"})


@dataclass(frozen=True, slots=True)
class AttrSource(ChainedSource):
    """An attribute, read statically: `___attr(x, 'k')`, or `x.k` for the structural ones in PLAIN_MEMBERS."""

    member: str

    def name(self) -> str:
        if self.member in PLAIN_MEMBERS:
            return f"{self.base.name()}.{self.member}"
        return f"___attr({self.base.name()}, {self.member!r})"

    def expr(self, code: CodeType | None = None) -> Any:
        e = _expr()
        if self.member == "cell_contents" and isinstance(self.base, LocalSource):
            return e.Deref(self.base.local)  # a resume function's cell parameter is one of its cells
        return e.Attr(self.base.expr(code), self.member)

    def read(self, frame: FrameValues) -> Any:
        return static_access.static_attr(self.base.read(frame), self.member)

    def plain_base(self) -> Source | None:
        return self.base if self.member in PLAIN_MEMBERS else None

    def describe(self) -> str:
        return f"{_owner(self.base)}.{self.member}"


@dataclass(frozen=True, slots=True)
class ItemSource(ChainedSource):
    """`x[key]` on a builtin container whose `__getitem__` is C code (see `item_source`). `key` is a literal or a Ref."""

    key: Any

    def name(self) -> str:
        return f"{self.base.name()}[{literal(self.key)}]"

    def expr(self, code: CodeType | None = None) -> Any:
        return _expr().Item(self.base.expr(code), _key_expr(self.key))

    def read(self, frame: FrameValues) -> Any:
        return self.base.read(frame)[_key(self.key)]

    def plain_base(self) -> Source | None:
        return self.base

    def describe(self) -> str:
        return f"{_owner(self.base)}[{literal(self.key)}]"


@dataclass(frozen=True, slots=True)
class DictItemSource(ChainedSource):
    """An item of a dict subclass, overrides and `__missing__` bypassed: `___dict_item(d, key)`."""

    key: Any

    def name(self) -> str:
        return f"___dict_item({self.base.name()}, {literal(self.key)})"

    def expr(self, code: CodeType | None = None) -> Any:
        e = _expr()
        return e.Call(e.Const(dict.__getitem__), (self.base.expr(code), _key_expr(self.key)))

    def read(self, frame: FrameValues) -> Any:
        return static_access.dict_item(self.base.read(frame), _key(self.key))

    def describe(self) -> str:
        return f"{_owner(self.base)}[{literal(self.key)}]"


@dataclass(frozen=True, slots=True)
class DictKeySource(ChainedSource):
    """The key at one position of a dict's iteration order."""

    index: int

    def name(self) -> str:
        return f"___dict_key({self.base.name()}, {self.index})"

    def expr(self, code: CodeType | None = None) -> Any:
        e = _expr()
        keys = e.Call(e.Const(list), (self.base.expr(code),))
        return e.Item(keys, e.Const(self.index))

    def read(self, frame: FrameValues) -> Any:
        return static_access.dict_key(self.base.read(frame), self.index)

    def describe(self) -> str:
        return f"key {self.index} of {_owner(self.base)}"


@dataclass(frozen=True, slots=True)
class TypeSource(ChainedSource):
    """The exact type of a value."""

    def name(self) -> str:
        return f"___type({self.base.name()})"

    def expr(self, code: CodeType | None = None) -> Any:
        e = _expr()
        return e.Call(e.Const(type), (self.base.expr(code),))

    def read(self, frame: FrameValues) -> Any:
        return type(self.base.read(frame))

    def describe(self) -> str:
        return f"type of {_owner(self.base)}"


@dataclass(frozen=True, slots=True)
class WeakRefSource(ChainedSource):
    """The object that a `weakref.ref` points to."""

    def name(self) -> str:
        return f"___weakref_target({self.base.name()})"

    def expr(self, code: CodeType | None = None) -> Any:
        return _expr().Call(self.base.expr(code), ())

    def read(self, frame: FrameValues) -> Any:
        return self.base.read(frame)()

    def plain_base(self) -> Source | None:
        return self.base

    def describe(self) -> str:
        return f"target of {_owner(self.base)}"


@dataclass(frozen=True, slots=True)
class FunctionPartSource(ChainedSource):
    """Base of the parts of a Python function. The plain step is safe once the base is known to be a function."""

    def plain_base(self) -> Source | None:
        return self.base


@dataclass(frozen=True, slots=True)
class CodeSource(FunctionPartSource):
    """A function's `__code__`."""

    def name(self) -> str:
        return f"{self.base.name()}.__code__"

    def expr(self, code: CodeType | None = None) -> Any:
        return _expr().Attr(self.base.expr(code), "__code__")

    def read(self, frame: FrameValues) -> Any:
        return self.base.read(frame).__code__

    def describe(self) -> str:
        return f"code of {_owner(self.base)}"


@dataclass(frozen=True, slots=True)
class DefaultSource(FunctionPartSource):
    """One positional default of a function: `f.__defaults__[index]`."""

    index: int

    def name(self) -> str:
        return f"{self.base.name()}.__defaults__[{self.index}]"

    def expr(self, code: CodeType | None = None) -> Any:
        e = _expr()
        return e.Item(e.Attr(self.base.expr(code), "__defaults__"), e.Const(self.index))

    def read(self, frame: FrameValues) -> Any:
        return self.base.read(frame).__defaults__[self.index]

    def describe(self) -> str:
        return f"default {self.index} of {_owner(self.base)}"


@dataclass(frozen=True, slots=True)
class KwDefaultSource(FunctionPartSource):
    """One keyword-only default of a function: `f.__kwdefaults__['k']`."""

    parameter: str

    def name(self) -> str:
        return f"{self.base.name()}.__kwdefaults__[{self.parameter!r}]"

    def expr(self, code: CodeType | None = None) -> Any:
        e = _expr()
        return e.Item(e.Attr(self.base.expr(code), "__kwdefaults__"), e.Const(self.parameter))

    def read(self, frame: FrameValues) -> Any:
        return self.base.read(frame).__kwdefaults__[self.parameter]

    def describe(self) -> str:
        return f"default {self.parameter} of {_owner(self.base)}"


@dataclass(frozen=True, slots=True)
class CellSource(FunctionPartSource):
    """The contents of one closure cell of a function: `f.__closure__[index].cell_contents`."""

    index: int

    def name(self) -> str:
        return f"{self.base.name()}.__closure__[{self.index}].cell_contents"

    def expr(self, code: CodeType | None = None) -> Any:
        e = _expr()
        cell = e.Item(e.Attr(self.base.expr(code), "__closure__"), e.Const(self.index))
        return e.Attr(cell, "cell_contents")

    def read(self, frame: FrameValues) -> Any:
        return self.base.read(frame).__closure__[self.index].cell_contents

    def describe(self) -> str:
        return f"closure variable {self.index} of {_owner(self.base)}"


# ------------------------------------------------------------------------------------------------- helpers


_CONTAINERS = (list, tuple, dict, str, bytes, bytearray, range)
_C_METHODS = (types.WrapperDescriptorType, types.MethodDescriptorType)


def has_plain_items(cls: type) -> bool:
    """Whether `x[k]` on an exact `cls` runs C code only and has no effect: no override, no `__missing__`."""
    return (
        any(static_access.is_subtype(cls, container) for container in _CONTAINERS)
        and type(static_access.type_lookup(cls, "__getitem__")) in _C_METHODS
        and static_access.type_lookup(cls, "__missing__") is None
    )


def item_source(base: Source, key: object, container: object) -> ItemSource | DictItemSource:
    """The source of `container[key]`; `key` is a literal or a Ref. Raises Unsupported for no builtin container."""
    cls = type(container)
    if has_plain_items(cls):
        return ItemSource(base, key)
    if static_access.is_subtype(cls, dict):
        return DictItemSource(base, key)
    raise exc.Unsupported(f"items of {cls.__name__} are read by its own __getitem__, which a guard cannot run")


def _owner(source: Source) -> str:
    """`describe` without the scope word, where a dotted name follows."""
    text = source.describe()
    return text.partition(" ")[2] if isinstance(source, (LocalSource, GlobalSource)) else text


def _key(key: object) -> Any:
    return key.resolve() if isinstance(key, Ref) else key


def _key_expr(key: object) -> Any:
    return _expr().Const(_key(key))
