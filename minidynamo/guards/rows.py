"""`GuardRow` and the table of row kinds: one template per kind is both its printer and its parser."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from minidynamo.cache import Keyed
from minidynamo.literals import literal
from minidynamo.sources import GlobalsSource, Source, StateSource

# What the holes {0}, {1}, ... of a template take, besides {path}.
LITERAL, SOURCE, SOURCES, RELATION = "literal", "source", "sources", "relation"


@dataclass(frozen=True, slots=True)
class Sources:
    """Several paths in one literal: `(x, y)`."""

    items: tuple[Source, ...]

    def name(self) -> str:
        return f"({', '.join(source.name() for source in self.items)},)" if self.items else "()"


@dataclass(frozen=True, slots=True)
class Relation:
    """A truth about integers: `template` is a Python expression in which `{0}`, `{1}`, ... are the sources.

    The template is in the normal form of `ast.unparse`, holes in order of appearance (see `text.relation`).
    """

    template: str
    sources: tuple[Source, ...]

    def name(self) -> str:
        return self.template.format(*(source.name() for source in self.sources))


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of row.

    template: the text, `{path}` the guarded value, `{0}`, `{1}`, ... the literals
    holes: what each literal is: a constant (LITERAL), a Source, a Sources or a Relation
    cost: rank among guards that are ready; cheap and likely to fail is low
    doc: one line for people
    needs_type: the text is safe or meaningful only after a type guard on the path
    """

    template: str
    holes: tuple[str, ...]
    cost: int
    doc: str
    needs_type: bool = False
    relates: bool = field(init=False)  # some literals are paths

    def __post_init__(self) -> None:
        object.__setattr__(self, "relates", self.holes.count(LITERAL) < len(self.holes))


def _kind(template: str, cost: int, doc: str, *, holes: str = "", needs_type: bool = False) -> Kind:
    names = {"l": LITERAL, "s": SOURCE, "t": SOURCES, "r": RELATION}
    return Kind(template, tuple(names[h] for h in holes), cost, doc, needs_type)


KINDS: dict[str, Kind] = {
    "TYPE_MATCH": _kind("___check_type_id({path}, {0})", 0, "exact type by identity", holes="l"),
    "ID_MATCH": _kind("___check_obj_id({path}, {0})", 1, "the same object", holes="l"),
    "CONSTANT_MATCH": _kind("{path} is {0}", 1, "the same singleton", holes="l"),
    "DUPLICATE_INPUT": _kind("{path} is {0}", 1, "two places hold one object", holes="s"),
    "NO_ALIAS": _kind("{path} is not {0}", 1, "two places hold different objects", holes="s"),
    "DISTINCT": _kind(
        "___distinct({0}, {1})", 8, "many places hold different objects, and none of the others'", holes="tt"
    ),
    "FUNCTION_MATCH": _kind(
        "___check_code_id({path}, {0})", 2, "a Python function with the same code", holes="l"
    ),
    "EQUALS_MATCH": _kind(
        "{path} == {0}", 3, "int, str, bytes or ordinary float", holes="l", needs_type=True
    ),
    "LENGTH": _kind("___len({path}) == {0}", 3, "number of elements", holes="l", needs_type=True),
    "GLOBAL_STATE": _kind("___check_global_state({0}, {1})", 4, "modes, default dtype, autocast", holes="ll"),
    "STATE_READ": _kind(
        "___check_state_read({0}, {1}, {2})", 4, "a part of torch's state that was asked for", holes="lll"
    ),
    "SAME_MATCH": _kind("___same({path}, {0})", 5, "constant compared by type and bits", holes="l"),
    "NAME_MATCH": _kind("___check_name({path}, {0})", 5, "its __name__", holes="l"),
    "ITERATOR_LENGTH": _kind("___iterator_len({path}) == {0}", 5, "elements left in an iterator", holes="l"),
    "WEAKREF_ALIVE": _kind("___weakref_alive({path})", 5, "a weak reference whose object lives"),
    "GLOBAL_ABSENT": _kind("{0} not in ___globals", 2, "a builtin is not shadowed by a global", holes="l"),
    "HASATTR": _kind("___hasattr({path}, {0})", 6, "attribute found statically", holes="l"),
    "NOT_HASATTR": _kind("not ___hasattr({path}, {0})", 6, "attribute not found statically", holes="l"),
    "SUBCLASS": _kind(
        "___check_subclass({path}, {0}, {1})", 6, "a class has another among its bases", holes="ll"
    ),
    "LACKS_MEMBERS": _kind(
        "___lacks_members({path}, {0})", 6, "names absent from its own dictionary", holes="l"
    ),
    "EMPTY_MEMBERS": _kind(
        "___empty_members({path}, {0})", 6, "attributes that are empty OrderedDicts", holes="l"
    ),
    "PRESENT": _kind("___present({path})", 6, "a value that was read and not looked at"),
    "OWN_ATTR": _kind("___has_own({path}, {0})", 6, "attribute in the instance's own dictionary", holes="l"),
    "NOT_OWN_ATTR": _kind(
        "not ___has_own({path}, {0})", 6, "no attribute in the instance's own dictionary", holes="l"
    ),
    "DICT_CONTAINS": _kind("{0} in {path}", 6, "key present", holes="l", needs_type=True),
    "DICT_NOT_CONTAINS": _kind("{0} not in {path}", 6, "key absent", holes="l", needs_type=True),
    "DICT_HAS": _kind("___dict_has({path}, {0})", 6, "key present in a dict that overrides `in`", holes="l"),
    "DICT_LACKS": _kind(
        "not ___dict_has({path}, {0})", 6, "key absent in a dict that overrides `in`", holes="l"
    ),
    "TENSOR_MATCH": _kind(
        "___check_tensors({path}, {0}, {1}, {2}, {3}, {4}, {5}, {6})", 7, "tensor metadata", holes="lllllll"
    ),
    "DISPATCH_CODE": _kind(
        "___check_dispatch_code({path}, {0})", 8, "what the code of a tensor wrapper's class reads", holes="l"
    ),
    "SHAPE_ENV": _kind("___holds({0})", 8, "a relation between sizes and numbers", holes="r"),
    "STORAGE_LAYOUT": _kind(
        "___check_storages({0}, {1})", 8, "which tensors share a storage, and at which distance", holes="tl"
    ),
    "STORAGE_PLACES": _kind(
        "___check_places({0}, {1})", 8, "the bases of views and their places in them", holes="tl"
    ),
    "DICT_KEYS": _kind("___check_dict_keys({path}, {0})", 8, "keys and their order", holes="l"),
    "SET_HAS": _kind("___set_has({path}, {0})", 6, "element present", holes="l"),
    "SET_LACKS": _kind("not ___set_has({path}, {0})", 6, "element absent", holes="l"),
    "SET_ITEMS": _kind("___check_set_items({path}, {0})", 8, "elements of a set", holes="l"),
    "SET_ORDER": _kind("___check_set_order({path}, {0})", 8, "elements of a set and their order", holes="l"),
}


