"""Numbers of a tensor's layout."""

from __future__ import annotations

from types import CodeType
from typing import Any

from minidynamo import static_access
from minidynamo.pycode import expr
from minidynamo.sources.base import ChainedSource, source


@source
class SizeSource(ChainedSource):
    """One dimension of a tensor's size."""

    dim: int

    def spell(self) -> str:
        return f"___size({self.base.name()}, {self.dim})"

    def expr_on(self, base: Any, code: CodeType | None) -> Any:
        return _tensor_call(base, "size", self.dim)

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

    def expr_on(self, base: Any, code: CodeType | None) -> Any:
        return _tensor_call(base, "stride", self.dim)

    def step(self, value: Any) -> Any:
        return static_access.tensor_stride(value, self.dim)

    def describe(self) -> str:
        return f"stride {self.dim} of {self.base.owner()}"


@source
class StorageOffsetSource(ChainedSource):
    """A tensor's offset in its storage, in elements."""

    def spell(self) -> str:
        return f"___storage_offset({self.base.name()})"

    def expr_on(self, base: Any, code: CodeType | None) -> Any:
        return _tensor_call(base, "storage_offset")

    def step(self, value: Any) -> Any:
        return static_access.tensor_storage_offset(value)

    def describe(self) -> str:
        return f"storage offset of {self.base.owner()}"


def _tensor_call(base: Any, method: str, *args: int) -> Any:
    return expr.Call(expr.Attr(base, method), tuple(map(expr.Const, args)))
