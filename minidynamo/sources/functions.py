"""Parts of a Python function: code, defaults, cells."""

from __future__ import annotations

import types
from types import CodeType
from typing import Any

from minidynamo.pycode import expr
from minidynamo.sources.base import ChainedSource, Source, source
from minidynamo.static_access import type_name


def function(value: Any) -> types.FunctionType:
    """The value. Raises TypeError when it is no Python function."""
    if type(value) is not types.FunctionType:
        raise TypeError(f"a {type_name(type(value))} is no Python function")
    return value


@source
class FunctionPartSource(ChainedSource):
    """Base of the parts of a Python function: plain steps, safe once the base is known to be one."""

    def plain_base(self) -> Source | None:
        return self.base


@source
class CodeSource(FunctionPartSource):
    """A function's `__code__`."""

    def spell(self) -> str:
        return f"{self.base.name()}.__code__"

    def expr_on(self, base: Any, code: CodeType | None) -> Any:
        return expr.Attr(base, "__code__")

    def step(self, value: Any) -> Any:
        return function(value).__code__

    def describe(self) -> str:
        return f"code of {self.base.owner()}"


@source
class DefaultSource(FunctionPartSource):
    """One positional default of a function: `f.__defaults__[index]`."""

    index: int

    def spell(self) -> str:
        return f"{self.base.name()}.__defaults__[{self.index}]"

    def expr_on(self, base: Any, code: CodeType | None) -> Any:
        return expr.Item(expr.Attr(base, "__defaults__"), expr.Const(self.index))

    def step(self, value: Any) -> Any:
        defaults = function(value).__defaults__ or ()
        return defaults[self.index]

    def describe(self) -> str:
        return f"default {self.index} of {self.base.owner()}"


@source
class KwDefaultSource(FunctionPartSource):
    """One keyword-only default of a function: `f.__kwdefaults__['k']`."""

    parameter: str

    def spell(self) -> str:
        return f"{self.base.name()}.__kwdefaults__[{self.parameter!r}]"

    def expr_on(self, base: Any, code: CodeType | None) -> Any:
        return expr.Item(expr.Attr(base, "__kwdefaults__"), expr.Const(self.parameter))

    def step(self, value: Any) -> Any:
        defaults = function(value).__kwdefaults__ or {}
        return defaults[self.parameter]

    def describe(self) -> str:
        return f"default {self.parameter} of {self.base.owner()}"


@source
class CellSource(FunctionPartSource):
    """The contents of one closure cell of a function: `f.__closure__[index].cell_contents`."""

    index: int

    def spell(self) -> str:
        return f"{self.base.name()}.__closure__[{self.index}].cell_contents"

    def expr_on(self, base: Any, code: CodeType | None) -> Any:
        cell = expr.Item(expr.Attr(base, "__closure__"), expr.Const(self.index))
        return expr.Attr(cell, "cell_contents")

    def step(self, value: Any) -> Any:
        cells = function(value).__closure__ or ()
        return cells[self.index].cell_contents

    def describe(self) -> str:
        return f"closure variable {self.index} of {self.base.owner()}"
