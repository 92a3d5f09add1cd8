"""Metadata rules of elementwise operators: unary, binary, ternary, comparisons, logic, activations, in-place
forms.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import torch

from minidynamo.graph.meta_iterator import (
    broadcast,
    elementwise,
    floating,
    in_place,
    operand_layouts,
    preserved_strides,
    real_of,
    result_dtype,
    written,
)
from minidynamo.graph.meta_rules import NUMBERS, fresh, is_tensor, meta_rule, named, need_tensor, wants_grad
from minidynamo.graph.meta_value import Decline, TensorMeta

SPACES = (torch, torch.special)

#: Category of the dtypes that rules speak about; every other dtype is declined.
KIND = {torch.bool: "b"}
KIND |= dict.fromkeys((torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64), "i")
KIND |= dict.fromkeys((torch.float16, torch.bfloat16, torch.float32, torch.float64), "f")
KIND |= dict.fromkeys((torch.complex64, torch.complex128), "c")


def check_kind(dtype: torch.dtype, kinds: str) -> None:
    """Decline unless the dtype is of one of the categories: b(ool), i(nteger), f(loat), c(omplex)."""
    if KIND.get(dtype, "?") not in kinds:
        raise Decline


def same(dtype: torch.dtype) -> torch.dtype:
    """The result has the operand's dtype."""
    return dtype


def boolean(dtype: torch.dtype) -> torch.dtype:
    """The result is a truth value."""
    return torch.bool


# --- unary --------------------------------------------------------------------------------------------------

#: names -> (dtype of the result, categories of operands that the operator takes)
UNARY: list[tuple[str, Callable[[torch.dtype], torch.dtype], str]] = [
    ("neg negative", same, "ifc"),
    ("abs absolute", real_of, "if"),
    ("sign", same, "bif"),
    ("sgn", same, "ifc"),
    ("floor ceil trunc fix", same, "if"),
    ("relu", same, "if"),
    ("bitwise_not", same, "bi"),
    ("logical_not", boolean, "bifc"),
    ("frac", same, "f"),
    (
        "exp log sin cos tan sinh cosh tanh asin acos atan arcsin arccos arctan asinh acosh atanh "
        "arcsinh arccosh arctanh",
        floating,
        "bifc",
    ),
    ("sqrt rsqrt log2 log10 log1p expm1 exp2 reciprocal sigmoid", floating, "bifc"),
    ("erf erfc erfinv lgamma digamma i0 sinc", floating, "bif"),
    ("gammaln expit ndtri ndtr i0e i1 i1e entr erfcx", floating, "bif"),
    ("deg2rad rad2deg", floating, "bif"),
    ("isnan", boolean, "bifc"),
    ("isneginf isposinf", boolean, "bif"),
    ("signbit", boolean, "bif"),
    ("isinf", boolean, "fc"),
]

GRADLESS_UNARY = {"logical_not", "bitwise_not", "isnan", "isinf", "isneginf", "isposinf", "signbit"}


def unary_rule(
    dtype_of: Callable[[torch.dtype], torch.dtype], kinds: str, has_gradient: bool = True
) -> Callable[..., TensorMeta]:
    """The rule of `op(input)`."""

    def rule(grad_mode: bool, input: Any) -> TensorMeta:
        x = need_tensor(input)
        check_kind(x.dtype, kinds)
        return elementwise(grad_mode, (x,), dtype_of(x.dtype), has_gradient)

    return rule


def unary_in_place_rule(
    dtype_of: Callable[[torch.dtype], torch.dtype], kinds: str
) -> Callable[..., TensorMeta]:
    """The rule of `op_(input)`."""

    def rule(grad_mode: bool, input: Any) -> TensorMeta:
        x = need_tensor(input)
        check_kind(x.dtype, kinds)
        result = dtype_of(x.dtype)
        return in_place(grad_mode, x, (), x.dtype if result is torch.bool else result)

    return rule


UNARY_OPERATORS = {"neg": (operator.neg,), "abs": (operator.abs,), "bitwise_not": (operator.invert,)}

