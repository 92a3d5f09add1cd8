"""What is measured. A workload is a function that builds a `Case`; `@workload(suite)` puts it into the table.

@workload("micro")
def one_op() -> Case:
    return Case(lambda x: x + 1, (torch.ones(4),))
"""

from __future__ import annotations

import importlib
import importlib.util
import itertools
import pkgutil
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

SUITES = ("micro", "models", "python", "train", "scaling", "device")


@dataclass(frozen=True, slots=True)
class Case:
    """One thing to call.

    fn: a function or an nn.Module; args, kwargs: what it is called with
    backend: what compiles its graphs
    step: for training, `step(fn) -> callable()` makes one step out of the (compiled) fn; it is what is timed
    peer: False when torch.compile is not to be measured on it
    peer_options: what torch.compile is given besides the backend
    peer_around: a context for torch.compile's compilations
    accuracy: False when there is no fp64 run of it to compare with
    calls: how many calls of fn one step makes
    again: arguments of the k-th call (k = 0, 1, ...), each of which needs a compilation of its own
    size: in the scaling suite, what the cost is fitted against
    """

    fn: Any
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)
    backend: Any = "eager"
    step: Callable[[Any], Callable[[], Any]] | None = None
    peer: bool = True
    peer_options: dict[str, Any] = field(default_factory=dict)
    peer_around: Callable[[], AbstractContextManager[Any]] = nullcontext
    accuracy: bool = True
    calls: int = 1
    again: Callable[[int], tuple[Any, ...]] | None = None
    size: int | None = None

    def caller(self, fn: Any) -> Callable[[], Any]:
        """One call (or one training step) with `fn` in the place of the case's own function."""
        if self.step is not None:
            return self.step(fn)
        args, kwargs = self.args, self.kwargs
        if not kwargs:
            return lambda: fn(*args)
        return lambda: fn(*args, **kwargs)


@dataclass(frozen=True, slots=True)
class Workload:
    """A row of the table. `quick`: part of a quick run. `needs`: a package that must be there, or None."""

    name: str
    suite: str
    build: Callable[[], Case]
    quick: bool
    needs: str | None
    cold: bool
    family: str
    measures: tuple[str, ...] = ()

    def missing(self) -> str | None:
        """Why it cannot run here, or None."""
        if self.needs is not None and importlib.util.find_spec(self.needs) is None:
            return f"the package {self.needs} is not installed"
        return None

    def case(self) -> Case:
        """The case, built with the same random numbers each time."""
        import torch

        torch.manual_seed(0)
        return self.build()

    def fresh(self) -> Case:
        """The case built by a new execution of the suite's source: none of its code objects has been seen before."""
        module = sys.modules[self.build.__module__]
        again = ModuleType(f"{module.__name__}_{next(_copies)}")
        again.__file__ = module.__file__
        sys.modules[again.__name__] = again
        table = dict(TABLE)
        try:
            assert module.__file__ is not None
            source = Path(module.__file__).read_text()
            exec(compile(source, module.__file__, "exec"), again.__dict__)
            return TABLE[self.name].case()
        finally:
            TABLE.clear()
            TABLE.update(table)
            del sys.modules[again.__name__]


TABLE: dict[str, Workload] = {}
_copies = itertools.count()


def add(
    suite: str,
    name: str,
    build: Callable[[], Case],
    *,
    quick: bool = True,
    needs: str | None = None,
    cold: bool = True,
    family: str = "",
    measures: tuple[str, ...] = (),
) -> None:
    """One row. cold: compile time and counts are taken too; family: scaling workloads of one family make one curve;
    measures: the names of the only ones that are taken (`measures.MEASURES`), if not all."""
    if suite not in SUITES:
        raise ValueError(f"workload {name!r}: no suite {suite!r}; suites are {', '.join(SUITES)}")
    TABLE[name] = Workload(name, suite, build, quick, needs, cold, family, measures)


def workload(suite: str, name: str | None = None, **options: Any) -> Callable[[Any], Any]:
    """Decorator form of `add`; the function's name, with spaces for underscores, names the row."""

    def register(build: Callable[[], Case]) -> Callable[[], Case]:
        add(suite, name or build.__name__.replace("_", " "), build, **options)
        return build

    return register


def load() -> None:
    """Imports every file of `suites/`, which fills the table."""
    from . import suites

    for found in pkgutil.iter_modules(suites.__path__):
        importlib.import_module(f"{suites.__name__}.{found.name}")


def select(suites: list[str], only: str | None = None, quick: bool = False) -> list[Workload]:
    """The rows to run, in the order of the table."""
    return [
        row
        for row in TABLE.values()
        if row.suite in suites and (row.quick or not quick) and (only is None or only in row.name)
    ]
