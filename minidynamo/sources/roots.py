"""Where paths begin: arguments, globals, builtins, closure variables, constants, torch's state."""

from __future__ import annotations

import sys
from dataclasses import field
from types import CodeType
from typing import Any

from minidynamo import exc
from minidynamo.literals import literal
from minidynamo.pycode import expr
from minidynamo.sources.base import FrameValues, GuardSource, Source, check_local_name, source


@source
class LocalSource(Source):
    """An argument of the frame."""

    local: str

    def spell(self) -> str:
        check_local_name(self.local)
        return self.local

    def expr(self, code: CodeType | None = None) -> Any:
        in_cell = code is not None and self.local in code.co_cellvars
        return expr.Deref(self.local) if in_cell else expr.Local(self.local)

    def read(self, frame: FrameValues) -> Any:
        return frame.locals[self.local]

    def guard_source(self) -> GuardSource:
        return GuardSource.LOCAL

    def describe(self) -> str:
        return f"argument {self.local}"

    def owner(self) -> str:
        return self.local


@source
class GlobalSource(Source):
    """A name in the frame's globals (not one that falls through to the builtins)."""

    global_name: str

    def spell(self) -> str:
        return f"___globals[{self.global_name!r}]"

    def expr(self, code: CodeType | None = None) -> Any:
        return expr.Global(self.global_name)

    def read(self, frame: FrameValues) -> Any:
        return frame.globals[self.global_name]

    def guard_source(self) -> GuardSource:
        return GuardSource.GLOBAL

    def describe(self) -> str:
        return f"global {self.global_name}"

    def owner(self) -> str:
        return self.global_name


@source
class GlobalsSource(Source):
    """The frame's globals dictionary itself; the path of GLOBAL_ABSENT."""

    def spell(self) -> str:
        return "___globals"

    def expr(self, code: CodeType | None = None) -> Any:
        return expr.Call(expr.Const(globals), ())

    def read(self, frame: FrameValues) -> Any:
        return frame.globals

    def guard_source(self) -> GuardSource:
        return GuardSource.GLOBAL

    def describe(self) -> str:
        return "globals of the function"


@source
class BuiltinSource(Source):
    """A name that is absent in the frame's globals and found in its builtins; goes with a GLOBAL_ABSENT
    guard.
    """

    builtin_name: str

    def spell(self) -> str:
        return f"___builtins[{self.builtin_name!r}]"

    def expr(self, code: CodeType | None = None) -> Any:
        return expr.Global(self.builtin_name)

    def read(self, frame: FrameValues) -> Any:
        return frame.builtins[self.builtin_name]

    def guard_source(self) -> GuardSource:
        return GuardSource.GLOBAL

    def describe(self) -> str:
        return f"builtin {self.builtin_name}"


@source
class ModulesSource(Source):
    """`sys.modules`, the dictionary that import statements look into."""

    def spell(self) -> str:
        return "___modules"

    def expr(self, code: CodeType | None = None) -> Any:
        return expr.Attr(expr.Const(sys), "modules")

    def read(self, frame: FrameValues) -> Any:
        return sys.modules

    def guard_source(self) -> GuardSource:
        return GuardSource.GLOBAL

    def describe(self) -> str:
        return "sys.modules"


@source
class ClosureSource(Source):
    """A free variable of the frame. `index` is its position in co_freevars; the name is for people only."""

    var: str = field(compare=False)
    index: int

    @classmethod
    def of(cls, code: CodeType, var: str) -> ClosureSource:
        return cls(var, code.co_freevars.index(var))

    def spell(self) -> str:
        return f"___closure[{self.index}].cell_contents"

    def expr(self, code: CodeType | None = None) -> Any:
        return expr.Deref(code.co_freevars[self.index] if code is not None else self.var)

    def read(self, frame: FrameValues) -> Any:
        if frame.closure is None:
            raise LookupError(f"the frame has no closure for {self.var!r}")
        return frame.closure[self.index].cell_contents

    def guard_source(self) -> GuardSource:
        return GuardSource.LOCAL

    def describe(self) -> str:
        return f"closure variable {self.var or self.index}"


@source
class ConstantSource(Source):
    """A value known while tracing: its text is its literal. It needs no guard."""

    value: Any

    def spell(self) -> str:
        return literal(self.value)

    def expr(self, code: CodeType | None = None) -> Any:
        return expr.Const(self.value)

    def read(self, frame: FrameValues) -> Any:
        return self.value

    def guard_source(self) -> GuardSource:
        return GuardSource.CONSTANT

    def describe(self) -> str:
        return f"constant {literal(self.value)}"


@source
class StateSource(Source):
    """The state of torch in this process and thread (grad mode, ...); the path of GLOBAL_STATE."""

    def spell(self) -> str:
        return "___global_state()"

    def expr(self, code: CodeType | None = None) -> Any:
        raise exc.InternalError("torch's global state is guarded only, output code never loads it")

    def read(self, frame: FrameValues) -> Any:
        return None

    def guard_source(self) -> GuardSource:
        return GuardSource.STATE

    def describe(self) -> str:
        return "torch's global state"