for _names, _dtype_of, _kinds in UNARY:
    for _name in _names.split():
        _rule = unary_rule(_dtype_of, _kinds, _name not in GRADLESS_UNARY)
        meta_rule(*named(_name, spaces=SPACES), *UNARY_OPERATORS.get(_name, ()))(_rule)
        meta_rule(*named(_name + "_"))(unary_in_place_rule(_dtype_of, _kinds))


@meta_rule(*named("round"))
def round_(grad_mode: bool, input: Any, *, decimals: int = 0) -> TensorMeta:
    """round(input, decimals)."""
    x = need_tensor(input)
    check_kind(x.dtype, "if" if decimals == 0 else "f")
    return elementwise(grad_mode, (x,), x.dtype)


@meta_rule(*named("square"))
def square(grad_mode: bool, input: Any) -> TensorMeta:
    """square(input) is pow(input, 2)."""
    x = need_tensor(input)
    check_kind(x.dtype, "ifc")
    return elementwise(grad_mode, (x,), x.dtype)


@meta_rule(*named("isfinite"))
def isfinite(grad_mode: bool, input: Any) -> TensorMeta:
    """isfinite(input): integers are always finite, so the result is a filled copy of their layout."""
    x = need_tensor(input)
    check_kind(x.dtype, "bif")
    if x.dtype.is_floating_point:
        return elementwise(False, (x,), torch.bool)
    return fresh(x.shape, torch.bool, x.device, False, preserved_strides(x.shape, x.stride))


@meta_rule(*named("positive"), operator.pos)
def positive(grad_mode: bool, input: Any) -> TensorMeta:
    """+input is the input itself."""
    x = need_tensor(input)
    check_kind(x.dtype, "ifc")
    return x


# --- binary -------------------------------------------------------------------------------------------------


def arithmetic(
    kinds: str, dtype_of: Callable[[torch.dtype], torch.dtype] = same, has_gradient: bool = True
) -> Callable[..., TensorMeta]:
    """The shared part of binary rules: `body(grad_mode, input, other)` with at least one tensor among the
    two.
    """

    def body(grad_mode: bool, input: Any, other: Any) -> TensorMeta:
        dtype = result_dtype(input, other)
        check_kind(dtype, kinds)
        return elementwise(grad_mode, (input, other), dtype_of(dtype), has_gradient)

    return body


def arithmetic_in_place(
    kinds: str, dtype_of: Callable[[torch.dtype], torch.dtype] = same
) -> Callable[..., TensorMeta]:
    """`body_(grad_mode, input, other)` where the result is stored into input."""

    def body(grad_mode: bool, input: Any, other: Any) -> TensorMeta:
        dtype = result_dtype(input, other)
        check_kind(dtype, kinds)
        result = dtype_of(dtype)
        return in_place(
            grad_mode, input, (other,), need_tensor(input).dtype if result is torch.bool else result
        )

    return body


#: names, categories of the common dtype, dtype of the result, differentiable, operators, in-place operators
BINARY: list[
    tuple[str, str, Callable[[torch.dtype], torch.dtype], bool, tuple[Any, ...], tuple[Any, ...]]
] = [
    ("mul multiply", "bifc", same, True, (operator.mul,), (operator.imul,)),
    ("remainder", "if", same, True, (operator.mod,), (operator.imod,)),
    ("fmod", "if", same, True, (), ()),
    ("floor_divide", "if", same, False, (operator.floordiv,), (operator.ifloordiv,)),
    ("maximum minimum", "bif", same, True, (), ()),
    ("fmax fmin", "bif", same, True, (), ()),
    ("atan2 arctan2", "bif", floating, True, (), ()),
    ("copysign", "bif", floating, True, (), ()),
    ("hypot nextafter", "f", same, True, (), ()),
    ("logaddexp logaddexp2", "f", same, True, (), ()),
    ("xlogy", "bif", floating, True, (), ()),
    ("bitwise_and", "bi", same, False, (operator.and_,), (operator.iand,)),
    ("bitwise_or", "bi", same, False, (operator.or_,), (operator.ior,)),
    ("bitwise_xor", "bi", same, False, (operator.xor,), (operator.ixor,)),
    ("bitwise_left_shift", "i", same, False, (operator.lshift,), ()),
    ("bitwise_right_shift", "i", same, False, (operator.rshift,), ()),
    ("eq", "bifc", boolean, False, (operator.eq,), ()),
    ("ne not_equal", "bifc", boolean, False, (operator.ne,), ()),
    ("lt less", "bif", boolean, False, (operator.lt,), ()),
    ("le less_equal", "bif", boolean, False, (operator.le,), ()),
    ("gt greater", "bif", boolean, False, (operator.gt,), ()),
    ("ge greater_equal", "bif", boolean, False, (operator.ge,), ()),
    ("logical_and logical_or logical_xor", "bifc", boolean, False, (), ()),
]

