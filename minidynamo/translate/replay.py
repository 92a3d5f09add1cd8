"""A capture once more, for a frame that differs from an earlier one in sizes of tensors and in numbers only (`graph/tape.py`).

The nodes of the earlier graph get the metadata and the numbers of this frame. `Differs` where the trace might have gone another way: a
number that it looked at is another one, an operator gives something of another kind, or fails.
"""

from __future__ import annotations

import functools
import operator
import struct
from collections.abc import Iterable, Sequence
from typing import Any

import torch
import torch.fx
from torch.fx.node import map_aggregate

from ..graph import meta
from ..graph.fake import rebuild
from ..graph.graph_source import CodeGen, unregister_with
from ..graph.listing import Listing, Use, places_of
from ..graph.meta import TensorMeta
from ..graph.output_graph import CapturedGraph, GraphInput, append
from ..graph.tape import KINDS, Computed, Template, Untold, plain, rest_of
from ..guards.again import FreshRows
from ..guards.rows import GuardRow
from ..markers import DYNAMIC_MARK
from ..rules.tensor_ops import kind_of, overlaps_itself
from ..sources import FrameValues
from . import state
from .trace import guarded

PLAIN = (torch.Tensor, torch.nn.Parameter)
NUMBER_BITS = 64
Changes = dict[GuardRow, tuple[GuardRow, str]]


class Differs(Exception):
    """The trace of this frame is not known to be the earlier one."""


