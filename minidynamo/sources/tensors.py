"""Numbers of a tensor's layout."""

from __future__ import annotations

from types import CodeType
from typing import Any

from minidynamo import static_access
from minidynamo.pycode import expr
from minidynamo.sources.base import ChainedSource, Source, source


@source
class SizeSource(ChainedSource):
    """One dimension of a tensor's size."""

    dim: int

    def spell(self) -> str:
        return f"___size({self.base.name()}, {self.dim})"

    def expr(self, code: CodeType | None = None) -> Any:
        return _tensor_call(self.base, "size", code, self.dim)

    def step(self, value: Any) -> Any:
        return static_access.tensor_size(value, self.dim)

    def describe(self) -> str:
        return f"size {self.dim} of {self.base.owner()}"


@source
class StrideSource(ChainedSource):
    """One stride of a tensor, in elements."""

    dim: int

    def spell(self) -> str:
        return f"___stride({self.base.name()}, {self.dim})"

    def expr(self, code: CodeType | None = None) -> Any:
        return _tensor_call(self.base, "stride", code, self.dim)

    def step(self, value: Any) -> Any:
        return static_access.tensor_stride(value, self.dim)

    def describe(self) -> str:
        return f"stride {self.dim} of {self.base.owner()}"


@source
class StorageOffsetSource(ChainedSource):
    """A tensor's offset in its storage, in elements."""

    def spell(self) -> str:
        return f"___storage_offset({self.base.name()})"

    def expr(self, code: CodeType | None = None) -> Any:
        return _tensor_call(self.base, "storage_offset", code)

    def step(self, value: Any) -> Any:
        return static_access.tensor_storage_offset(value)

    def describe(self) -> str:
        return f"storage offset of {self.base.owner()}"


def _tensor_call(base: Source, method: str, code: CodeType | None, *args: int) -> Any:
    return expr.Call(expr.Attr(base.expr(code), method), tuple(map(expr.Const, args)))