#: Functions whose second operand must be a tensor.
TENSORS_ONLY = {
    "maximum", "minimum", "fmax", "fmin", "atan2", "arctan2", "hypot", "nextafter", "logaddexp", "logaddexp2",
    "logical_and", "logical_or", "logical_xor",
}  # fmt: skip


def function_form(body: Callable[..., TensorMeta], tensors_only: bool) -> Callable[..., TensorMeta]:
    """`torch.op(input, other)` and `input.op(other)`: the first operand is a tensor."""

    def rule(grad_mode: bool, input: Any, other: Any) -> TensorMeta:
        need_tensor(input)
        if tensors_only:
            need_tensor(other)
        return body(grad_mode, input, other)

    return rule


def operator_in_place_form(
    in_place_body: Callable[..., TensorMeta], body: Callable[..., TensorMeta]
) -> Callable[..., TensorMeta]:
    """`input op= other`: in place for a tensor on the left, else the ordinary operator."""

    def rule(grad_mode: bool, input: Any, other: Any) -> TensorMeta:
        return (in_place_body if is_tensor(input) else body)(grad_mode, input, other)

    return rule


for _names, _kinds, _dtype_of, _has_gradient, _operators, _in_place_operators in BINARY:
    _body = arithmetic(_kinds, _dtype_of, _has_gradient)
    _in_place_body = arithmetic_in_place(_kinds, _dtype_of)
    for _name in _names.split():
        meta_rule(*named(_name, spaces=SPACES))(function_form(_body, _name in TENSORS_ONLY))
        meta_rule(*named(_name + "_"))(function_form(_in_place_body, _name in TENSORS_ONLY))
    meta_rule(*_operators)(_body)
    meta_rule(*_in_place_operators)(operator_in_place_form(_in_place_body, _body))


def _check_alpha(dtype: torch.dtype, alpha: Any) -> None:
    """`alpha` scales the second operand: a number that the common dtype can hold."""
    if (type(alpha) is not int or alpha != 1) and (
        type(alpha) not in (int, float) or not dtype.is_floating_point
    ):
        raise Decline


def add(grad_mode: bool, input: Any, other: Any, *, alpha: Any = 1) -> TensorMeta:
    """input + alpha * other."""
    dtype = result_dtype(input, other)
    check_kind(dtype, "bifc")
    _check_alpha(dtype, alpha)
    return elementwise(grad_mode, (input, other), dtype)


def add_(grad_mode: bool, input: Any, other: Any, *, alpha: Any = 1) -> TensorMeta:
    """input += alpha * other."""
    dtype = result_dtype(input, other)
    check_kind(dtype, "bifc")
    _check_alpha(dtype, alpha)
    return in_place(grad_mode, input, (other,), dtype)


def _no_bool(*operands: Any) -> None:
    """Subtraction refuses truth values."""
    for operand in operands:
        if type(operand) is bool or (is_tensor(operand) and operand.dtype is torch.bool):
            raise Decline


def sub(grad_mode: bool, input: Any, other: Any, *, alpha: Any = 1) -> TensorMeta:
    """input - alpha * other."""
    _no_bool(input, other)
    return add(grad_mode, input, other, alpha=alpha)


