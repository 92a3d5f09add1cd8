"""Trace: what all translators of one attempt share. One per attempt; a restart makes a new one."""

from __future__ import annotations

import types
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, NoReturn

import torch

from .. import config
from ..graph.meta_value import TensorMeta
from ..graph.output_graph import OutputGraph
from ..graph.state_keys import DEFAULT_DEVICE, Key
from ..graph.symbolic import SymbolicMeta
from ..graph.wrappers import WrapperMeta
from ..guards.builder import GuardBuilder
from ..guards.guard import Guard, make_guard
from ..guards.lower import loadable
from ..pycode.lift import CodeIR
from ..reasons import SKIP_STEPS, STORE, why
from ..sources import FrameValues, GlobalsSource, LocalSource, Source, StateSource
from ..static_access import instance_dict
from ..variables import wrapper_for
from ..variables.base import VariableTracker
from ..variables.contexts import ContextVariable
from ..variables.generators import GeneratorVariable
from ..variables.keys import Identity
from ..variables.lazy import LazyVariable
from ..variables.module_objects import TABLES
from ..variables.opaque import wrap_opaque
from ..variables.registry import Wrapper
from ..variables.tensor import TensorVariable
from ..variables.user_objects import UserObjectVariable
from .capture import Effect
from .cells import OutsideCell
from .known_calls import KnownCalls
from .plan import Plan, SkipFrame
from .scope import Scope

# How a translator executes a call in its own trace: (translator, function, args, kwargs) -> result.
Inline = Callable[[Any, Any, list[VariableTracker], dict[str, VariableTracker]], VariableTracker]


