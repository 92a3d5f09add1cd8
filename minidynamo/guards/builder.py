"""`GuardBuilder`: one method per guard; each reads the guarded value once and appends `GuardRow`s.

What a text needs in order to be safe is added here, whatever the tracer asked for: a type guard below every
plain attribute or item step, and the absence of a global above every builtin.
"""

from __future__ import annotations

import enum
import math
import types
import weakref
from dataclasses import dataclass, field
from typing import Any

import torch

from minidynamo import exc
from minidynamo.guards import leaves
from minidynamo.guards.guard import Guard
from minidynamo.guards.rows import KINDS, GuardRow, Sources
from minidynamo.guards.state_reads import read
from minidynamo.guards.text import relation
from minidynamo.literals import Ref, as_key, is_immutable, is_literal, is_weakrefable, literal
from minidynamo.sources import (
    AttrSource,
    BuiltinSource,
    ChainedSource,
    DictItemSource,
    FrameValues,
    FunctionPartSource,
    GlobalsSource,
    ItemSource,
    Source,
    StateSource,
    WeakRefSource,
    has_plain_items,
)
from minidynamo.static_access import (
    dict_has,
    dict_keys,
    has_static_attr,
    is_one_of,
    is_subtype,
    static_attr,
    static_len,
    type_lookup,
    type_name,
)

KEYED = (ItemSource, DictItemSource)  # steps that look a key up
READ_ERRORS = (LookupError, AttributeError, TypeError, ValueError)
_C_METHODS = (types.WrapperDescriptorType, types.MethodDescriptorType)
_SINGLETONS = (
    type(None),
    bool,
    type(Ellipsis),
    type(NotImplemented),
    torch.dtype,
    torch.layout,
    torch.memory_format,
)
_LIBRARY_HASHES = (enum.Enum.__hash__, torch.Tensor.__hash__)


@dataclass(slots=True)
class Rows:
    """What the two builders of one check_fn collect.

    rows: row -> the guard that made it first
    expected: row -> what it expects, in words that need no live object
    watched: id -> object whose death makes the entry invalid (also: immutable objects, which are kept alive)
    words: id of a watched class -> what a guard on it expects, in words
    """

    rows: dict[GuardRow, Guard] = field(default_factory=dict)
    expected: dict[GuardRow, str] = field(default_factory=dict)
    watched: dict[int, Any] = field(default_factory=dict)
    words: dict[int, str] = field(default_factory=dict)