def sub_(grad_mode: bool, input: Any, other: Any, *, alpha: Any = 1) -> TensorMeta:
    """input -= alpha * other."""
    _no_bool(input, other)
    return add_(grad_mode, input, other, alpha=alpha)


def _with_alpha(body: Callable[..., TensorMeta]) -> Callable[..., TensorMeta]:
    """The function form of add and sub."""

    def rule(grad_mode: bool, input: Any, other: Any, *, alpha: Any = 1) -> TensorMeta:
        need_tensor(input)
        return body(grad_mode, input, other, alpha=alpha)

    return rule


meta_rule(*named("add"))(_with_alpha(add))
meta_rule(*named("add_"))(_with_alpha(add_))
meta_rule(*named("sub", "subtract"))(_with_alpha(sub))
meta_rule(*named("sub_", "subtract_"))(_with_alpha(sub_))
meta_rule(operator.add)(add)
meta_rule(operator.sub)(sub)
meta_rule(operator.iadd)(operator_in_place_form(add_, add))
meta_rule(operator.isub)(operator_in_place_form(sub_, sub))


@meta_rule(torch.rsub, ("method", "__rsub__"))
def rsub(grad_mode: bool, input: Any, other: Any, *, alpha: Any = 1) -> TensorMeta:
    """other - alpha * input. The iterator sees (other, input)."""
    return sub(grad_mode, other, need_tensor(input), alpha=alpha)


def _divided(dtype: torch.dtype, rounding_mode: Any) -> torch.dtype:
    if rounding_mode is None:
        check_kind(dtype, "bifc")
        return floating(dtype)
    if rounding_mode not in ("trunc", "floor"):
        raise Decline
    check_kind(dtype, "if")
    return dtype


def div(grad_mode: bool, input: Any, other: Any, *, rounding_mode: Any = None) -> TensorMeta:
    """input / other, rounded or not."""
    return elementwise(grad_mode, (input, other), _divided(result_dtype(input, other), rounding_mode))


def div_(grad_mode: bool, input: Any, other: Any, *, rounding_mode: Any = None) -> TensorMeta:
    """input /= other."""
    return in_place(grad_mode, input, (other,), _divided(result_dtype(input, other), rounding_mode))


@meta_rule(*named("div", "divide"))
def div_function(grad_mode: bool, input: Any, other: Any, *, rounding_mode: Any = None) -> TensorMeta:
    """torch.div: the first operand is a tensor."""
    return div(grad_mode, need_tensor(input), other, rounding_mode=rounding_mode)


@meta_rule(*named("div_", "divide_"))
def div_method_(grad_mode: bool, input: Any, other: Any, *, rounding_mode: Any = None) -> TensorMeta:
    """Tensor.div_."""
    return div_(grad_mode, need_tensor(input), other, rounding_mode=rounding_mode)


@meta_rule(*named("true_divide"))
def true_divide(grad_mode: bool, input: Any, other: Any) -> TensorMeta:
    """torch.true_divide."""
    return div(grad_mode, need_tensor(input), other)


@meta_rule(("method", "__rtruediv__"), ("method", "__rdiv__"))
def rtruediv(grad_mode: bool, input: Any, other: Any) -> TensorMeta:
    """other / input, which torch computes as input.reciprocal() * other."""
    x = need_tensor(input)
    check_kind(x.dtype, "bifc")
    inverse = elementwise(grad_mode, (x,), floating(x.dtype))
    return elementwise(grad_mode, (inverse, other), result_dtype(inverse, other))


@meta_rule(operator.truediv)
def truediv(grad_mode: bool, input: Any, other: Any) -> TensorMeta:
    """input / other; a number on the left leaves it to the tensor's reflected method."""
    return div(grad_mode, input, other) if is_tensor(input) else rtruediv(grad_mode, other, input)


meta_rule(operator.itruediv)(operator_in_place_form(div_, truediv))


def _power_dtype(input: Any, other: Any) -> torch.dtype:
    dtype = result_dtype(input, other)
    check_kind(dtype, "ifc")
    if not dtype.is_floating_point and not dtype.is_complex and type(other) in NUMBERS and other < 0:
        raise Decline
    return dtype


