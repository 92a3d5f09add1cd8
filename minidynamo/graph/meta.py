"""Metadata of operators: what a call gives back, worked out without running it.

Tier 1 are the rules of meta_rules_*.py (exact, a few microseconds, no sympy); tier 2 runs fake tensors
(fake.py). A rule that cannot be exact for its arguments declines and tier 2 answers.
"""

from __future__ import annotations

import operator
import types
from collections.abc import Hashable
from typing import Any

import torch

from minidynamo import config
from minidynamo.exc import InternalError
from minidynamo.graph import (  # noqa: F401 - the modules of rules fill RULES
    fake,
    meta_rules_activations,
    meta_rules_foreach,
    meta_rules_join,
    meta_rules_linear,
    meta_rules_make,
    meta_rules_nn,
    meta_rules_pointwise,
    meta_rules_query,
    meta_rules_reduce,
    meta_rules_view,
    symbolic,
    wrappers,
)
from minidynamo.graph.meta_rules import RULES, meta_rule
from minidynamo.graph.meta_value import (
    Decline,
    MetaError,
    MutatesMeta,
    NeedsData,
    OpFailed,
    Result,
    TensorMeta,
    Unknown,
)
from minidynamo.graph.symbolic import ATTRIBUTES, NumberMeta, SymbolicMeta
from minidynamo.graph.wrappers import WrapperMeta, holds_wrapper

__all__ = [
    "ATTRIBUTES", "MetaError", "MutatesMeta", "NeedsData", "NumberMeta", "OpFailed", "Result", "SymbolicMeta", "TensorMeta", "Unknown",
    "WrapperMeta", "canonical", "has_rule", "holds_wrapper", "infer", "is_undifferentiable", "meta_rule", "verify",
]  # fmt: skip

_DESCRIPTORS = (types.MethodDescriptorType, types.WrapperDescriptorType, types.FunctionType)

#: Special methods of tensors -> the operator that Python would apply; "swapped" where the tensor is the right
#: operand.
_SPECIAL = {f"__{name}__": getattr(operator, f"__{name}__") for name in (
    "add sub mul truediv floordiv mod pow matmul and or xor lshift rshift lt le gt ge eq ne neg pos invert "
    "abs iadd isub imul itruediv ifloordiv imod iand ior ixor ipow getitem setitem"
).split()}  # fmt: skip
_SWAPPED = {f"__r{name}__": getattr(operator, f"__{name}__") for name in (
    "add mul floordiv mod pow matmul and or xor lshift rshift"
).split()}  # fmt: skip


def canonical(op: Any) -> Hashable:
    """The key of an operator: a method descriptor of Tensor is ("method", name), all else is itself."""
    if isinstance(op, _DESCRIPTORS):
        name = op.__name__
        if getattr(torch.Tensor, name, None) is op:
            return "method", name
    return op


def _rule_for(op: Any, args: tuple[Any, ...]) -> tuple[Any, tuple[Any, ...]]:
    """The rule for an operator, and the arguments in the rule's order; (None, args) if there is none."""
    rule = RULES.get(op)
    if rule is None and type(op) is tuple:
        name = op[1]
        if name in _SPECIAL:
            rule = RULES.get(_SPECIAL[name])
        elif name in _SWAPPED and len(args) == 2:
            return RULES.get(_SWAPPED[name]), args[::-1]
    return rule, args


def has_rule(op: Any) -> bool:
    """Whether tier 1 knows the operator (it may still decline some arguments)."""
    return _rule_for(canonical(op), (None, None))[0] is not None


def _tier1(op: Any, args: tuple[Any, ...], kwargs: dict[str, Any], grad_mode: bool) -> Result:
    """The answer of the rule, or NotImplemented."""
    rule, args = _rule_for(op, args)
    if rule is None or torch._C._is_any_autocast_enabled():
        return NotImplemented
    try:
        return rule(grad_mode and not torch.is_inference_mode_enabled(), *args, **kwargs)
    except Decline:
        return NotImplemented
    except TypeError as error:
        # Raised by this call itself: the arguments do not fit the rule's parameters. Deeper: a fault of the
        # rule.
        if error.__traceback__ is None or error.__traceback__.tb_next is not None:
            raise
        return NotImplemented


