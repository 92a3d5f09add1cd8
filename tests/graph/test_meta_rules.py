"""Tier 1 of metadata: every rule against the real operator, and against fake tensors."""

from __future__ import annotations

import itertools
import operator
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from minidynamo.graph import fake, meta
from minidynamo.graph.meta_rules import RULES
from minidynamo.graph.meta_value import TensorMeta
from tests.ids import stable

LAYOUTS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "contiguous": lambda x: x,
    "transposed": lambda x: x.transpose(0, -1).contiguous().transpose(0, -1),
    "strided": lambda x: x.repeat_interleave(2, -1)[..., ::2],
    "channels_last": lambda x: x.contiguous(memory_format=torch.channels_last),
    "expanded": lambda x: x.select(0, 0).expand(x.shape),
    "odd strides of single elements": lambda x: x.contiguous().as_strided(
        x.shape,
        [step if size != 1 else 7 for size, step in zip(x.shape, x.contiguous().stride(), strict=True)],
    ),
}

#: Operators of the quick run: one or more of every family of rules.
QUICK = set(
    """
    add sub mul div true_divide floor_divide remainder fmod pow maximum minimum atan2 copysign eq lt
    logical_and bitwise_and
    bitwise_left_shift neg abs exp log sqrt rsqrt sigmoid tanh reciprocal isnan isfinite logical_not round
    floor square clamp
    clamp_min where addcmul lerp masked_fill positive sum mean amax prod any all argmax var std var_mean
    max min cumsum
    logsumexp softmax log_softmax mm bmm matmul addmm baddbmm mv nn.functional.linear nn.functional.conv2d
    nn.functional.conv1d
    view reshape flatten unflatten transpose permute t unsqueeze squeeze expand select narrow diagonal movedim
    cat
    stack split chunk unbind repeat tile flip gather index_select tril topk sort repeat_interleave scatter
    clone contiguous
    to float long zeros ones full empty arange zeros_like full_like new_zeros nn.functional.relu
    nn.functional.gelu
    nn.functional.silu nn.functional.leaky_relu nn.functional.hardtanh nn.functional.softplus
    nn.functional.layer_norm
    nn.functional.rms_norm nn.functional.batch_norm nn.functional.group_norm

    nn.functional.adaptive_avg_pool2d nn.functional.pad nn.functional.cross_entropy nn.functional.mse_loss
    linalg.vector_norm
    """.split()
)

QUICK_LAYOUTS = ["contiguous", "transposed", "channels_last", "expanded"]


def metas(tree: Any) -> Any:
    """The tree with TensorMeta for tensors."""
    return fake.rebuild(
        tree, lambda value: TensorMeta.of(value) if isinstance(value, torch.Tensor) else value
    )


def in_layout(layout: Callable[[torch.Tensor], torch.Tensor], value: Any) -> Any:
    """A detached copy of a tensor in a layout, where it can have it."""
    if not isinstance(value, torch.Tensor) or value.layout is not torch.strided:
        return value
    changed = value.detach()
    if value.numel() and value.ndim and not value.is_conj():
        try:
            changed = layout(changed).detach()
        except RuntimeError:
            changed = value.detach()
    return changed.requires_grad_(value.requires_grad)


def forms(info: Any) -> Iterator[tuple[Any, bool]]:
    """The operators of an entry of the database that have a rule, and whether they work in place."""
    variants = (info, *info.aliases)
    in_place = [variant.inplace_variant for variant in variants]
    in_place += [info.inplace_operator_variant, *(getattr(torch, f"{each.name}_", None) for each in variants)]
    plain = [op for variant in variants for op in (variant.op, variant.method_variant)]
    for op in {op for op in (*plain, info.operator_variant, *in_place) if op is not None}:
        if meta.has_rule(op):
            yield meta.canonical(op), op in in_place


@lru_cache(maxsize=1)
def database() -> list[Any]:
    """The entries of torch's operator database with a rule."""
    from torch.testing._internal.common_methods_invocations import op_db

    return [info for info in op_db if any(forms(info))]