@meta_rule(*named("pow"), operator.pow)
def pow_(grad_mode: bool, input: Any, exponent: Any) -> TensorMeta:
    """input ** exponent. A number as exponent takes no part in the choice of strides; nor does a number as
    base.
    """
    tensors = [value for value in (input, exponent) if is_tensor(value)]
    return elementwise(grad_mode, tensors, _power_dtype(input, exponent))


@meta_rule(*named("pow_"))
def pow_in_place(grad_mode: bool, input: Any, exponent: Any) -> TensorMeta:
    """input **= exponent."""
    return in_place(grad_mode, input, (exponent,), _power_dtype(need_tensor(input), exponent))


meta_rule(operator.ipow)(operator_in_place_form(pow_in_place, pow_))


# --- ternary ------------------------------------------------------------------------------------------------


@meta_rule(torch.where)
def where(grad_mode: bool, condition: Any, input: Any, other: Any) -> TensorMeta:
    """torch.where(condition, input, other); the operands take part in the order input, other, condition."""
    need_tensor(condition)
    check_kind(condition.dtype, "b")
    dtype = result_dtype(input, other)
    check_kind(dtype, "bifc")
    return elementwise(grad_mode, (condition, input, other), dtype)


@meta_rule(("method", "where"))
def where_method(grad_mode: bool, input: Any, condition: Any, other: Any) -> TensorMeta:
    """input.where(condition, other)."""
    return where(grad_mode, condition, need_tensor(input), other)


@meta_rule(*named("addcmul"))
def addcmul(grad_mode: bool, input: Any, tensor1: Any, tensor2: Any, *, value: Any = 1) -> TensorMeta:
    """input + value * tensor1 * tensor2."""
    operands = (need_tensor(input), need_tensor(tensor1), need_tensor(tensor2))
    dtype = result_dtype(*operands)
    check_kind(dtype, "fc")
    if type(value) not in (int, float):
        raise Decline
    return elementwise(grad_mode, operands, dtype)


@meta_rule(*named("addcdiv"))
def addcdiv(grad_mode: bool, input: Any, tensor1: Any, tensor2: Any, *, value: Any = 1) -> TensorMeta:
    """input + value * tensor1 / tensor2."""
    return addcmul(grad_mode, input, tensor1, tensor2, value=value)


@meta_rule(*named("addcmul_", "addcdiv_"))
def addcmul_(grad_mode: bool, input: Any, tensor1: Any, tensor2: Any, *, value: Any = 1) -> TensorMeta:
    """addcmul and addcdiv in place."""
    result = addcmul(grad_mode, input, tensor1, tensor2, value=value)
    return in_place(grad_mode, input, (tensor1, tensor2), result.dtype)


def _lerp_operands(input: Any, end: Any, weight: Any) -> list[TensorMeta]:
    operands = [need_tensor(input), need_tensor(end)]
    if is_tensor(weight):
        operands.append(weight)
    elif type(weight) is not float:
        raise Decline
    check_kind(input.dtype, "fc")
    if any(operand.dtype is not input.dtype for operand in operands):
        raise Decline
    return operands


@meta_rule(*named("lerp"))
def lerp(grad_mode: bool, input: Any, end: Any, weight: Any) -> TensorMeta:
    """input + weight * (end - input)."""
    return elementwise(grad_mode, _lerp_operands(input, end, weight), input.dtype)


@meta_rule(*named("lerp_"))
def lerp_(grad_mode: bool, input: Any, end: Any, weight: Any) -> TensorMeta:
    """lerp in place."""
    return in_place(grad_mode, input, _lerp_operands(input, end, weight)[1:], input.dtype)


def _clamp_operands(input: Any, bounds: tuple[Any, ...]) -> tuple[list[TensorMeta], torch.dtype]:
    given = [bound for bound in bounds if bound is not None]
    tensors = [bound for bound in given if is_tensor(bound)]
    if not given or len(tensors) not in (0, len(given)):
        raise Decline
    dtype = result_dtype(need_tensor(input), *given)
    check_kind(dtype, "if")
    check_kind(input.dtype, "if")
    return [input, *tensors], dtype