class Replay:
    """What an earlier trace would be on the values of a frame.

    changed: rows of the earlier guards -> what is in their place here, with its expectation in words
    examples: the tensors of the inputs, as the template has them
    given: their metadata. metas: that of everything, by the places of nodes
    """

    def __init__(
        self, template: Template, listing: Listing, rows: Sequence[GuardRow], frame: FrameValues
    ) -> None:
        """Raises Differs."""
        self.template = template
        self.listing = listing
        self.changed: Changes = {}
        self.numbers: dict[int, Any] = {}
        self.examples: list[torch.Tensor] = []
        self.metas: dict[int, Any] = {}
        if state.refuses() is not None:
            raise Differs
        fresh = FreshRows(frame, rows)
        try:
            self.given = [self._input(fresh, *known) for known in zip(template.sources(), template.metas())]
            self._read_numbers(fresh)
        except (*fresh.errors, meta.Unknown) as error:
            raise Differs from error
        if not self.changed:
            raise Differs
        self._work_out()
        try:
            self._compare()
        except Untold as error:
            raise Differs from error

    # --- the values of the frame -----------------------------------------------------------------------------------------
    def _input(self, fresh: FreshRows, source: Any, before: TensorMeta) -> TensorMeta:
        value = fresh.read(source)
        if type(value) not in PLAIN or DYNAMIC_MARK in value.__dict__:
            raise Differs
        self.examples.append(value)
        now = TensorMeta.of(value)
        if now != before:
            if rest_of(now) != rest_of(before):
                raise Differs
            self._put(fresh.tensor(source))
        return now

    def _read_numbers(self, fresh: FreshRows) -> None:
        for number, origin in enumerate(self.template.numbers):
            if isinstance(origin, (int, Computed)):
                continue
            value, before = fresh.read(origin), fresh.known_constant(origin)
            if type(value) is not type(before):
                raise Differs
            self.numbers[number] = value
            if not same(value, before):
                self._put(fresh.constant(origin))

    def _put(self, found: tuple[GuardRow, GuardRow, str] | None) -> None:
        """(row of the earlier guards, new row, its expectation in words); None where there is no such row."""
        if found is None:
            raise Differs
        before, row, words = found
        self.changed[before] = row, words

    # --- what the trace knew ---------------------------------------------------------------------------------------------
    def number(self, traced: Any) -> Any:
        """A number of the tape as it is in this frame."""
        if traced.at not in self.numbers:
            origin = self.template.numbers[traced.at]
            if isinstance(origin, Computed):
                self.numbers[traced.at] = self._compute(origin)
            else:
                assert isinstance(origin, int), "numbers from outside are known"
                self._answer(origin)
        return self.numbers[traced.at]

    def filled(self, leaf: Any) -> Any:
        """A leaf of an operator's arguments with the number of this frame."""
        return self.number(leaf) if isinstance(leaf, KINDS) else leaf

    def leaf(self, leaf: Any) -> Any:
        """What stands for a leaf of an operator's arguments when metadata are worked out."""
        kind = type(leaf)
        if kind is Use:
            return self.metas[leaf]
        return self.number(leaf) if kind in KINDS else leaf

    def _compute(self, what: Computed) -> Any:
        try:
            value = what.fn(*map(self.filled, what.operands))
        except ArithmeticError as error:
            raise Differs from error
        if (
            type(value) is not type(plain(what.value))
            or type(value) is int
            and value.bit_length() > NUMBER_BITS
        ):
            raise Differs
        return value

    def _answer(self, index: int) -> None:
        """Ask a question again: its numbers become known, everything else must be what it was."""
        question = self.template.questions[index]
        given = rebuild((question.args, question.kwargs), self.leaf)
        self._learn(question.answer, infer(question.op, *given))

    def _learn(self, marked: Any, found: Any) -> None:
        if isinstance(marked, KINDS):
            if type(found) is not int:
                raise Differs
            self.numbers[marked.at] = found
        elif type(marked) is tuple:
            if not isinstance(found, (tuple, list)) or len(found) != len(marked):
                raise Differs
            for one, other in zip(marked, found):
                self._learn(one, other)
        elif not same(marked, found):
            raise Differs

    def _work_out(self) -> None:
        """The metadata of each node."""
        rows, traced, metas = self.listing.rows, self.template.traced, self.metas
        taken = sum(row[0] == "placeholder" for row in rows)
        for index, known in enumerate(self.given):
            metas[index if index < taken else len(rows) + index - taken] = known
        for place, (kind, _, target, args, kwargs) in enumerate(rows):
            if kind not in CALLS:
                continue
            args, kwargs = rebuild(traced.get(place) or (args, kwargs or {}), self.leaf)
            if target is operator.getitem and isinstance(args[0], (tuple, list)):
                if args[1] >= len(args[0]):
                    raise Differs
                metas[place] = args[0][args[1]]
            else:
                metas[place] = infer(("method", target) if kind == "call_method" else target, args, kwargs)

    def _compare(self) -> None:
        """Whatever the trace looked at, or may have, is what it was."""
        template = self.template
        if template.rest != tuple(map(rest_of, self.metas.values())):
            raise Differs
        for index in range(len(template.questions)):
            self._answer(index)
        for at, origin in enumerate(template.numbers):
            if isinstance(origin, Computed) and at not in self.numbers:  # nobody uses it, but it may raise
                self.numbers[at] = self._compute(origin)
        if not all(same(self.number(value), plain(value)) for value in template.pinned.values()):
            raise Differs
        if not all(same(self._compute(check), check.value) for check in template.checks):
            raise Differs
        for place, given in template.traced.items():
            kind = kind_of(self.listing.rows[place][2])
            if kind is None or does(kind, rebuild(given, self.filled)) != does(kind, rebuild(given, plain)):
                raise Differs
        if template.written:
            self._compare_writes()

    def _compare_writes(self) -> None:
        """What operators write may be written, and the same inputs are told apart by their metadata."""
        if any(overlaps_itself(self.metas[place]) for place in self.template.written):
            raise Differs
        if partition(self.given) != partition(self.template.metas()):
            raise Differs
        for place, (kind, _, target, args, kwargs) in enumerate(self.listing.rows):
            known = kind_of(target) if kind in CALLS else None
            if known is not None and known.gives_self(args, kwargs or {}) and type(args[0]) is Use:
                if self.metas[place] not in (None, self.metas[args[0]]):
                    raise Differs

    def is_told_apart(self) -> bool:
        """Whether its inputs are different tensors, as those of the earlier trace were. (A trace would take one that is there twice
        once.)"""
        return len(set(map(id, self.examples))) == len(self.examples)

    # --- the graph -------------------------------------------------------------------------------------------------------
    def graph(self) -> CapturedGraph:
        """The graph of this frame."""
        template, made = self.template, torch.fx.Graph()
        made.set_codegen(CodeGen())
        nodes: list[torch.fx.Node] = []

        def leaf(value: Any) -> Any:
            return nodes[value] if type(value) is Use else self.filled(value)

        sources, inputs = template.sources(), list[GraphInput]()
        outputs: dict[torch.fx.Node, int] = {}
        for place, (kind, name, target, args, kwargs) in enumerate(self.listing.rows):
            if kind == "placeholder":
                nodes.append(made.create_node(kind, target, name=name))
                source = sources[place]
                inputs.append(GraphInput(name, source, self.examples[place], (), self.metas[place]))
                continue
            args, kwargs = map_aggregate(template.traced.get(place) or (args, kwargs or {}), leaf)
            if kind in CALLS:
                nodes.append(append(made, kind, target, args, kwargs))
            else:
                outputs = {node: index for index, node in enumerate(args[0])}
                made.output(args[0])
        module = torch.fx.GraphModule({}, made, template.name)
        unregister_with(type(module).forward.__code__)
        return CapturedGraph(
            module,
            tuple(inputs),
            outputs,
            template.ops,
            tuple([nodes[place] for place in template.written]),
            template.draws_random,
            (),
            {},
            Listing(places_of(made)),
            functools.partial(template.of, self.given),
        )


CALLS = ("call_function", "call_method")


def infer(op: Any, args: Any, kwargs: Any) -> Any:
    """What an operator gives for nodes with these metadata. Raises Differs."""
    try:
        return meta.infer(op, args, kwargs, torch.is_grad_enabled())
    except (meta.MetaError, TypeError) as error:
        raise Differs from error


def does(kind: Any, given: tuple[Any, Any]) -> tuple[Any, ...]:
    """What a call does besides giving a result, told by its arguments."""
    return kind.draws(*given), kind.gives_self(*given), [id(one) for one in kind.written(*given)]


def partition(metas: Iterable[TensorMeta]) -> list[int]:
    """Which of them guards cannot tell apart, as numbers of groups."""
    groups: dict[Any, int] = {}
    return [groups.setdefault(guarded(one), len(groups)) for one in metas]


def same(one: Any, other: Any) -> bool:
    """Whether two constants are the same, floats by their bits."""
    if type(one) is float and type(other) is float:
        return struct.pack("d", one) == struct.pack("d", other)
    return type(one) is type(other) and bool(one == other)