def cases(
    info: Any, dtypes: tuple[torch.dtype, ...], samples: int, layouts: list[str], step: int = 1
) -> Iterator[tuple[Any, Any, Any, bool]]:
    """(operator, args, kwargs, grad mode) with real tensors."""
    for dtype in dtypes:
        if dtype not in info.dtypes:
            continue
        for requires_grad in (
            (False, True) if dtype.is_floating_point and info.supports_autograd else (False,)
        ):
            # Not info.sample_inputs(): it extracts and formats the stack for every sample.
            made = list(
                itertools.islice(info.sample_inputs_func(info, "cpu", dtype, requires_grad), step * samples)
            )
            for sample in made[:: max(1, len(made) // samples)]:
                for name, (op, in_place) in itertools.product(layouts, forms(info)):
                    if sample.kwargs and getattr(op, "__module__", "") == "_operator":
                        continue
                    args, kwargs = fake.rebuild(
                        ((sample.input, *sample.args), sample.kwargs),
                        partial(in_layout, LAYOUTS[name]),
                    )
                    if in_place and requires_grad and isinstance(args[0], torch.Tensor):
                        args = (args[0] * 1, *args[1:])
                    for grad_mode in (True, False) if requires_grad else (True,):
                        yield op, args, kwargs, grad_mode


def check_against_real(info: Any, *limits: Any) -> int:
    """Assert that rules agree with the real operator; the number of cases in which a rule had an answer."""
    answered = 0
    seen = set()
    for op, args, kwargs, grad_mode in cases(info, *limits):
        given = metas(args), metas(kwargs)
        key = (op, repr(given), grad_mode)
        if key in seen:
            continue
        seen.add(key)
        ours = meta._tier1(op, *given, grad_mode)
        if ours is NotImplemented:
            continue
        answered += 1
        with torch.set_grad_enabled(grad_mode):
            theirs = metas(fake.call(op, args, kwargs))
        assert not meta._difference(ours, theirs), (op, given, grad_mode, meta._difference(ours, theirs))
    return answered


DTYPES = (torch.float32, torch.int64, torch.bool)


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Small operators are slower on several threads, and much slower on a busy machine."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    yield
    torch.set_num_threads(threads)


def test_quick_set_agrees_with_the_operators():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        answered = Counter()
        for info in database():
            if info.name in QUICK:
                answered[info.name] += check_against_real(info, DTYPES[:2], 2, QUICK_LAYOUTS, 6)
    assert set(answered) == QUICK
    assert not [name for name in answered if not answered[name]]
    assert answered.total() > 2_000


@pytest.mark.slow
def test_quick_set_agrees_with_fake_tensors():
    checked = 0
    for info in database():
        if info.name in QUICK:
            for op, args, kwargs, grad_mode in cases(info, (torch.float32,), 2, ["contiguous"]):
                checked += meta.verify(op, metas(args), metas(kwargs), grad_mode)
    assert checked > 500


@pytest.mark.nightly
@pytest.mark.timeout(900)
def test_whole_database_agrees_with_the_operators():
    dtypes = (*DTYPES, torch.complex64, torch.float16, torch.uint8)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        answered = Counter()
        for info in database():
            answered[info.name] += check_against_real(info, dtypes, 40, list(LAYOUTS))
    assert not [name for name, count in answered.items() if not count]


@pytest.mark.nightly
@pytest.mark.timeout(900)
def test_whole_database_agrees_with_fake_tensors():
    for info in database():
        for op, args, kwargs, grad_mode in cases(
            info, DTYPES, 10, ["contiguous", "transposed", "channels_last"]
        ):
            meta.verify(op, metas(args), metas(kwargs), grad_mode)


# --- type promotion and operators ---------------------------------------------------------------------------

ALL_DTYPES = [
    torch.bool, torch.uint8, torch.int8, torch.int32, torch.int64, torch.float16, torch.bfloat16,
    torch.float32, torch.float64, torch.complex64,
]  # fmt: skip
BINARY = [
    operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod, operator.pow,
    operator.eq, operator.lt, operator.and_, operator.xor, operator.lshift, torch.maximum, torch.atan2,
    torch.copysign, operator.iadd, operator.imul, operator.itruediv, ("method", "sub"),
    ("method", "__radd__"), ("method", "__rtruediv__"), ("method", "__rpow__"),
]  # fmt: skip
OPERANDS = [torch.ones(shape, dtype=dtype) for dtype in ALL_DTYPES for shape in ((), (2,))]


def agrees_with_real(op: Any, *args: Any) -> bool:
    """Whether tier 1 answers; asserts that its answer is the real one."""
    ours = meta._tier1(meta.canonical(op), metas(args), {}, True)
    if ours is NotImplemented:
        return False
    if getattr(op, "__name__", "").startswith("i"):  # in place
        args = (args[0].clone() if isinstance(args[0], torch.Tensor) else args[0], *args[1:])
    theirs = metas(fake.call(op, args, {}))
    assert not meta._difference(ours, theirs), (op, args, meta._difference(ours, theirs))
    return True


@pytest.mark.parametrize("op", BINARY, ids=stable)
def test_type_promotion(op):
    numbers = [True, 3, 2.5, 1j]
    pairs = [*itertools.product(OPERANDS, OPERANDS), *itertools.product(OPERANDS, numbers)]
    if (
        type(op) is not tuple
        and op is not torch.maximum
        and op is not torch.atan2
        and op is not torch.copysign
    ):
        pairs += itertools.product(numbers, OPERANDS)
    assert sum(agrees_with_real(op, *pair) for pair in pairs) > 40


@pytest.mark.parametrize("default", [torch.float32, torch.float64])
def test_default_dtype_is_read_when_asked(default):
    before = torch.get_default_dtype()
    torch.set_default_dtype(default)
    try:
        whole = TensorMeta.of(torch.ones(2, dtype=torch.int64))
        assert meta.infer(operator.truediv, (whole, 2), {}, True).dtype is default
        assert meta.infer(torch.sqrt, (whole,), {}, True).dtype is default
        assert meta.infer(torch.zeros, (3,), {}, True).dtype is default
        assert meta.infer(torch.tensor, ([1.0, 2],), {}, True).dtype is default
    finally:
        torch.set_default_dtype(before)


# --- strides ------------------------------------------------------------------------------------------------

STRIDED = [
    torch.empty(4, 6), torch.empty(6, 4).t(), torch.empty(2, 3, 4), torch.empty(2, 3, 4).permute(2, 0, 1),
    torch.empty(1, 3, 1), torch.empty(8, 6)[::2, ::3], torch.empty(3).expand(4, 3), torch.empty(0, 3),
    torch.empty(2, 1, 4).expand(2, 3, 4), torch.empty(()), torch.empty(3, 1).as_strided((3, 1), (1, 9)),
    torch.empty(2, 3, 4, 5).contiguous(memory_format=torch.channels_last),
]  # fmt: skip


@pytest.mark.parametrize("op", [operator.add, torch.where, torch.addcmul], ids=stable)
def test_strides_of_mixed_layouts(op):
    count = 3 if op is not operator.add else 2
    answered = 0
    for operands in itertools.product(STRIDED, repeat=count):
        try:
            torch.broadcast_shapes(*(operand.shape for operand in operands))
        except RuntimeError:
            continue
        if op is torch.where:
            operands = (operands[0].to(torch.bool), *operands[1:])
        answered += agrees_with_real(op, *operands)
    assert answered > 20


def test_indexing():
    items = [0, -1, slice(None), slice(1, None), slice(None, None, 2), slice(-3, -1), slice(5, 1), None, ...]
    answered = 0
    for x in STRIDED:
        for length in range(4):
            for index in itertools.product(items, repeat=length):
                try:
                    x[index]
                except IndexError:
                    assert (
                        meta._tier1(operator.getitem, (TensorMeta.of(x), index), {}, True) is NotImplemented
                    )
                    continue
                answered += agrees_with_real(operator.getitem, x, index)
    assert answered > 2000


@pytest.mark.parametrize("op", [("method", "view"), ("method", "reshape"), ("method", "expand")], ids=stable)
def test_new_shapes(op):
    sizes = [-1, 1, 2, 3, 4, 6, 12]
    answered = 0
    for x in STRIDED:
        for shape in itertools.chain.from_iterable(
            itertools.product(sizes, repeat=length) for length in range(4)
        ):
            try:
                getattr(x, op[1])(shape)
            except RuntimeError:
                assert meta._tier1(op, (TensorMeta.of(x), shape), {}, True) is NotImplemented, (
                    x.shape,
                    x.stride(),
                    shape,
                )
                continue
            answered += agrees_with_real(op, x, shape)
    assert answered > 20


# --- operators that the database does not have, or has under a wrapper -------------------------------------------------

MATRIX = torch.ones(3, 4)
IMAGES = torch.ones(2, 3, 8, 9)
IMAGES_LAST = IMAGES.contiguous(memory_format=torch.channels_last)
HEADS = torch.ones(2, 4, 6, 8)
BY_LENGTH = torch.ones(2, 6, 4, 8).transpose(1, 2)
FEW_HEADS = torch.ones(2, 2, 6, 8)
INDICES = torch.tensor([[0, 2], [1, 1]])

EXAMPLES: list[tuple[Any, tuple[Any, ...], dict[str, Any]]] = [
    (torch.detach, (MATRIX.t(),), {}),
    (("method", "detach"), (torch.ones(2, requires_grad=True),), {}),
    (("method", "requires_grad_"), (MATRIX.clone(), False), {}),
    (("method", "type_as"), (MATRIX, INDICES), {}),
    (("method", "cpu"), (MATRIX.t(),), {}),
    (("method", "type"), (MATRIX, torch.float64), {}),
    (torch.rand, (2, 3), {"dtype": torch.float64}),
    (torch.randn, ((2, 3),), {"requires_grad": True}),
    (torch.rand_like, (MATRIX.t(),), {}),
    (torch.randn_like, (MATRIX,), {"dtype": torch.float16}),
    (torch.tensor, ([[1, 2.0], [True, 4]],), {}),
    (torch.tensor, ([[True], [False]],), {"dtype": torch.int32}),
    (torch.tensor, (3,), {}),
    (torch.tensor, ([],), {}),
    (torch.as_tensor, ([1, 2],), {}),
    (torch.as_tensor, (MATRIX,), {"dtype": torch.float64}),
    (torch.bernoulli, (MATRIX,), {}),
    (torch.relu, (MATRIX.t(),), {}),
    (torch.relu_, (MATRIX.clone(),), {}),
    (("method", "relu"), (MATRIX,), {}),
    (("method", "relu_"), (MATRIX.clone(),), {}),
    (operator.pos, (MATRIX,), {}),
    (torch.where, (MATRIX > 0, MATRIX, 1), {}),
    (torch.where, (MATRIX > 0, 1, 2.0), {}),
    (torch.where, (MATRIX.t() > 0, MATRIX.t(), torch.ones(1)), {}),
    (torch.fill_, (MATRIX.clone(), 2), {}),
    (torch.zero_, (MATRIX.clone(),), {}),
    (("method", "copy_"), (MATRIX.clone(), INDICES[:1, :1]), {}),
    (torch.Tensor.split, (MATRIX, [1, 2]), {}),
    (operator.itruediv, (MATRIX.clone(), 2), {}),
    (operator.ifloordiv, (MATRIX.clone(), 2), {}),
    (operator.setitem, (MATRIX.clone(), (slice(None), 1), 2), {}),
    (operator.setitem, (MATRIX.clone(), 0, torch.ones(1, 4)), {}),
    (("method", "__setitem__"), (MATRIX.clone(), ..., MATRIX), {}),
    (F.dropout, (MATRIX.t(), 0.5), {}),
    (F.dropout, (MATRIX[:, ::2],), {"training": True}),
    (F.dropout, (MATRIX, 0.5, False), {}),
    (F.dropout, (MATRIX.clone(), 0.5, True, True), {}),
    (F.embedding, (INDICES, MATRIX), {"padding_idx": -1}),
    (F.embedding, (INDICES.t(), MATRIX.requires_grad_(False)), {}),
    (F.scaled_dot_product_attention, (HEADS, HEADS, HEADS), {}),
    (F.scaled_dot_product_attention, (BY_LENGTH, BY_LENGTH, BY_LENGTH), {"is_causal": True}),
    (F.scaled_dot_product_attention, (BY_LENGTH, HEADS, HEADS, torch.ones(6, 6)), {}),
    (F.scaled_dot_product_attention, (BY_LENGTH, HEADS, HEADS, torch.ones(2, 1, 1, 6) > 0, 0.5), {}),
    (F.scaled_dot_product_attention, (BY_LENGTH, FEW_HEADS, FEW_HEADS), {"enable_gqa": True}),
    (torch.is_tensor, (MATRIX,), {}),
    (torch.is_same_size, (MATRIX, MATRIX.t()), {}),
    (("method", "is_same_size"), (MATRIX, MATRIX), {}),
    (torch.result_type, (INDICES, 1.5), {}),
    (len, (MATRIX,), {}),
    (("method", "__len__"), (MATRIX,), {}),
    (getattr, (MATRIX, "shape"), {}),
    (torch.get_device, (MATRIX,), {}),
    (torch.cat, ([torch.ones(0), IMAGES], 2), {}),
    (torch.cat, ([IMAGES_LAST, IMAGES_LAST], 1), {}),
    (torch.cat, ([IMAGES_LAST, IMAGES], 1), {}),
    *(
        (pool, (x, *arguments), {})
        for pool in (F.max_pool2d, F.avg_pool2d)
        for x in (IMAGES, IMAGES_LAST, IMAGES[..., ::2, :])
        for arguments in ((2,), (3, 1), ((3, 2), (2, 1), 1), (1,))
    ),
    *((F.adaptive_avg_pool2d, (x, size), {}) for x in (IMAGES, IMAGES_LAST) for size in (2, (1, 1), (None, 3))),
    *((F.batch_norm, (x, torch.ones(3), torch.ones(3)), {"training": True}) for x in (IMAGES, IMAGES_LAST)),
    *(
        (F.conv2d, (x, w, None, stride, padding), {"groups": groups})
        for x in (IMAGES, IMAGES_LAST, IMAGES[..., ::2], IMAGES.double())
        for groups in (1, 3)
        for shape in ((6, 3 // groups, 3, 3), (6, 3 // groups, 1, 1))
        for layout in (torch.contiguous_format, torch.channels_last)
        for w in (torch.ones(shape, dtype=x.dtype).contiguous(memory_format=layout),)
        for stride, padding in ((1, 0), ((2, 1), 1))
    ),
    *(
        (F.conv1d, (x, torch.ones(4, 4 // groups, 3)), {"padding": 2, "groups": groups})
        for x in (torch.ones(2, 4, 9), torch.ones(2, 9, 4).transpose(1, 2), torch.ones(2, 9, 8).transpose(1, 2)[:, :4])
        for groups in (1, 4)
    ),
]  # fmt: skip
SAME_FOR_EVERY_NAME = [
    ("multiply subtract divide arctan2 not_equal less less_equal greater greater_equal", (MATRIX, MATRIX)),
    (
        "multiply_ subtract_ divide_ arctan2_ not_equal_ less_ less_equal_ greater_ greater_equal_",
        (MATRIX, MATRIX),
    ),
    ("clip clip_", (MATRIX, 0, 1)),
    ("swapaxes swapdims moveaxis", (MATRIX, 0, 1)),
    (
        "dim ndimension numel nelement element_size is_floating_point is_complex is_signed is_inference get_device",
        (MATRIX,),
    ),
    ("size stride is_contiguous", (MATRIX,)),
]
EXAMPLES += [(("method", name), args, {}) for names, args in SAME_FOR_EVERY_NAME for name in names.split()]
EXAMPLES += [
    (getattr(torch, name), (MATRIX,), {})
    for name in "numel is_floating_point is_complex is_signed is_inference".split()
]


@pytest.mark.parametrize("op", {meta.canonical(example[0]): None for example in EXAMPLES}, ids=stable)
def test_examples(op):
    for example, args, kwargs in EXAMPLES:
        if meta.canonical(example) == op:
            for grad_mode in (True, False):
                given = metas((args, kwargs))
                ours = meta._tier1(op, *given, grad_mode)
                with torch.set_grad_enabled(grad_mode):
                    theirs = metas(fake.call(op, fake.rebuild(args, fresh_copy), kwargs))
                assert ours is not NotImplemented, given
                assert not meta._difference(ours, theirs), (given, meta._difference(ours, theirs))


def fresh_copy(value: Any) -> Any:
    """A tensor of the same metadata with the same values, safe to write into."""
    if not isinstance(value, torch.Tensor):
        return value
    copy = torch.empty_strided(value.shape, value.stride(), dtype=value.dtype)
    return copy.copy_(value.detach()).requires_grad_(value.requires_grad)


FOREACH_UNARY = [
    name for name in dir(torch) if name.startswith("_foreach_") and getattr(torch, name) in RULES
]
FOREACH = [
    (torch._foreach_add, ([1.0, 2],), {}),
    (torch._foreach_add_, ("same",), {"alpha": 0.5}),
    (torch._foreach_addcdiv, ("same", "same"), {}),
    (torch._foreach_addcdiv_, ("same", "same", [0.1, 0.2]), {}),
    (torch._foreach_addcmul, ("same", "same", 2.0), {}),
    (torch._foreach_addcmul_, ("same", "same"), {"value": 0.5}),
    (torch._foreach_lerp, ("same", "same"), {}),
    (torch._foreach_lerp_, ("same", 0.1), {}),
    (torch._foreach_copy_, ("same",), {}),
    (torch._foreach_maximum, ("same",), {}),
    (torch._foreach_minimum, ("same",), {}),
    *((getattr(torch, f"_foreach_{name}"), (2.0,), {}) for name in "sub mul div clamp_min clamp_max pow".split()),
    *((getattr(torch, f"_foreach_{name}_"), ("same",), {}) for name in "sub mul div clamp_min clamp_max pow".split()),
]  # fmt: skip
FOREACH += [
    (getattr(torch, name), (), {})
    for name in FOREACH_UNARY
    if getattr(torch, name) not in {row[0] for row in FOREACH}
]


@pytest.mark.slow
@pytest.mark.parametrize(("op", "operands", "kwargs"), FOREACH, ids=stable)
def test_foreach(op, operands, kwargs):
    same = [torch.ones(2, 3), torch.ones(4, 3).t()]
    operands = [same if operand == "same" else operand for operand in operands]
    for grad in (False, True):
        tensors = [x.clone().requires_grad_(grad) for x in same]
        ours = meta._tier1(op, metas((tensors, *operands)), kwargs, False)
        with torch.no_grad():
            theirs = metas(op(tensors, *operands, **kwargs))
        assert ours is not NotImplemented
        assert not meta._difference(ours, theirs)


def test_every_rule_is_compared_with_its_operator():
    compared = {op for info in database() for op, _ in forms(info)}
    compared |= {meta.canonical(row[0]) for row in (*EXAMPLES, *FOREACH)} | set(BINARY)
    assert not [op for op in RULES if op not in compared]


# --- constants and attributes -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "x",
    [torch.ones(2, 3, dtype=torch.float16), torch.ones((), dtype=torch.int32), torch.ones(0, 4)],
    ids=stable,
)
def test_questions_about_metadata(x):
    given = TensorMeta.of(x)
    for name in (
        "dim",
        "numel",
        "size",
        "stride",
        "element_size",
        "is_contiguous",
        "is_floating_point",
        "is_complex",
        "get_device",
    ):
        assert meta._tier1(("method", name), (given,), {}, True) == getattr(x, name)(), name
    for name in (
        "shape",
        "dtype",
        "device",
        "ndim",
        "requires_grad",
        "is_leaf",
        "layout",
        "is_cuda",
        "nbytes",
        "itemsize",
    ):
        assert meta._tier1(getattr, (given, name), {}, True) == getattr(x, name), name
    assert type(meta.infer(("method", "size"), (given,), {}, True)) is torch.Size


@pytest.mark.parametrize("name", ["T", "mT", "H", "mH", "real", "data"])
def test_attributes_that_are_tensors(name):
    for x in (torch.ones(2, 3), torch.ones(3, 2, requires_grad=True), torch.ones(2, 3).t()):
        assert meta._tier1(getattr, (TensorMeta.of(x), name), {}, True) == TensorMeta.of(getattr(x, name))


# --- tensors made from metadata, and views ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "real",
    [
        *STRIDED,
        torch.ones(3, requires_grad=True),
        torch.nn.Parameter(torch.ones(2)),
        torch.ones(2, requires_grad=True) + 1,
    ],
)
def test_metadata_makes_tensors_like_the_one_it_came_from(real):
    assert TensorMeta.of(TensorMeta.of(real).make_empty()) == TensorMeta.of(real)


def test_views_of_tensors_with_a_history():
    gradient = torch.ones(4, 6, requires_grad=True)
    for x in (gradient, gradient * 2, (gradient * 2).t()):
        for grad_mode in (True, False):
            for op, args in (
                (("method", "view"), (4, 6)),
                (operator.getitem, (0,)),
                (("method", "t"), ()),
                (("method", "expand"), (2, 4, 6)),
            ):
                with torch.set_grad_enabled(grad_mode):
                    try:
                        real = TensorMeta.of(fake.call(op, (x, *args), {}))
                    except RuntimeError:
                        continue
                assert meta.infer(op, (TensorMeta.of(x), *args), {}, grad_mode) == real