def infer(
    op: Any, args: tuple[Any, ...], kwargs: dict[str, Any], grad_mode: bool, for_compiler: bool = False
) -> Result:
    """What `op(*args, **kwargs)` gives back, as metadata.

    op: a callable (torch.add, operator.add, torch.Tensor.add, getattr, torch.nn.functional.relu, ...) or
    ("method", name).
    args, kwargs: TensorMeta in the place of tensors, also inside tuples, lists, dicts and slices; SymbolicMeta for tensors
    whose sizes depend on data, WrapperMeta for wrappers of other tensors.
    grad_mode: whether autograd records.
    for_compiler: whether views of wrappers have to be such that AOTAutograd can make them again.

    Returns a TensorMeta or SymbolicMeta, a tuple, list or torch.return_types of them and constants, or a Python constant
    that follows from metadata alone. An operator that returns one of its arguments returns that argument's
    TensorMeta object.
    Raises NeedsData, OpFailed, MutatesMeta, Unknown; InternalError under MINIDYNAMO_VERIFY=1 if the tiers
    disagree.
    """
    op = canonical(op)
    if holds_wrapper((args, kwargs)):
        return wrappers.infer(op, args, kwargs, grad_mode, for_compiler)
    if symbolic.holds_symbolic((args, kwargs)):
        return symbolic.infer(op, args, kwargs, grad_mode, _concrete)
    try:
        return _concrete(op, args, kwargs, grad_mode)
    except NeedsData:
        if op not in symbolic.SOURCES:
            raise
    return symbolic.infer(op, args, kwargs, grad_mode, _concrete)


def is_undifferentiable(op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether compilers refuse the derivative of this call. Arguments: see `infer`."""
    return symbolic.is_undifferentiable(canonical(op), args, kwargs)


def _concrete(
    op: Any, args: tuple[Any, ...], kwargs: dict[str, Any], grad_mode: bool, checked: bool = True
) -> Result:
    """`infer` where all sizes are known. checked: tier 1 is compared with tier 2 where that is asked for."""
    result = _tier1(op, args, kwargs, grad_mode)
    if result is NotImplemented:
        return fake.run(op, args, kwargs, grad_mode)
    if checked and config.verify:
        verify(op, args, kwargs, grad_mode)
    return result


def verify(op: Any, args: tuple[Any, ...], kwargs: dict[str, Any], grad_mode: bool = True) -> bool:
    """Compare tier 1 with fake tensors (and with the real operator where those differ); False if tier 1 has
    nothing to say. Raises InternalError naming op and difference.
    """
    op = canonical(op)
    try:
        ours: Any = _tier1(op, args, kwargs, grad_mode)
    except MetaError as error:
        ours = type(error)
    if ours is NotImplemented:
        return False
    try:
        theirs: Any = fake.run(op, args, kwargs, grad_mode)
    except MetaError as error:
        theirs = type(error)
        if theirs is Unknown:
            return False
    difference = _difference(ours, theirs)
    if difference:
        # Fake tensors are wrong about some strides; where the operator can be run it decides.
        real = fake.on_real(op, args, kwargs, grad_mode)
        if isinstance(real, fake.Described) and not _difference(ours, real.result):
            return True
        raise InternalError(
            f"the metadata rule of {fake.name_of(op)} disagrees with fake tensors for {args!r} {kwargs!r}: "
            f"{difference}"
        )
    return True


def _difference(ours: Any, theirs: Any) -> str:
    """In words, where two results differ; "" if they agree."""
    if type(ours) is TensorMeta and type(theirs) is TensorMeta:
        fields = ("shape", "stride", "dtype", "device", "requires_grad", "layout", "is_leaf", "is_inference")
        differ = [name for name in fields if getattr(ours, name) != getattr(theirs, name)]
        return "; ".join(
            f"{name} is {getattr(ours, name)} by rule, {getattr(theirs, name)} by fake tensor"
            for name in differ
        )
    if isinstance(ours, (tuple, list)) and type(ours) is type(theirs):
        if len(ours) != len(theirs):
            return f"{len(ours)} results by rule, {len(theirs)} by fake tensor"
        found = [
            (position, _difference(a, b)) for position, (a, b) in enumerate(zip(ours, theirs, strict=True))
        ]
        return "; ".join(f"result {position}: {text}" for position, text in found if text)
    if type(ours) is type(theirs) and ours == theirs:
        return ""
    return f"{ours!r} by rule, {theirs!r} by fake tensor"
