"""Tensors whose sizes depend on data: `x[x > 0]`, `nonzero()`, `unique()`.

Such a tensor is known by samples: its metadata for several values of the unknown sizes (nothing, one element, few, many). An
operator on it is worked out for every sample by the same rules and fake tensors as any other. What is the same in all of
them is known; an operator that fails for one of them, or that answers with a number that is not known to be a constant, needs
data. So no symbol reaches a guard, a constant or a graph.

Numbers that are read from tensors (`x.sum().item()`) are known by samples too, and only of few operators arguments.

Where the unknown sizes come from: the operators of SOURCES are run once more, on fake tensors with a ShapeEnv, whose symbols
are then replaced by the sample values.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch

from minidynamo.graph import fake
from minidynamo.graph.meta_rules import is_tensor, named
from minidynamo.graph.meta_value import Decline, MetaError, NeedsData, Result, TensorMeta
from minidynamo.graph.sized import SIZED

Infer = Callable[[Any, tuple[Any, ...], dict[str, Any], bool, bool], Result]

_FUNCTIONS = (
    "nonzero argwhere masked_select unique unique_consecutive repeat_interleave bincount where".split()
)

#: Operators whose results' sizes, and nothing else of them, may depend on data.
SOURCES = frozenset(
    {
        *(getattr(torch, name) for name in _FUNCTIONS),
        *(("method", name) for name in (*_FUNCTIONS, "__getitem__")),
        operator.getitem,
        *SIZED,
    }
)

#: Calls whose derivative compilers refuse: operator -> whether they are such for these arguments.
UNDIFFERENTIABLE: dict[Any, Callable[..., bool]] = {
    **{op: lambda *given: True for name in ("unique", "unique_consecutive") for op in named(name)},
    **{
        op: lambda *given: any(map(is_tensor, given[1:]))
        for name in ("narrow", "tensor_split")
        for op in named(name)
    },
}


def is_undifferentiable(op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether no compiler makes a derivative of this call, though one is wanted."""
    refuses = UNDIFFERENTIABLE.get(op)
    values = (*args, *kwargs.values())
    return refuses is not None and _requires_grad(values) and refuses(*values)


#: Questions whose answers are constants if all samples agree: what they answer does not depend on an unknown size, or is a size.
QUESTIONS = frozenset(
    {
        *(("method", name) for name in (
            "dim ndimension element_size is_floating_point is_complex is_signed is_inference get_device size "
            "__len__"
        ).split()),
        torch.is_floating_point, torch.is_complex, torch.is_signed, torch.is_inference, torch.get_device,
        torch.is_tensor, torch.result_type, len,
    }
)  # fmt: skip
ATTRIBUTES = frozenset(
    "shape dtype device layout ndim requires_grad is_leaf itemsize is_cpu is_cuda is_meta is_mps is_xpu is_xla is_ipu "
    "is_maia is_mtia is_vulkan is_sparse is_sparse_csr is_mkldnn is_quantized is_nested".split()
)

_FEW = (0, 1, 2, 3)
_MANY = (1009, 10_000_019)
SAMPLES = len(_FEW) + len(_MANY)

_symbols = itertools.count()
_met = False


@dataclass(frozen=True, slots=True)
class SymbolicMeta:
    """What is known of a tensor with sizes that depend on data: its metadata in each sample, smallest first. They agree in all but
    sizes and strides."""

    samples: tuple[TensorMeta, ...]

    @property
    def dtype(self) -> torch.dtype:
        """The type of its elements."""
        return self.samples[0].dtype

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return self.samples[0].ndim

    @property
    def requires_grad(self) -> bool:
        """Whether autograd follows it."""
        return self.samples[0].requires_grad

    @property
    def is_parameter(self) -> bool:
        """Never: a parameter comes from outside."""
        return False

    @property
    def shape_text(self) -> str:
        """Its sizes for people: `(?, 3)`."""
        sizes = [set(sizes) for sizes in zip(*(meta.shape for meta in self.samples), strict=True)]
        shown = ["?" if len(each) > 1 else str(*each) for each in sizes]
        return f"({', '.join(shown)}{',' if len(shown) == 1 else ''})"


_NUMBERS: dict[type, tuple[Any, ...]] = {
    bool: (False, True, False, True, False, True),
    int: (0, 1, -1, 3, 1009, 10_000_019),
    float: (0.0, 1.0, -1.5, 3.0, 1009.5, math.nan),
}


@dataclass(frozen=True, slots=True)
class NumberMeta:
    """What is known of a Python number that is read from a tensor: its type. Operators are worked out for some of its values."""

    kind: type

    def __post_init__(self) -> None:
        global _met
        _met = True

    @property
    def samples(self) -> tuple[Any, ...]:
        """Numbers of the type."""
        return _NUMBERS[self.kind]


