"""What a trace depends on besides its guards, so that the next compilation of the same code may replay it.

A compilation that only other sizes of tensors or other numbers made necessary goes the way of the one before, unless the program
looked at one of them. The tape remembers where numbers come from, what was computed with them, and which of them the trace looked at.
A number that is handed to an operator as it is (`x.view(b, t, -1)`) is not looked at: the graph has the new one in its place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import torch
import torch.fx
from torch.fx.node import map_aggregate

from ..sources import Source
from .listing import Use
from .meta_value import TensorMeta


class TracedInt(int):
    """An int that the tape knows: `at` is its number there."""

    at: int


class TracedFloat(float):
    """A float that the tape knows."""

    __slots__ = ("at",)
    at: int


TRACED: dict[type, type] = {int: TracedInt, float: TracedFloat}
KINDS = (TracedInt, TracedFloat)


def plain(value: Any) -> Any:
    """A leaf of an operator's arguments as the graph has it."""
    if isinstance(value, TracedInt):
        return int(value)
    return float(value) if isinstance(value, TracedFloat) else value


class Question(NamedTuple):
    """An operator that was answered from metadata. `answer`: tuples in place of sequences, `TracedInt`s in place of ints."""

    op: Any
    args: Any
    kwargs: Any
    answer: Any


class Computed(NamedTuple):
    """A pure function of numbers, and what it gave."""

    fn: Callable[..., Any]
    operands: tuple[Any, ...]
    value: Any


#: Of a number: where it was read, the index of the question that it is an answer to, or how it was computed.
Origin = Source | int | Computed


