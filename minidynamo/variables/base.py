"""VariableTracker: what a symbolic value is, and the one seam by which trackers reach upwards (`Tracing`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

from ..events import Where
from ..guards.guard import Guard
from ..pycode import expr as E
from ..reasons import OPAQUE_VALUE, STORE, USER_OBJECT_KEY, Reason
from ..sources import Source

if TYPE_CHECKING:
    from ..graph.output_graph import OutputGraph


@dataclass(frozen=True, slots=True)
class Provenance:
    """Which guards influenced a value: an O(1) shared tree, read by reports only. Soundness never depends on it."""

    own: tuple[Guard, ...] = ()
    parents: tuple[Provenance, ...] = ()

    def __iter__(self) -> Iterator[Guard]:
        seen: set[int] = set()
        found: dict[Guard, None] = {}
        stack: list[Provenance] = [self]
        while stack:
            node = stack.pop()
            if id(node) in seen:
                continue
            seen.add(id(node))
            found.update(dict.fromkeys(node.own))
            stack.extend(node.parents)
        return iter(found)


NO_GUARDS = Provenance()


class Tracing(Protocol):
    """What a tracker may ask of the translator. The only upward dependency in the project."""

    symbolic_locals: dict[str, VariableTracker]
    cells: dict[str, Any]

    @property
    def graph(self) -> OutputGraph:
        """The graph that is being made."""

    @property
    def trace(self) -> Any:
        """What all translators of this attempt share."""

    @property
    def code(self) -> Any:
        """The code object that is executed."""

    @property
    def grad_mode(self) -> bool:
        """Whether autograd records."""

    def call_state(self, fn: Any, args: tuple[Any, ...], *keys: Any) -> Any:
        """The program changes the parts `keys` of torch's state by `fn(*args)`: now, and in the graph."""

    def position(self) -> Any:
        """Where the current instruction is; cheap to keep."""

    def note_operator(self) -> None:
        """An operator was added to the graph."""

    def mutates(self, tensor: Source) -> None:
        """The graph changes an input in place."""

    def guard_global_state(self) -> None:
        """Guard grad mode, default dtype and the like."""

    def read_cell(self, cell: Any) -> VariableTracker:
        """The content of a cell of this frame."""

    def wrap(self, value: Any, source: Source) -> VariableTracker:
        """A (lazy) tracker for a real value that `source` reaches."""

    def lazily(self, value: Any, source: Source) -> VariableTracker:
        """A lazy tracker for a value whose place may be gone next time (a global, a cell, an attribute): unless guards come to
        read the place, the emitted code does."""

    def install(self, guard: Guard) -> None:
        """Add a guard to the capture's set, from which nothing is ever removed."""

    def guard_class(self, cls: type, source: Source) -> None:
        """Guard, once for each class, that its instances' attributes are read in the usual way."""

    def effect(self, opname: str, arg: Any, *operands: VariableTracker) -> None:
        """Something outside of the trace changes: the instruction is replayed, in order, after the graph has run."""

    def effect_call(self, fn: Any, *operands: VariableTracker) -> None:
        """The same for a call of the builtin `fn`."""

    def written_global(self, names: dict[str, Any], name: str) -> VariableTracker | None:
        """What the trace assigned to a global of the module with dictionary `names`."""

    def guard_distinct(self, left: Source, right: Source) -> None:
        """Guard that two sources hold different objects."""

    def call(
        self, fn: VariableTracker, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
    ) -> VariableTracker:
        """Call `fn` by the dispatch order of `rules.dispatch`."""

    def inline(
        self, fn: VariableTracker, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
    ) -> VariableTracker:
        """Execute a user function symbolically in this trace."""

    def tensor_op(
        self, target: Any, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
    ) -> VariableTracker:
        """One operator: metadata, graph node, tracker of the result. `target` is a callable or a method name."""

    def tensor_attribute(self, name: str) -> str | None:
        """What `tensor.name` is: "meta", "graph", "state", "method" or None."""

    def tensor_has(self, tensor: Any, name: str) -> bool:
        """Whether a tensor object has an attribute that its class does not have; guarded."""

    def are_different(self, left: Any, right: Any) -> bool:
        """Whether the tensors of two graph nodes are certainly two objects."""

    def torch_kind(self, fn: Any) -> Any:
        """`TorchKind` of a callable that torch provides, else None."""

    def may_inline(self, fn: Any) -> bool:
        """May the Python function `fn` be executed symbolically in this trace?"""

    def where(self) -> Where:
        """The line of the current instruction."""

    def unsupported(self, reason: Reason, **facts: Any) -> NoReturn:
        """Raise `Unsupported` for the current instruction."""

    def raises(self, name: str, cls: type[Exception], *args: VariableTracker) -> NoReturn:
        """The program's own error is `cls(*args)`: it goes to a handler in the trace, else plain Python raises it."""

    def fails(self, name: str, error: BaseException) -> NoReturn:
        """The program's own error was met: plain Python is to raise it, at this instruction."""


