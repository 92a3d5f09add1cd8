"""Where a value came from: one frozen `Source` per path.

A source says three things about its value: the guard text that reads it (`name`), the expression that reloads
it in output code (`expr`), and how to read it from a frame now (`read`). Guard text runs no user code: static
steps go through the `___` helpers, plain attribute and item steps are taken only on bases whose exact type is
guarded first (`plain_base` names that base; the guard builder adds the type guard).
"""

from __future__ import annotations

import dataclasses
import enum
import keyword
import re
import unicodedata
from dataclasses import dataclass, field
from types import CellType, CodeType
from typing import Any, TypeVar, cast, dataclass_transform

from minidynamo import exc
from minidynamo.cache import Keyed

T = TypeVar("T")


class GuardSource(enum.Enum):
    """Which scope a guarded value is in; the nn.Module ones are dropped when `guard_nn_modules` is off."""

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


# Parameters of resume functions. Every other name that begins with `___` belongs to guards.
_RESUME_PARAMETER = re.compile(r"___(stack\d+|free\d+|handled)")


def is_local_name(name: str) -> bool:
    """Whether `name` can be a parameter of a check_fn (not `.0`, keywords, the `___` names of guards)."""
    return (
        name.isidentifier()
        and not keyword.iskeyword(name)
        and name != "__debug__"
        and (not name.startswith("___") or _RESUME_PARAMETER.fullmatch(name) is not None)
        and unicodedata.normalize("NFKC", name) == name
    )


def check_local_name(name: str) -> None:
    """Raises Unsupported when `is_local_name` does not hold."""
    if not is_local_name(name):
        raise exc.Unsupported(
            f"the argument {name!r} cannot be guarded: its name is no ordinary Python name (names that "
            "start with '___' are reserved for guards); rename it"
        )


@dataclass_transform(eq_default=False, field_specifiers=(field,))
def source(cls: type[T]) -> type[T]:
    """Decorator of the classes of sources: a dataclass with slots, whose compared fields `Keyed` hashes and compares."""
    made: Any = dataclass(slots=True, eq=False)(cls)
    made._compared = tuple(f.name for f in dataclasses.fields(made) if f.compare)
    return cast("type[T]", made)


@source
class Source(Keyed):
    """Base of all sources. Equal sources read the same place of the same frame.

    A source never changes. It is hashed, compared and spelled many times in a compilation: all three are worked out once.
    """

    def __reduce__(self) -> tuple[Any, ...]:
        """Without what was worked out: a hash belongs to one process, and torch's caches on disk are keyed by pickles."""
        return type(self), tuple(getattr(self, f.name) for f in dataclasses.fields(self) if f.init)

    def name(self) -> str:
        """The guard text that evaluates to the value."""
        text: str | None = self._memo
        if text is None:
            text = self._memo = self.spell()
        return text

    def spell(self) -> str:
        """`name`, worked out."""
        raise NotImplementedError

    def expr(self, code: CodeType | None = None) -> Any:
        """The `pycode.expr` value that reloads the value in output code of `code`."""
        raise NotImplementedError

    def read(self, frame: FrameValues) -> Any:
        """The value now. Raises LookupError, AttributeError, TypeError or ValueError (empty cell) when it is
        gone.
        """
        raise NotImplementedError

    def guard_source(self) -> GuardSource:
        raise NotImplementedError

    def describe(self) -> str:
        """The place in the user's words, for messages: `argument n`, `global flag`, `self.scale`..."""
        raise NotImplementedError

    def owner(self) -> str:
        """`describe` without the scope word, for use before `.x` and `[k]`."""
        return self.describe()

    def parent(self) -> Source | None:
        """The source that this one is read from; None for a root."""
        return None

    def plain_base(self) -> Source | None:
        """The base on which `name` takes a plain `.x` or `[k]` step, so that its exact type must be guarded
        before.
        """
        return None

    def depth(self) -> int:
        """Number of steps from the root; 0 for a root."""
        return self.place()[0]

    def place(self) -> tuple[int, GuardSource]:
        """Depth and scope."""
        return 0, self.guard_source()

    def prefixes(self) -> list[Source]:
        """The proper prefixes of the path, root first."""
        out: list[Source] = []
        step = self.parent()
        while step is not None:
            out.append(step)
            step = step.parent()
        return out[::-1]


@source
class ChainedSource(Source):
    """One step from a base."""

    base: Source
    _place: tuple[int, GuardSource] | None = field(default=None, init=False, repr=False, compare=False)

    def parent(self) -> Source | None:
        return self.base

    def expr(self, code: CodeType | None = None) -> Any:
        return self.expr_on(self.base.expr(code), code)

    def expr_on(self, base: Any, code: CodeType | None) -> Any:
        """`expr`, given the expression of the base: where several steps begin at one value, that is loaded once."""
        raise NotImplementedError

    def step(self, value: Any) -> Any:
        """What the step leads to from `value`, the base's value. Raises what `read` raises."""
        raise NotImplementedError

    def read(self, frame: FrameValues) -> Any:
        return self.step(self.base.read(frame))

    def guard_source(self) -> GuardSource:
        return self.place()[1]

    def place(self) -> tuple[int, GuardSource]:
        """Depth and scope, worked out once."""
        found = self._place
        if found is None:
            depth, scope = self.base.place()
            found = self._place = (depth + 1, scope)
        return found