@meta_rule(*named("clamp", "clip"))
def clamp(grad_mode: bool, input: Any, min: Any = None, max: Any = None) -> TensorMeta:
    """clamp(input, min, max) with numbers or tensors as bounds."""
    operands, dtype = _clamp_operands(input, (min, max))
    return elementwise(grad_mode, operands, dtype)


@meta_rule(*named("clamp_min"))
def clamp_min(grad_mode: bool, input: Any, min: Any) -> TensorMeta:
    """clamp with a lower bound."""
    return clamp(grad_mode, input, min)


@meta_rule(*named("clamp_max"))
def clamp_max(grad_mode: bool, input: Any, max: Any) -> TensorMeta:
    """clamp with an upper bound."""
    return clamp(grad_mode, input, max)


@meta_rule(*named("clamp_", "clip_"))
def clamp_(grad_mode: bool, input: Any, min: Any = None, max: Any = None) -> TensorMeta:
    """clamp in place."""
    operands, dtype = _clamp_operands(input, (min, max))
    return in_place(grad_mode, input, operands[1:], dtype)


@meta_rule(*named("clamp_min_"))
def clamp_min_(grad_mode: bool, input: Any, min: Any) -> TensorMeta:
    """clamp_min in place."""
    return clamp_(grad_mode, input, min)


@meta_rule(*named("clamp_max_"))
def clamp_max_(grad_mode: bool, input: Any, max: Any) -> TensorMeta:
    """clamp_max in place."""
    return clamp_(grad_mode, input, max)


def _fill_value(input: TensorMeta, value: Any) -> None:
    """The value of masked_fill: a number or a 0-dim tensor that the input's dtype can hold."""
    if is_tensor(value):
        if value.shape or not torch.can_cast(value.dtype, input.dtype) or value.device != input.device:
            raise Decline
    elif type(value) not in NUMBERS or not torch.can_cast(result_dtype(input, value), input.dtype):
        raise Decline


@meta_rule(*named("masked_fill"))
def masked_fill(grad_mode: bool, input: Any, mask: Any, value: Any) -> TensorMeta:
    """masked_fill: a contiguous copy of the input, broadcast against the mask."""
    need_tensor(input)
    check_kind(need_tensor(mask).dtype, "b")
    _fill_value(input, value)
    layouts, device = operand_layouts((input, mask))
    shape = broadcast(*(layout[0] for layout in layouts))
    return fresh(shape, input.dtype, device, wants_grad(grad_mode, input, value))


@meta_rule(*named("masked_fill_"))
def masked_fill_(grad_mode: bool, input: Any, mask: Any, value: Any) -> TensorMeta:
    """masked_fill in place."""
    _fill_value(need_tensor(input), value)
    check_kind(need_tensor(mask).dtype, "b")
    in_place(grad_mode, input, (mask,), input.dtype)
    return written(grad_mode, input, (value,))


@meta_rule(*named("fill_"))
def fill_(grad_mode: bool, input: Any, value: Any) -> TensorMeta:
    """fill_(value)."""
    if is_tensor(value) and value.shape or not is_tensor(value) and type(value) not in NUMBERS:
        raise Decline
    in_place(grad_mode, input, (), input.dtype)
    return written(grad_mode, input, (value,))


@meta_rule(*named("zero_"))
def zero_(grad_mode: bool, input: Any) -> TensorMeta:
    """zero_()."""
    return in_place(grad_mode, input, (), need_tensor(input).dtype)


@meta_rule(("method", "copy_"))
def copy_(grad_mode: bool, input: Any, src: Any, non_blocking: bool = False) -> TensorMeta:
    """copy_(src): any dtype and device."""
    need_tensor(input)
    in_place(grad_mode, input, (), input.dtype)
    if broadcast(input.shape, need_tensor(src).shape) != input.shape:
        raise Decline
    return written(grad_mode, input, (src,))