class GuardBuilder:
    """Turns guards into rows. One instance per scope; both share `out`."""

    def __init__(self, frame: FrameValues, out: Rows) -> None:
        self.frame = frame
        self.out = out
        self._safe: set[Source] = set()
        self._types: dict[Source, type] = {}  # exact types that are guarded
        self._values: dict[Source, Any] = {}

    # ------------------------------------------------------------------------------------------- mechanics

    def get(self, source: Source, guard: Guard) -> Any:
        """The value now. Raises InternalError naming the path when it cannot be read."""
        values = self._values
        if source in values:
            return values[source]
        try:
            return self.read(source)
        except READ_ERRORS as error:
            raise self.error(
                guard, f"{source.describe()} cannot be read: {type(error).__name__}: {error}"
            ) from error

    def read(self, source: Source) -> Any:
        """`source.read`, each step taken once."""
        values = self._values
        if source in values:
            return values[source]
        if isinstance(source, ChainedSource):
            base = source.base
            value = source.step(values[base] if base in values else self.read(base))
        else:
            value = source.read(self.frame)
        values[source] = value
        return value

    def error(self, guard: Guard, why: str) -> exc.InternalError:
        place = "" if guard.user is None else f" (needed by {guard.user[0]}:{guard.user[1]})"
        return exc.InternalError(f"{guard.create_fn.__name__} on {guard.origin.describe()}{place}: {why}")

    def emit(self, guard: Guard, kind: str, path: Source, *literals: Any, expected: str) -> None:
        """Appends one row, after the rows that make its text safe."""
        if kind == "DICT_NOT_CONTAINS" and path == GlobalsSource() and type(literals[0]) is str:
            kind = "GLOBAL_ABSENT"  # one fact has one row
        row = GuardRow(kind, path, literals)
        facts = KINDS[kind]
        for source in row.paths() if facts.relates else (path,):
            if source not in self._safe:
                self._make_safe(guard, source)
        if facts.needs_type and path not in self._types:
            self._type(guard, path)
        if row not in self.out.rows:
            self.out.rows[row] = guard
            self.out.expected[row] = expected

    def watch(self, obj: object) -> int:
        """The id of `obj`, which stays meaningful because the entry dies with the object."""
        self.out.watched[id(obj)] = obj
        return id(obj)

    def _type(self, guard: Guard, path: Source) -> type:
        cls = self._types.get(path)
        if cls is None:
            cls = self._types[path] = type(self.get(path, guard))
            expected = self.out.words.get(id(cls)) or self.out.words.setdefault(
                id(cls), f"type {type_name(cls)}"
            )
            self.emit(guard, "TYPE_MATCH", path, self.watch(cls), expected=expected)
        return cls

    def _make_safe(self, guard: Guard, source: Source) -> None:
        self._safe.add(source)
        parent = source.parent()
        if parent is not None and parent not in self._safe:
            self._make_safe(guard, parent)
        if type(source) is AttrSource and source.plain_base() is None:
            return
        if isinstance(source, BuiltinSource):
            self.emit(guard, "GLOBAL_ABSENT", GlobalsSource(), source.builtin_name, expected="no such global")
        base = source.plain_base()
        if base is not None:
            why = _plain_step_runs_code(source, self._type(guard, base))
            if why is not None:
                raise self.error(guard, f"reading {source.describe()} would run user code: {why}")
        if isinstance(source, KEYED):
            self._check_key(guard, source.key)

    def _check_key(self, guard: Guard, key: object) -> None:
        """A key whose hash is Python code of the user cannot be looked up by a guard."""
        if type(key) is str:
            return
        if type(key) is tuple:
            for part in key:
                self._check_key(guard, part)
        elif type(key) is Ref:
            found = type_lookup(type(key.resolve()), "__hash__")
            if not is_one_of(type(found), _C_METHODS) and not any(found is each for each in _LIBRARY_HASHES):
                raise self.error(
                    guard, f"the key's __hash__ is Python code ({type_name(type(key.resolve()))})"
                )

    # ------------------------------------------------------------------------------------- types, identity

    def TYPE_MATCH(self, guard: Guard) -> None:
        """The exact type."""
        self._type(guard, guard.origin)

    def ID_MATCH(self, guard: Guard) -> None:
        """The same object. InternalError where nothing can tell that it died (see `can_id_match`)."""
        value = self.get(guard.origin, guard)
        if _is_singleton(value):
            self.emit(guard, "CONSTANT_MATCH", guard.origin, value, expected=literal(value))
            return
        if not can_id_match(value):
            raise self.error(
                guard, f"{type_name(type(value))} objects have no weak references; guard type and structure"
            )
        self.emit(
            guard,
            "ID_MATCH",
            guard.origin,
            self.watch(value),
            expected=f"the same {type_name(type(value))}",
        )

    def BUILTIN_MATCH(self, guard: Guard) -> None:
        """The same builtin function."""
        self.ID_MATCH(guard)

    def MODULE_MATCH(self, guard: Guard) -> None:
        """The same Python module."""
        self.TYPE_MATCH(guard)
        self.ID_MATCH(guard)

    def NN_MODULE(self, guard: Guard) -> None:
        """The same nn.Module of the same class."""
        self.TYPE_MATCH(guard)
        self.ID_MATCH(guard)

    def FUNCTION_MATCH(self, guard: Guard) -> None:
        """A Python function with the same code object; its cells and defaults are guarded where they are
        read.
        """
        fn = self.get(guard.origin, guard)
        if type(fn) is not types.FunctionType:
            raise self.error(guard, f"{type_name(type(fn))} is no Python function")
        code = fn.__code__
        where = f"code of {code.co_qualname} ({code.co_filename}:{code.co_firstlineno})"
        self.emit(guard, "FUNCTION_MATCH", guard.origin, self.watch(code), expected=where)

    def CLOSURE_MATCH(self, guard: Guard) -> None:
        """A closure is guarded by its code; every cell that is read has guards of its own."""
        self.FUNCTION_MATCH(guard)

    def WEAKREF_ALIVE(self, guard: Guard) -> None:
        """A weakref.ref whose object lives."""
        self.TYPE_MATCH(guard)
        self.emit(guard, "WEAKREF_ALIVE", guard.origin, expected="a live object")

    def DUPLICATE_INPUT(self, guard: Guard) -> None:
        """Both places hold one object. args: the other Source."""
        (other,) = guard.args
        self.emit(guard, "DUPLICATE_INPUT", guard.origin, other, expected=f"the object of {other.describe()}")

    def NO_ALIAS(self, guard: Guard) -> None:
        """The two places hold different objects. args: the other Source."""
        (other,) = guard.args
        self.emit(guard, "NO_ALIAS", guard.origin, other, expected=f"not the object of {other.describe()}")

    def DISTINCT(self, guard: Guard) -> None:
        """The places of args[0] hold different objects, and none that a place of args[1] holds; the origin is the first
        of args[0]. For many places at once: the text grows with their number, not with its square."""
        own, others = guard.args
        words = f"{len(own)} different objects" + ("" if not others else f", none of {len(others)} others")
        self.emit(guard, "DISTINCT", guard.origin, Sources(own), Sources(others), expected=words)

    # -------------------------------------------------------------------------------------------- constants

    def EQUALS_MATCH(self, guard: Guard) -> None:
        """The same constant: exact type and value, floats by their bits."""
        value = self.get(guard.origin, guard)
        path = guard.origin
        if type(value) is int or type(value) is str:
            self._type(guard, path)
            self.emit(guard, "EQUALS_MATCH", path, value, expected=literal(value))
            return
        if _is_singleton(value):
            self.emit(guard, "CONSTANT_MATCH", path, value, expected=literal(value))
            return
        if not is_literal(value) and type(value) is not tuple:
            raise self.error(guard, f"a {type_name(type(value))} object is no constant")
        constant = value if is_literal(value) else as_key(value)
        self._type(guard, path)
        plain = (
            is_one_of(type(value), (int, str, bytes))
            or type(value) is float
            and math.isfinite(value)
            and value != 0
        )
        self.emit(
            guard, "EQUALS_MATCH" if plain else "SAME_MATCH", path, constant, expected=literal(constant)
        )

    def CONSTANT_MATCH(self, guard: Guard) -> None:
        """EQUALS_MATCH for constants, identity for anything else."""
        value = self.get(guard.origin, guard)
        if is_literal(value):
            self.EQUALS_MATCH(guard)
        else:
            self.ID_MATCH(guard)

    def NAME_MATCH(self, guard: Guard) -> None:
        """The same `__name__` (of a class, function or module)."""
        name = static_attr(self.get(guard.origin, guard), "__name__")
        if type(name) is not str:
            raise self.error(guard, "its __name__ is no str")
        self.emit(guard, "NAME_MATCH", guard.origin, name, expected=f"named {name}")

    def HASATTR(self, guard: Guard) -> None:
        """Presence or absence of an attribute, as it is now, found statically. args: the name."""
        (name,) = guard.args
        present = has_static_attr(self.get(guard.origin, guard), name)
        kind = "HASATTR" if present else "NOT_HASATTR"
        self.emit(guard, kind, guard.origin, name, expected=f"{'an' if present else 'no'} attribute {name}")

    def SUBCLASS(self, guard: Guard) -> None:
        """Whether a class has another one among its bases, as it is now. args: the other class, ById."""
        base = guard.args[0].value
        cls = self.get(guard.origin, guard)
        self.watch(base)
        found = leaves.check_subclass(cls, id(base), True)
        words = f"{'a' if found else 'no'} subclass of {type_name(base)}"
        self.emit(guard, "SUBCLASS", guard.origin, id(base), found, expected=words)

    def PRESENT(self, guard: Guard) -> None:
        """There is a value, whichever."""
        self.get(guard.origin, guard)
        self.emit(guard, "PRESENT", guard.origin, expected="a value")

    def OWN_ATTRIBUTE(self, guard: Guard) -> None:
        """Presence or absence of an attribute in the instance's own dictionary, as it is now. args: the name."""
        (name,) = guard.args
        present = leaves.has_own(self.get(guard.origin, guard), name)
        kind = "OWN_ATTR" if present else "NOT_OWN_ATTR"
        words = f"{'an' if present else 'no'} attribute {name} of its own"
        self.emit(guard, kind, guard.origin, name, expected=words)

    # ------------------------------------------------------------------------------------------- containers

    def LENGTH(self, guard: Guard) -> None:
        """Number of elements of a builtin container."""
        count = static_len(self.get(guard.origin, guard))
        self.emit(guard, "LENGTH", guard.origin, count, expected=f"length {count}")

    LIST_LENGTH = TUPLE_LENGTH = DICT_LENGTH = LENGTH

    def ITERATOR_LENGTH(self, guard: Guard) -> None:
        """Elements left in a tuple, list, range or str iterator."""
        count = leaves.iterator_len(self.get(guard.origin, guard))
        if count < 0:
            raise self.error(guard, "no iterator with a known length")
        self._type(guard, guard.origin)
        self.emit(guard, "ITERATOR_LENGTH", guard.origin, count, expected=f"{count} elements left")

    TUPLE_ITERATOR_LEN = ITERATOR_LENGTH

    def DICT_CONTAINS(self, guard: Guard) -> None:
        """Presence or absence of a key, as it is now. args: the key."""
        (key,) = guard.args
        mapping = self.get(guard.origin, guard)
        present = dict_has(mapping, key)
        named = as_key(key)
        self._check_key(guard, named)
        plain = is_one_of(type(type_lookup(type(mapping), "__contains__")), _C_METHODS)
        kind = _CONTAINS[plain, present]
        self.emit(
            guard, kind, guard.origin, named, expected=f"{'key' if present else 'no key'} {literal(named)}"
        )

    def LACKS_MEMBERS(self, guard: Guard) -> None:
        """None of the names in args[0] is in the object's own dictionary: one row for all that a class gives it."""
        (names,) = guard.args
        self.emit(guard, "LACKS_MEMBERS", guard.origin, names, expected=f"no own {', '.join(names)}")

    def EMPTY_MEMBERS(self, guard: Guard) -> None:
        """Each attribute named in args[0] is an empty OrderedDict: the hooks of a module."""
        (names,) = guard.args
        self.emit(guard, "EMPTY_MEMBERS", guard.origin, names, expected=f"{', '.join(names)} empty")

    def DICT_KEYS(self, guard: Guard) -> None:
        """The keys and their order."""
        mapping = self.get(guard.origin, guard)
        if not is_subtype(type(mapping), dict):
            raise self.error(guard, f"{type_name(type(mapping))} is no dict")
        keys = tuple(map(as_key, dict_keys(mapping)))
        self._type(guard, guard.origin)
        self.emit(guard, "DICT_KEYS", guard.origin, keys, expected=f"keys {literal(keys)}")

    def SET_CONTAINS(self, guard: Guard) -> None:
        """Presence or absence of an element of a set or frozenset, as it is now. args: the element."""
        (element,) = guard.args
        present = leaves.py_leaves.set_has(self.get(guard.origin, guard), element)
        named = as_key(element)
        self._check_key(guard, named)
        kind, words = ("SET_HAS", "element") if present else ("SET_LACKS", "no element")
        self.emit(guard, kind, guard.origin, named, expected=f"{words} {literal(named)}")

    def SET_ITEMS(self, guard: Guard) -> None:
        """The elements of a set or frozenset."""
        self._elements(guard, "SET_ITEMS")

    def SET_ORDER(self, guard: Guard) -> None:
        """The elements of a set or frozenset in the order in which it iterates."""
        self._elements(guard, "SET_ORDER")

    def _elements(self, guard: Guard, kind: str) -> None:
        named = tuple(map(as_key, self.get(guard.origin, guard)))
        for element in named:
            self._check_key(guard, element)
        if kind == "SET_ITEMS":  # which order they had says nothing
            named = tuple(sorted(named, key=literal))
        self._type(guard, guard.origin)
        self.emit(guard, kind, guard.origin, named, expected=f"elements {literal(named)}")

    # ------------------------------------------------------------------------------------------------ torch

    def TENSOR_MATCH(self, guard: Guard) -> None:
        """Type, dispatch keys, dtype, device, requires_grad, sizes, strides.

        args: optionally two tuples of dimensions whose size, and whose stride, may vary.
        """
        tensor = self.get(guard.origin, guard)
        free_sizes, free_strides = guard.args or ((), ())
        try:
            type_id, keyset, dtype, device, grad, sizes, strides = leaves.tensor_spec(tensor)
        except (TypeError, ValueError) as error:
            raise self.error(guard, str(error)) from error
        self.watch(type(tensor))
        sizes = tuple(None if i in free_sizes else n for i, n in enumerate(sizes))
        strides = tuple(None if i in free_strides else n for i, n in enumerate(strides))
        spec = (type_id, keyset, dtype, device, grad, sizes, strides)
        words = f"{type_name(type(tensor))} {dtype} {leaves.sizes_text(sizes)} on {device}"
        self.emit(guard, "TENSOR_MATCH", guard.origin, *spec, expected=words)

    def DISPATCH_CODE(self, guard: Guard) -> None:
        """What the code of a tensor wrapper's class reads is what it was. args: the number of the record."""
        words = f"the code of {type_name(self.get(guard.origin, guard))}"
        self.emit(guard, "DISPATCH_CODE", guard.origin, *guard.args, expected=words)

    def SHAPE_ENV(self, guard: Guard) -> None:
        """A relation between numbers. args: a template and its sources, as for `text.relation`."""
        template, *sources = guard.args
        what = relation(template, *sources)
        words = what.template.format(*(source.describe() for source in what.sources))
        self.emit(guard, "SHAPE_ENV", what.sources[0], what, expected=words)

    def STORAGE_LAYOUT(self, guard: Guard) -> None:
        """Which of the tensors share a storage and how far apart they begin. args: the other tensors'
        sources.

        Goes with TENSOR_MATCH of each: together they determine every overlap.
        """
        tensors = Sources((guard.origin, *guard.args))
        try:
            layout = leaves.storage_layout(tuple(self.get(source, guard) for source in tensors.items))
        except (TypeError, ValueError) as error:
            raise self.error(guard, str(error)) from error
        self.emit(guard, "STORAGE_LAYOUT", guard.origin, tensors, layout, expected=f"storages {layout}")

    def STORAGE_PLACES(self, guard: Guard) -> None:
        """Where in its storage each tensor begins, how large that is, and the tensor that it is a view of. args: the other
        tensors' sources.

        For a compiler that unpacks overlapping inputs from their common base.
        """
        tensors = Sources((guard.origin, *guard.args))
        try:
            places = leaves.storage_places(tuple(self.get(source, guard) for source in tensors.items))
        except (TypeError, ValueError) as error:
            raise self.error(guard, str(error)) from error
        self.emit(guard, "STORAGE_PLACES", guard.origin, tensors, places, expected=f"places {places}")

    def GLOBAL_STATE(self, guard: Guard) -> None:
        """Grad and inference mode, default dtype, determinism, autocast, mode stacks, functorch."""
        self.emit(
            guard, "GLOBAL_STATE", StateSource(), *leaves.global_state(), expected="the recorded torch state"
        )

    def STATE_READ(self, guard: Guard) -> None:
        """An answer of STATE_READS, as it is now. args: its name, and the question's arguments."""
        name, args = guard.args
        value = read(name, args)
        words = f"{name}{''.join(f' ({each})' for each in args)} {value}"
        self.emit(guard, "STATE_READ", StateSource(), name, args, value, expected=words)

    GRAD_MODE = INFERENCE_MODE = DETERMINISTIC_ALGORITHMS = DEFAULT_DTYPE = DEFAULT_DEVICE = GLOBAL_STATE
    AUTOCAST = TORCH_FUNCTION_STATE = FUNCTORCH_STATE = GLOBAL_STATE

    def GLOBAL_ABSENT(self, guard: Guard) -> None:
        """A name that was found in the builtins is still no global. The origin is its BuiltinSource."""
        if not isinstance(guard.origin, BuiltinSource):
            raise self.error(guard, "it is no builtin")
        self._make_safe(guard, guard.origin)