class Tape:
    """Is written while a frame is executed symbolically; one per graph."""

    __slots__ = (
        "_asked",
        "checks",
        "handed",
        "lost",
        "metas",
        "numbers",
        "pinned",
        "questions",
        "traced",
    )

    def __init__(self) -> None:
        self.numbers: list[Origin] = []
        self.questions: list[Question] = []
        self._asked: dict[Any, Any] = {}
        self.checks: list[Computed] = []
        self.pinned: dict[int, Any] = {}  # numbers that the trace looked at
        self.metas: dict[torch.fx.Node, Any] = {}  # what `infer` gave for the nodes of operators
        self.traced: dict[torch.fx.Node, Any] = {}  # their arguments, where numbers are among them
        self.handed = False  # a number was handed to an operator that no node has been made for
        self.lost = False  # something happened that a replay would not do

    def number(self, value: Any, origin: Origin) -> Any:
        """`value`, an int or a float, as one that the tape knows."""
        made = TRACED[type(value)](value)
        made.at = len(self.numbers)
        self.numbers.append(origin)
        return made

    def pin(self, traced: Any) -> None:
        """The trace looks at a number: with another one it might go another way."""
        self.pinned[traced.at] = traced

    def computed(self, fn: Callable[..., Any], operands: tuple[Any, ...], value: Any) -> Any:
        """`value`, which the trace has computed: a number, too."""
        return self.number(value, Computed(fn, operands, value))

    def check(self, fn: Callable[..., Any], *operands: Any) -> Any:
        """The trace looks at `fn(*operands)`, which is returned, and not at the operands themselves."""
        value = fn(*operands)
        self.checks.append(Computed(fn, operands, value))
        return value

    def ask(self, op: Any, args: tuple[Any, ...], kwargs: dict[str, Any], answer: Any) -> Any:
        """`answer` follows from the metadata of `args`, nodes among them. Returned with traced ints in it."""
        once = (op, *args) if not kwargs and (op is getattr or len(args) == 1) else None
        if once in self._asked:
            return self._asked[once]
        marked = self._mark(answer, len(self.questions))
        self.questions.append(Question(op, args, kwargs, marked))
        if once is not None:
            self._asked[once] = marked
        return marked

    def _mark(self, value: Any, question: int) -> Any:
        if isinstance(value, (tuple, list)):
            return tuple([self._mark(item, question) for item in value])
        return self.number(value, question) if type(value) is int else value

    def arguments(self, node: torch.fx.Node, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Where numbers are among the arguments that `node` was given, it gets plain ones."""
        self.handed = False
        if has_traced(args) or kwargs and has_traced(kwargs):
            self.traced[node] = args, kwargs
            node.args, node.kwargs = map_aggregate(args, plain), map_aggregate(kwargs, plain)  # type: ignore[assignment]


def has_traced(tree: Any) -> bool:
    """Whether numbers that a tape knows are among the arguments of an operator."""
    if isinstance(tree, (tuple, list)):
        return any(map(has_traced, tree))
    if isinstance(tree, dict):
        return any(map(has_traced, tree.values()))
    if isinstance(tree, slice):
        return any(map(has_traced, (tree.start, tree.stop, tree.step)))
    return isinstance(tree, KINDS)


class Untold(Exception):
    """Something whose metadata is more than sizes, strides and the like."""


FEW = 8
_rests: dict[Any, Any] = {}  # equal ones, and those of small graphs, are one object: there are few


def rest_of(value: Any) -> Any:
    """Everything about metadata but sizes and strides. Raises Untold for what is no metadata of ordinary tensors."""
    if type(value) is TensorMeta:
        found = (
            len(value.shape), value.dtype, value.device, value.requires_grad, value.layout, value.is_leaf, value.is_parameter,
            value.is_inference,
        )  # fmt: skip
        return _rests.setdefault(found, found)
    if isinstance(value, (tuple, list)):
        return type(value), tuple(map(rest_of, value))
    if value is None:
        return None
    raise Untold


class Template:
    """What an entry keeps of a tape: values, sources and metadata, nodes by their places.

    known     source and metadata of each input, one after the other: placeholders, which come first in the graph, and then those that
              the graph has no use for, whose places are behind its last one
    traced    place -> arguments of the nodes with traced numbers among them
    written   places of the nodes that operators change in place
    rest      per input and node what a replay does not change
    """

    __slots__ = (
        "checks", "draws_random", "known", "name", "numbers", "ops", "pinned", "questions", "rest", "traced", "written",
    )  # fmt: skip

    def __init__(
        self,
        tape: Tape,
        places: dict[torch.fx.Node, Use],
        inputs: dict[torch.fx.Node, Any],
        written: tuple[torch.fx.Node, ...],
        graph: Any,
    ) -> None:
        """Raises Untold where the metadata of a node are of another kind."""

        def placed(value: Any) -> Any:
            return places[value] if isinstance(value, torch.fx.Node) else value

        left = [node for node in inputs if node not in places]
        in_order = [*(node for node in inputs if node in places), *left]
        self.known: tuple[Any, ...] = tuple(
            [each for node in in_order for each in (inputs[node].source, inputs[node].meta)]
        )
        places = places | {node: Use(len(places) + number) for number, node in enumerate(left)}
        self.written = tuple([int(places[node]) for node in written])
        self.name: str = graph.class_name
        self.ops: int = graph.ops
        self.draws_random: bool = graph.draws_random
        self.numbers = tuple(tape.numbers)
        self.checks = tuple(tape.checks)
        self.pinned = tape.pinned
        self.questions = tuple(
            [
                Question(q.op, map_aggregate(q.args, placed), map_aggregate(q.kwargs, placed), q.answer)
                for q in tape.questions
            ]
        )
        self.traced = {int(places[node]): map_aggregate(given, placed) for node, given in tape.traced.items()}
        rest = [rest_of(meta) for meta in self.metas()]
        rest += [rest_of(tape.metas[node]) for node in places if node in tape.metas]
        self.rest = _rests.setdefault(tuple(rest), tuple(rest)) if len(rest) <= FEW else tuple(rest)

    def sources(self) -> tuple[Source, ...]:
        """Of the inputs."""
        return self.known[::2]

    def metas(self) -> tuple[TensorMeta, ...]:
        """Of the inputs."""
        return self.known[1::2]

    def of(self, metas: Iterable[TensorMeta]) -> Template:
        """The same with other metadata of the inputs."""
        made: Template = Template.__new__(Template)
        for name in self.__slots__:
            setattr(made, name, getattr(self, name))
        made.known = tuple([each for pair in zip(self.sources(), metas) for each in pair])
        return made