PATHS = (Source, Sources, Relation)  # literals that print by their name()


class GuardRow(Keyed):
    """One fact that must hold: `kind` of KINDS, the path of the value, the literals: constants, Refs,
    other Sources, Relations. Kinds without `{path}` in their template derive the path (see `derived_path`).

    Two rows are equal when kind and path are equal and the literals are the same constants, bit for bit.
    """

    __slots__ = ("kind", "literals", "path", "told_apart")
    _compared = ("kind", "path", "told_apart")
    __hash__ = Keyed.__hash__

    def __init__(self, kind: str, path: Source, literals: tuple[Any, ...] = ()) -> None:
        self.kind = kind
        self.path = path
        self.literals = literals
        # of rows on one path: a key, a name; what is equal without being the same constant is compared in full
        self.told_apart = literals[0] if literals and type(literals[0]) is str else None

    def __eq__(self, other: object) -> bool:
        if type(other) is not GuardRow:
            return NotImplemented
        return self.kind == other.kind and self.path == other.path and self._texts() == other._texts()

    def __ne__(self, other: object) -> bool:
        return not self == other

    def _texts(self) -> list[Any]:
        """The literals as they are compared: constants by their text, which shows every bit."""
        texts: list[Any] | None = self._memo
        if texts is None:
            texts = self._memo = [x if isinstance(x, PATHS) else literal(x) for x in self.literals]
        return texts

    def __repr__(self) -> str:
        return f"GuardRow({self.kind!r}, {self.path!r}, {self.literals!r})"

    def paths(self) -> tuple[Source, ...]:
        """The guarded path and every other path that the text reads, each once."""
        if not KINDS[self.kind].relates:
            return (self.path,)
        found = [self.path]
        for item in self.literals:
            if isinstance(item, Source):
                found.append(item)
            elif isinstance(item, Sources):
                found.extend(item.items)
            elif isinstance(item, Relation):
                found.extend(item.sources)
        return tuple(dict.fromkeys(found))


def derived_path(kind: str, literals: tuple[Any, ...]) -> Source:
    """The path of a row whose template has no `{path}`."""
    if kind in ("GLOBAL_STATE", "STATE_READ"):
        return StateSource()
    if kind == "GLOBAL_ABSENT":
        return GlobalsSource()
    return (literals[0].sources if isinstance(literals[0], Relation) else literals[0].items)[0]