#: Operators that take such a number as one of their first two arguments: with every number they give the same but for data.
TAKE_NUMBERS = frozenset(
    {
        *(getattr(operator, name) for name in "add sub mul truediv iadd isub imul itruediv gt ge lt le eq ne".split()),
        *named(*"add sub mul div true_divide gt ge lt le eq ne add_ sub_ mul_ div_ fill_ full_like".split()),
        *(("method", f"__{name}__") for name in (
            "add radd sub rsub mul rmul truediv rtruediv iadd isub imul itruediv gt ge lt le eq ne"
        ).split()),
    }
)  # fmt: skip


def _takes_numbers(op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether numbers that depend on data, if there are any, are only where the operator takes them. (Compilers do not get over a bool
    there.)"""
    found = []

    def look(value: Any) -> Any:
        if type(value) is NumberMeta:
            found.append(value)
        return value

    fake.rebuild((args, kwargs), look)
    taken = [value for value in args[:2] if type(value) is NumberMeta and value.kind is not bool]
    return not found or op in TAKE_NUMBERS and len(taken) == len(found)


def holds_symbolic(tree: Any) -> bool:
    """Whether a tensor with unknown sizes is among the arguments (cheap until the first one is met)."""
    if not _met:
        return False
    found = False

    def look(value: Any) -> Any:
        nonlocal found
        found |= type(value) in (SymbolicMeta, NumberMeta)
        return value

    fake.rebuild(tree, look)
    return found


def infer(op: Any, args: tuple[Any, ...], kwargs: dict[str, Any], grad_mode: bool, concrete: Infer) -> Result:
    """What an operator gives when arguments have unknown sizes (or a source, whose result has). Raises NeedsData.

    concrete: infers one sample; its fifth argument is whether tensors of such sizes can be made, to check rules on them
    """
    if not _takes_numbers(op, args, kwargs):
        raise _needs_data(op)
    first = next(_symbols)
    outcomes: list[Result] = []
    source: tuple[Any, Callable[[int, int], Result]] | None = None
    for index in range(SAMPLES):
        given = _sample(args, index), _sample(kwargs, index)
        try:
            if source is None or given != source[0]:
                source = None
                result = concrete(op, *given, grad_mode, index < SAMPLES - 1)
        except NeedsData:
            source = given, _source(op, *given, grad_mode)
        except MetaError as error:
            raise _needs_data(op) from error
        if source is not None:
            result = source[1](index, first)
        if not index and not _real_agrees(op, given, grad_mode, result):
            raise _needs_data(op)
        if outcomes and not _alike(outcomes[0], result):
            raise _needs_data(op)
        outcomes.append(result)
    known = op in QUESTIONS or (op is getattr and args[1] in ATTRIBUTES)
    return _merged(op, outcomes, _symbolic(args, kwargs), known)


def _real_agrees(op: Any, given: tuple[Any, Any], grad_mode: bool, result: Result) -> bool:
    """Whether the operator does on real tensors what is said of the first sample, the one whose unknown sizes are the least:
    neither rules nor fake tensors tell all that is refused without elements (`max`)."""

    def on_cpu(value: Any) -> Any:
        return replace(value, device=torch.device("cpu")) if type(value) is TensorMeta else value

    try:
        args, kwargs = fake.rebuild(given, on_cpu)
        real = fake.on_real(op, args, kwargs, grad_mode)
    except MetaError:
        return False
    return real is None or (
        isinstance(real, fake.Described) and _alike(fake.rebuild(result, on_cpu), real.result)
    )


def _sample(tree: Any, index: int) -> Any:
    known = (SymbolicMeta, NumberMeta)
    return fake.rebuild(tree, lambda value: value.samples[index] if type(value) in known else value)


def _symbolic(*trees: Any) -> list[SymbolicMeta]:
    found: list[SymbolicMeta] = []

    def look(value: Any) -> Any:
        if type(value) is SymbolicMeta:
            found.append(value)
        return value

    fake.rebuild(trees, look)
    return found


def _needs_data(op: Any) -> NeedsData:
    return NeedsData(f"{fake.name_of(op)} depends on a size that depends on the data of a tensor")


def _rest(meta: TensorMeta) -> tuple[Any, ...]:
    """What all samples have to agree on."""
    return (
        meta.ndim, meta.dtype, meta.device, meta.requires_grad, meta.layout, meta.is_leaf, meta.is_parameter,
        meta.is_inference,
    )  # fmt: skip


def _alike(one: Result, other: Result) -> bool:
    """Same structure, same constants, tensors that differ in sizes and strides at most."""
    if type(one) is not type(other):
        return False
    if type(one) is TensorMeta:
        return _rest(one) == _rest(other)
    if isinstance(one, (tuple, list)):
        return len(one) == len(other) and all(map(_alike, one, other))
    return bool(one == other)


def _merged(op: Any, outcomes: list[Result], operands: list[SymbolicMeta], known: bool) -> Result:
    """One result of those of all samples. An operand that is returned gives its own SymbolicMeta."""
    global _met
    first = outcomes[0]
    if type(first) is TensorMeta:
        for operand in operands:
            if all(map(operator.is_, operand.samples, outcomes)):
                return operand
        if all(each == first for each in outcomes):
            return first
        _met = True
        return SymbolicMeta(tuple(outcomes))
    if isinstance(first, (tuple, list)) and not isinstance(first, torch.Size):
        items = [_merged(op, list(column), operands, known) for column in zip(*outcomes, strict=True)]
        kind: Any = type(first)
        return kind(*items) if hasattr(kind, "_make") else kind(items)
    if first is None or known:
        return first
    raise _needs_data(op)


# --- where unknown sizes come from -----------------------------------------------------------------------------


def _source(
    op: Any, args: tuple[Any, ...], kwargs: dict[str, Any], grad_mode: bool
) -> Callable[[int, int], Result]:
    """Run an operator of SOURCES with a ShapeEnv. Gives its result as a function of the sample and the number of the first symbol.

    Raises NeedsData if the operator is none, or if anything but sizes would depend on a symbol.
    """
    if op not in SOURCES:
        raise _needs_data(op)
    if op in SIZED:
        return _sized(op, args, kwargs, grad_mode)
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.fx.experimental.symbolic_shapes import ShapeEnv

    environment = ShapeEnv()
    try:
        with fake.undisturbed(grad_mode, (args, kwargs)), FakeTensorMode(shape_env=environment):
            inputs = fake.rebuild((args, kwargs), lambda v: v.make_empty() if type(v) is TensorMeta else v)
            result = fake.call(op, *inputs)
            described = fake.rebuild(result, _described)
    except Exception as error:  # a symbol that the operator looks at, and whatever else it cannot do
        raise _needs_data(op) from error
    if environment.guards or environment.replacements:
        raise _needs_data(op)
    symbols = sorted(environment.var_to_range, key=str)
    asserts = [each.expr for found in environment.deferred_runtime_asserts.values() for each in found]

    def at(index: int, first: int) -> Result:
        values = {}
        for number, symbol in enumerate(symbols):
            limits = environment.var_to_range[symbol]
            values[symbol] = int(limits.lower) + (*_FEW, *_MANY)[index]
            if index >= len(_FEW):  # no two symbols have the same value here: they need not be equal
                values[symbol] += 16 * first + number
            if index == SAMPLES - 1:
                values[symbol] += _bound(limits.upper)
        if not all(each.xreplace(values) == True for each in asserts):  # noqa: E712 - sympy's true
            raise _needs_data(op)
        return fake.rebuild(described, lambda value: value.at(values) if type(value) is _Traced else value)

    return at


def _sized(
    op: Any, args: tuple[Any, ...], kwargs: dict[str, Any], grad_mode: bool
) -> Callable[[int, int], Result]:
    """The result of an operator that has a rule for it."""

    def at(index: int, first: int) -> Result:
        def size(number: int) -> int:
            known = (*_FEW, *_MANY)[index] + (16 * first + number if index >= len(_FEW) else 0)
            return known + (1 << 31 if index == SAMPLES - 1 else 0)

        try:
            return SIZED[op](grad_mode and not torch.is_inference_mode_enabled(), size, *args, **kwargs)
        except (Decline, TypeError) as error:  # (arguments that do not fit)
            raise _needs_data(op) from error

    return at


def _requires_grad(values: tuple[Any, ...]) -> bool:
    tensors = (value.samples[0] if type(value) is SymbolicMeta else value for value in values)
    return any(is_tensor(value) and value.requires_grad for value in tensors)


def _bound(upper: Any) -> int:
    """The largest value of a symbol, or one that few tensors have."""
    return int(upper) if upper.is_Integer and upper < 1 << 40 else 1 << 31


@dataclass(frozen=True)
class _Traced:
    """A fake result: its sizes and strides are numbers or expressions with symbols."""

    shape: tuple[Any, ...]
    stride: tuple[Any, ...]
    rest: dict[str, Any]

    def at(self, values: dict[Any, int]) -> TensorMeta:
        """With the symbols replaced."""
        shape, stride = (
            tuple(int(n.node.expr.xreplace(values)) if isinstance(n, torch.SymInt) else n for n in numbers)
            for numbers in (self.shape, self.stride)
        )
        return TensorMeta(shape, stride, **self.rest)


def _described(value: Any) -> Any:
    if value is None:
        return None
    if not isinstance(value, torch.Tensor) or value.layout is not torch.strided:
        raise NeedsData("a result that is no tensor depends on data")
    rest = {
        "dtype": value.dtype,
        "device": value.device,
        "requires_grad": value.requires_grad,
        "is_leaf": value.is_leaf,
        "is_inference": value.is_inference(),
    }
    return _Traced(tuple(value.shape), tuple(value.stride()), rest)
