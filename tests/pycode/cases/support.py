"""Registering cases, and the classes and functions that they use.

Results are plain data (compared by `==` and by type), so are the arguments, which are copied before each call
and compared after it too.
"""

from __future__ import annotations

import sys
from collections import namedtuple
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

CASES: list[tuple[Callable[..., Any], tuple[tuple[Any, ...], ...]]] = []


def case(*inputs: tuple[Any, ...]) -> Callable[[Any], Any]:
    """Register a function with its argument tuples."""

    def register(function: Any) -> Any:
        CASES.append((function, inputs))
        return function

    return register


def made(*inputs: tuple[Any, ...]) -> Callable[[Any], Any]:
    """Register the function that the decorated one returns (a closure, a method)."""

    def register(maker: Any) -> Any:
        CASES.append((maker(), inputs))
        return maker

    return register


class Box:
    label = "box"

    def __init__(self, value: Any = 0) -> None:
        self.value = value

    def add(self, other: Any, *, scale: int = 1) -> Any:
        return self.value + other * scale

    @property
    def double(self) -> Any:
        return self.value * 2

    @classmethod
    def of(cls, value: Any) -> Box:
        return cls(value)

    @staticmethod
    def plus(a: Any, b: Any) -> Any:
        return a + b

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Box) and self.value == other.value

    def __hash__(self) -> int:
        return hash(self.value)

    def __getitem__(self, key: Any) -> Any:
        return key

    def __bool__(self) -> bool:
        return bool(self.value)


class Sub(Box):
    def add(self, other: Any, *, scale: int = 1) -> Any:
        return super().add(other, scale=scale) + 100


class Manager:
    """Notes what happens in `log`; swallows exceptions of the types given."""

    def __init__(self, log: list[Any], name: str = "m", swallow: tuple[type, ...] = ()) -> None:
        self.log, self.name, self.swallow = log, name, swallow

    def __enter__(self) -> str:
        self.log.append(f"enter {self.name}")
        return self.name

    def __exit__(self, kind: type | None, error: BaseException | None, traceback: Any) -> bool:
        self.log.append(f"exit {self.name} {kind.__name__ if kind else None}")
        return kind is not None and issubclass(kind, self.swallow)


class FussyBool:
    def __init__(self, value: bool | None) -> None:
        self.value = value

    def __bool__(self) -> bool:
        if self.value is None:
            raise ValueError("neither true nor false")
        return self.value

    def __lt__(self, other: Any) -> FussyBool:
        return self

    def __gt__(self, other: Any) -> list[int]:
        return [1] if self.value else []


Point = namedtuple("Point", "x y")


@dataclass
class Shape:
    kind: str
    size: int


def fail(error: Any) -> Any:
    raise error


def handled_name() -> str | None:
    kind = sys.exc_info()[0]
    return kind.__name__ if kind else None