class Emitting(Protocol):
    """What a tracker may ask of `emit` while it writes the code that rebuilds it."""

    def value(self, tracker: VariableTracker) -> E.Expr:
        """The expression of another tracker; made once per tracker."""

    def graph_output(self, node: Any) -> E.Expr:
        """The expression of a graph node's real value."""

    def load(self, source: Source) -> E.Expr:
        """Load a value again from where it came; made once per source, before the graph runs."""

    def cell(self, cell: Any) -> E.Expr:
        """The expression of a symbolic cell's cell object; made once per cell."""

    def require_own_globals(self, scope: Any, name: str) -> None:
        """The function `name` can be rebuilt only when `scope` is the frame's own; else the frame is not compiled."""

    def remember(self, tracker: VariableTracker, value: E.Expr) -> None:
        """`tracker` is `value` from now on: its parts may refer to it."""

    def impossible(self, what: str) -> NoReturn:
        """`what` cannot be rebuilt: the frame is not compiled."""

    def temporary(self, value: E.Expr) -> E.Local:
        """Evaluate now, into a fresh local."""

    def do(self, statement: E.Stmt) -> None:
        """Run a statement now."""


class VariableTracker:
    """A symbolic value: what is known of one Python value while its frame is executed symbolically.

    `source` says where the value came from (None for a value made in the trace); `guards` is provenance. Subclasses
    implement slots, named after what they stand for in CPython's type objects; a slot that a class does not have
    breaks the graph with a reason.
    """

    __slots__ = ("source", "guards")
    mutable = False  # has identity that the program can see change: rebuilt once, into a local
    filled_later = False  # is made before its parts are, so that they may lead back to it

    def __init__(self, source: Source | None = None, guards: Provenance = NO_GUARDS) -> None:
        self.source = source
        self.guards = guards

    # --- provenance (seed: make_guards, add_guards, replace_guards, propagate) ------------------------------------
    def make_guards(self, tx: Tracing, *create_fns: Callable[..., Any]) -> None:
        """Install a guard per `GuardBuilder` method on this tracker's source and remember it as provenance."""
        if self.source is None:
            raise ValueError(f"{type(self).__name__} has no source to guard")
        made = [Guard(create_fn, self.source) for create_fn in create_fns]
        for guard in made:
            tx.install(guard)
        self.guards = Provenance(tuple(made), (self.guards,))

    def add_guards(self, *guards: Guard) -> None:
        self.guards = Provenance(guards, (self.guards,))

    def replace_guards(self, guards: Provenance) -> None:
        """Replace provenance; the capture's guard set is not touched (it never shrinks)."""
        self.guards = guards

    @staticmethod
    def propagate(*trackers: VariableTracker) -> Provenance:
        """The provenance of a value that is made from `trackers`."""
        found, several = NO_GUARDS, None
        for tracker in trackers:
            guards = tracker.guards
            if guards is NO_GUARDS or guards is found:
                continue
            if found is NO_GUARDS:
                found = guards
            elif several is None:
                several = {id(found): found, id(guards): guards}
            else:
                several[id(guards)] = guards
        return found if several is None else Provenance((), tuple(several.values()))

    # --- what is known ---------------------------------------------------------------------------------------------
    def realize(self, tx: Tracing) -> VariableTracker:
        """Look at the value behind a lazy tracker (this installs guards); others are themselves."""
        return self

    def python_type(self) -> type:
        """The exact type of the value."""
        raise NotImplementedError(type(self).__name__)

    def is_python_constant(self) -> bool:
        return False

    def as_python_constant(self) -> Any:
        raise TypeError(f"{type(self).__name__} is not a constant")

    def is_proxy(self) -> bool:
        return False

    def as_proxy(self) -> Any:
        raise TypeError(f"{type(self).__name__} is not in the graph")

    def is_output(self) -> bool:
        """Whether its real value can be had from the graph only."""
        return self.is_proxy() and self.source is None

    def is_python_proxy(self) -> bool:
        """True for a Python container whose leaves are graph values or constants."""
        return False

    def as_python_proxy(self) -> Any:
        """The value with graph nodes in place of tensors, as FX takes it. TypeError when something cannot go there."""
        if self.is_proxy():
            return self.as_proxy().node
        if self.is_python_constant():
            return self.as_python_constant()
        raise TypeError(f"a value of type {self.type_name()}")

    def as_key(self, tx: Tracing) -> Any:
        """What stands for the value as a dict key: hashes and compares as the value does, without user code."""
        if self.is_python_constant() and not self.mutable:
            return self.as_python_constant()
        tx.unsupported(USER_OBJECT_KEY, type=self.type_name())

    def known_object(self) -> tuple[Any, ...]:
        """The real object, alone in a tuple, of a value that guards tie to one object: a class, a function, an enum member."""
        return ()

    def as_meta(self) -> Any:
        """The value with TensorMeta in place of tensors, as metadata rules take it."""
        if self.is_python_constant():
            return self.as_python_constant()
        raise TypeError(f"a value of type {self.type_name()}")

    def has_stored(self, name: str) -> bool:
        """Whether the trace has stored or deleted an attribute of that name, so that reading it again gives something else."""
        return False

    def children(self) -> tuple[VariableTracker, ...]:
        """Trackers that rebuilding this one needs."""
        return ()

    def type_name(self) -> str:
        return self.python_type().__name__

    # --- what can be done with it ----------------------------------------------------------------------------------
    def _opaque(self, tx: Tracing, operation: str) -> NoReturn:
        tx.unsupported(OPAQUE_VALUE, operation=operation, type=self.type_name())

    def call_function(
        self, tx: Tracing, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
    ) -> VariableTracker:
        self._opaque(tx, "call")

    def call_method(
        self, tx: Tracing, name: str, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
    ) -> VariableTracker:
        self._opaque(tx, f"method {name}")

    def getattr(self, tx: Tracing, name: str) -> VariableTracker:
        """CPython: tp_getattro."""
        self._opaque(tx, f"attribute {name}")

    def setattr(self, tx: Tracing, name: str, value: VariableTracker) -> None:
        """CPython: tp_setattro."""
        tx.unsupported(STORE, operation=f"assignment of attribute {name}", what=f"a {self.type_name()}")

    def delattr(self, tx: Tracing, name: str) -> None:
        tx.unsupported(STORE, operation=f"deletion of attribute {name}", what=f"a {self.type_name()}")

    def slot_delitem(self, tx: Tracing, key: VariableTracker) -> None:
        self._opaque(tx, "item deletion")

    def slot_binary(
        self, tx: Tracing, symbol: str, left: VariableTracker, right: VariableTracker
    ) -> VariableTracker | None:
        """CPython: a binary number/sequence slot of this operand's type; None stands for NotImplemented."""
        self._opaque(tx, f"operator {symbol}")

    def slot_inplace(self, tx: Tracing, symbol: str, right: VariableTracker) -> VariableTracker | None:
        """CPython: an in-place slot that is not the ordinary one; None stands for NotImplemented."""
        return None

    def slot_compare(
        self, tx: Tracing, symbol: str, left: VariableTracker, right: VariableTracker
    ) -> VariableTracker | None:
        """CPython: tp_richcompare; None stands for NotImplemented."""
        self._opaque(tx, f"comparison {symbol}")

    def slot_unary(self, tx: Tracing, symbol: str) -> VariableTracker:
        self._opaque(tx, f"operator {symbol}")

    def slot_truth(self, tx: Tracing) -> bool:
        """CPython: PyObject_IsTrue, when it follows from what is known."""
        self._opaque(tx, "truth value")

    def slot_len(self, tx: Tracing) -> int:
        self._opaque(tx, "len()")

    def slot_getitem(self, tx: Tracing, key: VariableTracker) -> VariableTracker:
        self._opaque(tx, "subscript")

    def slot_setitem(self, tx: Tracing, key: VariableTracker, value: VariableTracker) -> None:
        self._opaque(tx, "item assignment")

    def slot_contains(self, tx: Tracing, item: VariableTracker) -> bool:
        self._opaque(tx, "operator in")

    def slot_iter(self, tx: Tracing) -> VariableTracker:
        self._opaque(tx, "iteration")

    def slot_next(self, tx: Tracing) -> VariableTracker | None:
        """CPython: tp_iternext; None when exhausted."""
        self._opaque(tx, "next()")

    def sequence_items(self, tx: Tracing) -> list[VariableTracker] | None:
        """Items when iterating has no effect and the number is known, else None."""
        return None

    def forget(self) -> None:
        """Drop what it holds: the trace is over. For trackers that can lead back to themselves."""

    # --- how it is rebuilt -------------------------------------------------------------------------------------------
    def reconstruct(self, emit: Emitting) -> E.Expr:
        """The expression that makes this value after the graph has run. Every tracker has one."""
        raise NotImplementedError(type(self).__name__)

    def __repr__(self) -> str:
        where = f" from {self.source.name()}" if self.source is not None else ""
        return f"<{type(self).__name__}{where}>"
