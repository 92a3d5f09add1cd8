"""Numbers of a tensor's layout."""

from __future__ import annotations

from dataclasses import dataclass
from types import CodeType
from typing import Any

from minidynamo import static_access
from minidynamo.pycode import expr
from minidynamo.sources.base import ChainedSource, FrameValues, Source


@dataclass(frozen=True, slots=True)
class SizeSource(ChainedSource):
    """One dimension of a tensor's size."""

    dim: int

    def name(self) -> str:
        return f"___size({self.base.name()}, {self.dim})"

    def expr(self, code: CodeType | None = None) -> Any:
        return _tensor_call(self.base, "size", code, self.dim)

    def read(self, frame: FrameValues) -> Any:
        return static_access.tensor_size(self.base.read(frame), self.dim)

    def describe(self) -> str:
        return f"size {self.dim} of {self.base.owner()}"


@dataclass(frozen=True, slots=True)
class StrideSource(ChainedSource):
    """One stride of a tensor, in elements."""

    dim: int

    def name(self) -> str:
        return f"___stride({self.base.name()}, {self.dim})"

    def expr(self, code: CodeType | None = None) -> Any:
        return _tensor_call(self.base, "stride", code, self.dim)

    def read(self, frame: FrameValues) -> Any:
        return static_access.tensor_stride(self.base.read(frame), self.dim)

    def describe(self) -> str:
        return f"stride {self.dim} of {self.base.owner()}"


@dataclass(frozen=True, slots=True)
class StorageOffsetSource(ChainedSource):
    """A tensor's offset in its storage, in elements."""

    def name(self) -> str:
        return f"___storage_offset({self.base.name()})"

    def expr(self, code: CodeType | None = None) -> Any:
        return _tensor_call(self.base, "storage_offset", code)

    def read(self, frame: FrameValues) -> Any:
        return static_access.tensor_storage_offset(self.base.read(frame))

    def describe(self) -> str:
        return f"storage offset of {self.base.owner()}"


def _tensor_call(base: Source, method: str, code: CodeType | None, *args: int) -> Any:
    return expr.Call(expr.Attr(base.expr(code), method), tuple(map(expr.Const, args)))