class Trace:
    """Graph, guards and wrapped values of one attempt at one frame."""

    def __init__(
        self,
        frame: FrameValues,
        code: types.CodeType,
        ir: CodeIR,
        plan: Plan,
        inline: Inline,
        for_compiler: bool,
    ) -> None:
        self.frame = frame
        self.code = code
        self.ir = ir
        self.plan = plan
        self.inline = inline
        self.for_compiler = for_compiler  # else the graph is run as it is
        self.graph = OutputGraph(code.co_name, for_compiler)
        self.guards: dict[Guard, None] = {}
        self.guards_state = False  # torch's state is among what they guard
        self.has_accelerator = torch.accelerator.current_accelerator() is not None
        self.opened: list[ContextVariable] = []  # managers that are entered, in this order
        self.states: dict[Key, Any] = {}  # parts of torch's state that the program changed -> what they were
        # the grad mode when all blocks around the last operator have been left
        self.mode_outside = torch.is_grad_enabled()
        # whether operators ask `__torch_function__` of their arguments' classes, at this point of the trace
        self.torch_function: bool = torch._C._is_torch_function_enabled()
        self.steps = 0
        self.root_index = 0  # the root frame's current instruction
        self.first_covered: int | None = (
            None  # where the root frame was at the first operator in a try or with block
        )
        self.step_limit: int = config.max_trace_steps
        self.sets_device: int | None = None  # where the root frame changed the current device, to stay so
        self.mutated: dict[Source, None] = {}
        self.lazy: list[LazyVariable] = []
        self.effects: list[Effect] = []
        self.cyclic: list[Any] = []
        self.changed: dict[int, VariableTracker] = {}
        self.generators: list[GeneratorVariable] = []
        self.classes: set[type] = set()
        self.class_sources: dict[type, Source] = {}  # one way to each class of a module
        self.wrapper_classes: dict[type, Source] = {}  # of tensor wrappers: their code is guarded
        self.class_names: set[tuple[type, str]] = (
            set()
        )  # (class of a module, name): what it has there is guarded
        self.plain_calls: set[type] = set()  # classes of modules that are called as nn.Module does it
        self.global_hooks: list[
            Any
        ] = []  # the dictionaries of hooks for all modules, once they were looked at
        self.lacking: list[Any] = []  # modules, each with the names that its own dictionary lacks
        self.untouched: list[Source] = []  # empty OrderedDicts that have no tracker
        self.outside_cells: list[OutsideCell] = []
        self.namespaces: dict[int, Source] = {
            id(frame.globals): GlobalsSource()
        }  # dictionaries that are the globals of a traced function, by id
        self.globals_written: dict[tuple[int, str], VariableTracker] = {}
        self.comparable = True  # plain Python on the same values gives the same result
        self.probing = 0  # how many questions are open whether an attribute is there
        self.identities: dict[int, tuple[VariableTracker, Identity]] = {}
        self.by_source: dict[Source, VariableTracker] = {}
        self.wrappers: dict[type, Wrapper] = {}  # by the exact type of a value
        self.known_calls = KnownCalls()
        self.scope = Scope(frame.globals, frame.builtins)
        self.scopes: dict[int, Scope] = {}  # of the other modules, by the id of their dictionaries
        self._by_object: dict[int, VariableTracker] = {}
        self._owners: dict[int, UserObjectVariable] = {}  # by the id of their `__dict__`

    def install(self, guard: Guard) -> None:
        self.guards[guard] = None

    def call_state(self, tx: Any, fn: Callable[..., Any], args: tuple[Any, ...], *keys: Key) -> Any:
        """The program changes torch's state: now, and in the graph. `keys` are what `fn` changes."""
        self.guard_global_state()
        for key in keys:
            self.states.setdefault(key, key.get())
        result = fn(*args)
        self.graph.add_op(fn, args, {}, tx.position())
        return result

    def final_states(self) -> tuple[tuple[Key, Any], ...]:
        """What was changed, with what it is now."""
        return tuple((key, key.get()) for key in self.states)

    def devices_left(self) -> list[tuple[str, int]]:
        """Types whose current device is another one at the end, with the index from before."""
        devices = [(key, before) for key, before in self.states.items() if key.name == "current device"]
        return [(key.device or "", before) for key, before in devices if key.get() != before]

    def restore_states(self) -> None:
        """Put back what was before the trace."""
        for manager in reversed(self.opened):
            manager.release()
        for key, value in reversed(self.states.items()):
            key.put(value)

    def knows(self, source: Source) -> bool:
        """Whether the value of `source` has a tracker."""
        return source in self.by_source

    def tracker_of(self, value: Any) -> VariableTracker | None:
        """The tracker of an object from outside, if the trace looked at it."""
        return self._by_object.get(id(value))

    def step(self) -> None:
        """Count one instruction. Raises SkipFrame past `config.max_trace_steps`."""
        self.steps += 1
        if self.steps > self.step_limit:
            self.too_long()

    def too_long(self) -> NoReturn:
        raise SkipFrame(why(SKIP_STEPS, limit=self.step_limit))

    def holds(self, cyclic: Any) -> None:
        """`cyclic` may lead back to itself, and so keep the user's values alive: `release` empties it."""
        self.cyclic.append(cyclic)

    def release(self) -> None:
        """Break the reference cycles among trackers. Nothing can be rebuilt afterwards."""
        self.identities.clear()
        self.known_calls.close()
        for cyclic in (*self.cyclic, *self.changed.values(), *self.outside_cells):
            cyclic.forget()

    def always(self) -> bool:
        """Whether every trace of this code would go the same way: nothing was looked at."""
        return not self.guards

    def guard_global_state(self) -> None:
        """Metadata depends on grad mode, default dtype and the like: every capture with a tensor operation carries it."""
        if self.guards_state:
            return
        self.guards_state = True
        self.install(make_guard(StateSource(), GuardBuilder.GLOBAL_STATE))
        if self.states.get(DEFAULT_DEVICE) or DEFAULT_DEVICE not in self.states and DEFAULT_DEVICE.get():
            self.install(make_guard(StateSource(), GuardBuilder.STATE_READ, "default device", ()))

    def wrap(self, tx: Any, value: Any, source: Source) -> VariableTracker:
        """The tracker of a real value. The same source gives the same tracker; two sources of one object that has
        identity give one tracker, guarded by DUPLICATE_INPUT. That two objects differ is guarded where the trace uses it."""
        known = self.by_source.get(source)
        if known is not None:
            return known
        if type(value) is dict and any(id(value) == names for names, _ in self.globals_written):
            tx.unsupported(STORE, operation="use", what="a module's globals, one of which was assigned")
        owner = self._owners.get(id(value))
        if owner is not None:  # the `__dict__` of an object that the trace knows
            tx.install(make_guard(source, GuardBuilder.DUPLICATE_INPUT, owner.dict_source()))
            self.by_source[source] = owner.as_dict()
            return owner.as_dict()
        twin = self._by_object.get(id(value))
        if twin is not None and twin.source is not None:
            tx.install(make_guard(source, GuardBuilder.DUPLICATE_INPUT, twin.source))
            made = twin
        else:
            wrapper = self.wrappers.get(type(value))
            if wrapper is None:
                wrapper = self.wrappers[type(value)] = wrapper_for(value) or wrap_opaque
            made = wrapper(tx, value, source)
            if made.mutable or made.is_proxy():
                self._by_object[id(value)] = made
            if isinstance(made, UserObjectVariable):
                self.know_dict(tx, made)
        self.by_source[source] = made
        return made

    def know_dict(self, tx: Any, made: UserObjectVariable) -> None:
        """The `__dict__` of an object is that, wherever it is met. Breaks the graph where it was met before as a dict by itself."""
        members = instance_dict(made.value)
        if members is None:
            return
        if id(members) in self._by_object:
            tx.unsupported(STORE, operation="use", what="the __dict__ of an object, known as a dict too")
        self._owners[id(members)] = made

    def guard_instance_dicts(self) -> None:
        """A dict is no `__dict__` of an object where the trace changed one of the two. (The tables of a module never are.)"""
        objects = list(self._owners.values())
        dicts = [
            t
            for t in self._by_object.values()
            if t.python_type() is dict and t.source and getattr(t.source, "member", None) not in TABLES
        ]
        written = [one for one in objects if id(one) in self.changed]
        if written and dicts:
            self.guard_apart([one.dict_source() for one in written], [d.source for d in dicts if d.source])
        changed = [d.source for d in dicts if d.source and id(d) in self.changed]
        others = [one.dict_source() for one in objects if id(one) not in self.changed]
        if changed and others:
            self.guard_apart(changed, others)

    def guard_read(self, names: tuple[str, ...]) -> tuple[Source, ...]:
        """What the program read and nobody looked at is guarded to be there. Returns what the emitted code is to read for that, since
        the guards of a frame with these arguments cannot."""
        read = dict.fromkeys(lazy.source for lazy in self.lazy if lazy.real is None)
        left = []
        is_loadable = loadable(names)
        for source in read:
            if isinstance(source, LocalSource) and source.local in names:
                continue  # an argument
            if is_loadable(source):
                self.install(make_guard(source, GuardBuilder.PRESENT))
            else:
                left.append(source)
        return tuple(left)

    def outside_cell(
        self, tx: Any, name: str, cell: types.CellType, source: Source, holder: Source | None = None
    ) -> OutsideCell:
        """The symbolic stand-in of a cell that exists. One cell has one, guarded to be one; a cell under the name of another that was
        written is guarded to be another. (Functions that share a cell have the same name for it.)"""
        for known in self.outside_cells:
            if known.cell is cell and known.source == source:
                return known
            if known.cell is cell and known.holder is not None and holder is not None:
                tx.install(make_guard(holder, GuardBuilder.DUPLICATE_INPUT, known.holder))
                return known
        made = OutsideCell(name, cell, source, holder)
        for known in self.outside_cells:
            if known.written is not None:
                made.differs(tx, known)
        self.outside_cells.append(made)
        return made

    def guard_distinct(self, left: Source, right: Source) -> None:
        """The trace took it that two sources hold different objects."""
        self.install(make_guard(left, GuardBuilder.NO_ALIAS, right))

    def guard_apart(self, own: list[Source], others: list[Source]) -> None:
        """The sources of `own` hold different objects, and none that one of `others` holds."""
        if own and len(own) + len(others) > 2:
            self.install(make_guard(own[0], GuardBuilder.DISTINCT, tuple(own), tuple(others)))
        elif own and (len(own) == 2 or others):
            self.guard_distinct(own[0], (*own, *others)[1])

    def identity_of(self, tracker: VariableTracker) -> Identity:
        """What stands for an object as a key. All objects that are keys are guarded to be different ones."""
        return self.identities.setdefault(id(tracker), (tracker, Identity()))[1]

    def guard_identities(self) -> None:
        """Objects from outside that were keys by identity are different objects."""
        alike: dict[type, list[Source]] = {}
        for tracker, _ in self.identities.values():
            if tracker.source is not None:
                alike.setdefault(tracker.python_type(), []).append(tracker.source)
        for sources in alike.values():
            self.guard_apart(sources, [])

    def use_globals(self, tx: Any, names: dict[str, Any], stores: bool) -> None:
        """A function's globals are read or written by name. Breaks the graph when the trace knows them as a dict too, and one of the
        two ways changes them."""
        known = self._by_object.get(id(names))
        if known is not None and (stores or id(known) in self.changed):
            tx.unsupported(STORE, operation="use", what="a module's globals, known as a dict too")

    def effect(self, made: Effect, changed: VariableTracker | None) -> None:
        """Remember a change of something outside, to be replayed in this order; `changed` is what changes, if it is an object."""
        self.effects.append(made)
        if changed is not None:
            self.changed[id(changed)] = changed
        if not isinstance(changed, UserObjectVariable):
            self.known_calls.close()

    def guard_changed(self) -> None:
        """Decision 6: an object that the trace changed is no other object of its type that the trace looked at, nor the globals of
        a function that it executed."""
        self.guard_instance_dicts()
        alike: dict[type, tuple[list[Source], list[Source]]] = {}
        for changed in self.changed.values():
            assert changed.source is not None
            alike.setdefault(changed.python_type(), ([], []))[0].append(changed.source)
        if OrderedDict in alike:
            alike[OrderedDict][1].extend(s for s in self.untouched if not self.knows(s))
        for other in self._by_object.values() if alike else ():
            if other.source and other.python_type() in alike and id(other) not in self.changed:
                alike[other.python_type()][1].append(other.source)
        for own, others in alike.values():
            self.guard_apart(
                list(dict.fromkeys(own)), others
            )  # each store to one module's globals is a change
        dicts = [t.source for t in self._by_object.values() if t.python_type() is dict and t.source]
        changed_dicts = {t.source for t in self.changed.values() if t.python_type() is dict and t.source}
        written = {self.namespaces[names] for names, _ in self.globals_written}
        for number, names in self.namespaces.items():
            for one in written if names not in written else ():
                self.guard_distinct(one, names)
            known = self._by_object.get(
                number
            )  # the dict itself, changed as such: names that are read then break the graph
            itself = known.source if known is not None and names not in written else None
            for one in dicts if names in written else changed_dicts:
                if one not in (names, itself):
                    self.guard_distinct(one, names)

    def guard_lacking(self) -> None:
        """What the trace did not find in the own dictionaries of modules."""
        for module in self.lacking:
            self.install(make_guard(module.source, GuardBuilder.LACKS_MEMBERS, tuple(module.lacking)))

    def guard_mutated(self) -> None:
        """Decision 6: an input that the graph changes in place is no other input. To be called when the trace has ended: inputs that
        were met after the change count too. (Inputs whose guarded metadata differ are never one object.)"""
        alike: dict[Any, tuple[list[Source], list[Source]]] = {}
        for tensor in self._by_object.values() if self.mutated else ():
            if isinstance(tensor, TensorVariable) and tensor.source is not None:
                own, others = alike.setdefault(guarded(tensor.meta), ([], []))
                (own if tensor.source in self.mutated else others).append(tensor.source)
        for own, others in alike.values():
            self.guard_apart(own, others)

    def first_line(self) -> int:
        """The user's line of the first operator, where the compiled graph is said to run."""
        for at in self.graph.lines.values():
            if at.code is self.code:
                return self.ir.line_of(at.instruction) or at.code.co_firstlineno
        return self.code.co_firstlineno

    def arguments(self) -> dict[str, VariableTracker]:
        """Lazy trackers of the frame's arguments."""
        return {name: LazyVariable(value, LocalSource(name)) for name, value in self.frame.locals.items()}


def guarded(meta: TensorMeta | SymbolicMeta | WrapperMeta) -> tuple[Any, ...]:
    """What TENSOR_MATCH guards of it."""
    if isinstance(meta, WrapperMeta):
        return meta.guarded()
    assert isinstance(meta, TensorMeta), "an input's sizes are known"
    return meta.dtype, meta.device, meta.shape, meta.stride, meta.requires_grad, meta.is_parameter
