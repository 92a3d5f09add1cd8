"""Where a translator finds global names: the frame's own globals, or those of an inlined function."""

from __future__ import annotations

from typing import Any

from ..exc import InternalError
from ..guards.builder import GuardBuilder
from ..guards.guard import make_guard
from ..reasons import OPERATOR_FAILS
from ..sources import BuiltinSource, GlobalSource, GlobalsSource, ItemSource, Source
from ..variables.base import VariableTracker
from ..variables.constant import ConstantVariable
from ..variables.opaque import OpaqueVariable
from ..variables.polyfills import known

DELETED = OpaqueVariable(None, GlobalsSource())  # what stands for a global that the trace has deleted


class Scope:
    """The globals of the root frame."""

    def __init__(self, names: dict[str, Any], builtins: dict[str, Any]) -> None:
        self.names = names
        self.builtins = builtins
        self.sources: dict[str, Source] = {}  # of the names that were read

    def load(self, tx: Any, name: str) -> VariableTracker:
        """CPython: LOAD_GLOBAL. A builtin is used only while no global of its name exists: that is guarded."""
        tx.trace.use_globals(tx, self.names, stores=False)
        if tx.trace.globals_written:
            written: VariableTracker | None = tx.written_global(self.names, name)
            if written is DELETED:
                tx.unsupported(OPERATOR_FAILS, name=f"name {name!r}, which was deleted", error="NameError")
            if written is not None:
                return written
        if name in self.names:
            source = self.sources.get(name)
            if source is None:
                source = self.sources[name] = self.source(name)
            return tx.lazily(self.names[name], source)
        if name not in self.builtins:
            tx.unsupported(OPERATOR_FAILS, name=f"name {name!r}", error="NameError")
        self.guard_absent(tx, name)
        return tx.lazily(self.builtins[name], BuiltinSource(name))

    def store(self, tx: Any, name: str, value: VariableTracker) -> None:
        """CPython: STORE_GLOBAL; later reads of the trace see it."""
        tx.trace.use_globals(tx, self.names, stores=True)
        self.replay(tx, name, value)
        tx.trace.globals_written[id(self.names), name] = value

    def delete(self, tx: Any, name: str) -> None:
        """CPython: DELETE_GLOBAL. A name that is not there breaks: plain Python raises the NameError."""
        tx.trace.use_globals(tx, self.names, stores=True)
        written = tx.written_global(self.names, name)
        if written is DELETED or written is None and name not in self.names:
            tx.unsupported(OPERATOR_FAILS, name=f"del of global {name!r}", error="NameError")
        if written is None:
            tx.install(make_guard(self.whole_source(), GuardBuilder.DICT_CONTAINS, name))
        self.replay_delete(tx, name)
        tx.trace.globals_written[id(self.names), name] = DELETED

    def whole_source(self) -> Source:
        return GlobalsSource()

    def replay_delete(self, tx: Any, name: str) -> None:
        tx.effect("DELETE_GLOBAL", name)

    def replay(self, tx: Any, name: str, value: VariableTracker) -> None:
        tx.effect("STORE_GLOBAL", name, value)

    def source(self, name: str) -> Source:
        return GlobalSource(name)

    def guard_absent(self, tx: Any, name: str) -> None:
        tx.install(make_guard(BuiltinSource(name), GuardBuilder.GLOBAL_ABSENT))


class FunctionScope(Scope):
    """The globals of an inlined function whose module is not the root frame's. Its builtins are those of the process; a
    function with builtins of its own is not inlined."""

    def __init__(self, whole: Source, names: dict[str, Any], builtins: dict[str, Any]) -> None:
        super().__init__(names, builtins)
        self.whole = whole

    def whole_source(self) -> Source:
        return self.whole

    def replay_delete(self, tx: Any, name: str) -> None:
        tx.effect("DELETE_SUBSCR", None, OpaqueVariable(self.names, self.whole), ConstantVariable(name))

    def replay(self, tx: Any, name: str, value: VariableTracker) -> None:
        tx.effect("STORE_SUBSCR", None, value, OpaqueVariable(self.names, self.whole), ConstantVariable(name))

    def source(self, name: str) -> Source:
        return ItemSource(self.whole, name)

    def guard_absent(self, tx: Any, name: str) -> None:
        tx.install(make_guard(self.whole, GuardBuilder.DICT_CONTAINS, name))


class PolyfillScope(Scope):
    """The globals of a polyfill: nobody changes them, so nothing is guarded."""

    def load(self, tx: Any, name: str) -> VariableTracker:
        return known(self.names[name] if name in self.names else self.builtins[name])

    def store(self, tx: Any, name: str, value: VariableTracker) -> None:
        raise InternalError(f"a polyfill writes the global {name}")

    def delete(self, tx: Any, name: str) -> None:
        raise InternalError(f"a polyfill deletes the global {name}")