_CONTAINS = {
    (True, True): "DICT_CONTAINS",
    (True, False): "DICT_NOT_CONTAINS",
    (False, True): "DICT_HAS",
    (False, False): "DICT_LACKS",
}


def _is_singleton(value: object) -> bool:
    return is_one_of(type(value), _SINGLETONS)


def can_id_match(value: object) -> bool:
    """Whether ID_MATCH is possible: the object is immutable (and then kept alive) or weakly referable."""
    return is_immutable(value) or is_weakrefable(value)


def _plain_step_runs_code(source: Source, cls: type) -> str | None:
    """Why the plain step of `source` on an exact `cls` could run user code; None when it runs C code only."""
    if isinstance(source, ItemSource):
        plain = cls is dict or has_plain_items(cls)
        return None if plain else f"{type_name(cls)} defines __getitem__ or __missing__"
    if isinstance(source, FunctionPartSource):
        return None if cls is types.FunctionType else f"{type_name(cls)} is no Python function"
    if isinstance(source, WeakRefSource):
        return None if cls is weakref.ref else f"{type_name(cls)} is not weakref.ref"
    assert isinstance(source, AttrSource)
    if type(type_lookup(cls, "__getattribute__")) is not types.WrapperDescriptorType:
        return f"{type_name(cls)} defines __getattribute__"
    found = type_lookup(cls, source.member)
    slots = (types.MemberDescriptorType, types.GetSetDescriptorType)
    if found is not None and not is_one_of(type(found), slots):
        return f"{source.member} of {type_name(cls)} is a {type_name(type(found))}"
    return None
