"""The native helpers mean exactly what the Python ones mean."""

from __future__ import annotations

import collections
import contextlib
import functools
import itertools

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from minidynamo.guards import leaves, py_leaves

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning:torch", "ignore:.*(quantized|CSR|nested)")
needs_native = pytest.mark.skipif(leaves.native is None, reason="the native tensor guards are not built")


class Plain(torch.Tensor):
    pass


class Functional(torch.Tensor):
    calls = 0

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        cls.calls += 1
        return super().__torch_function__(func, types, args, kwargs or {})


class Dispatching(torch.Tensor):
    @staticmethod
    def __new__(cls, elem, **options):
        return torch.Tensor._make_wrapper_subclass(cls, elem.size(), dtype=elem.dtype, **options)

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        raise AssertionError("user code ran")


def described():
    base = torch.randn(4, 6)
    yield from (
        base,
        torch.randn(4, 6),
        base.t(),
        base[1:, ::2],
        base[0],
        base[0, 0],
        torch.empty(0),
        torch.empty(3, 0),
    )
    for dtype in (
        torch.float64,
        torch.float16,
        torch.bfloat16,
        torch.int64,
        torch.uint8,
        torch.bool,
        torch.complex64,
    ):
        yield torch.zeros(4, 6, dtype=dtype)
    yield torch.zeros(4, 6, requires_grad=True)
    yield torch.nn.Parameter(torch.zeros(4, 6))
    yield torch.nn.Parameter(torch.zeros(4, 6), requires_grad=False)
    yield torch.zeros(1, 3, 4, 4).to(memory_format=torch.channels_last)
    yield torch.zeros(4, 6, device="meta")
    yield torch.zeros(2, dtype=torch.complex64).conj()
    yield torch.zeros(2, dtype=torch.complex64).conj().imag
    yield torch.zeros(1, 6).expand(4, 6)
    yield torch.zeros(4, 6).as_subclass(Plain)
    yield torch.zeros(4, 6).as_subclass(Functional)
    yield torch.quantize_per_tensor(torch.zeros(4, 6), 0.1, 0, torch.qint8)
    yield torch.zeros(4, 6, requires_grad=True) * 1
    yield Dispatching(torch.zeros(4, 6))  # (its own metadata: what is in it is not asked)
    with torch.inference_mode():
        yield torch.zeros(4, 6)


def indescribable():
    yield torch.eye(3).to_sparse()
    yield torch.eye(3).to_sparse_csr()
    yield torch.nested.nested_tensor([torch.zeros(2), torch.zeros(3)])
    yield torch.zeros(2, 3).to_mkldnn()


NO_TENSORS = [None, 1, 1.0, "x", [torch.zeros(1)], torch.float32, torch.Tensor, torch.Size([1]), object()]


class Mode(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


CONTEXTS = {
    "plain": contextlib.nullcontext,
    "no_grad": torch.no_grad,
    "inference": torch.inference_mode,
    "autocast": lambda: torch.autocast("cpu"),
    "autocast float16": lambda: torch.autocast("cpu", dtype=torch.float16),
    "autocast without cache": lambda: torch.autocast("cpu", cache_enabled=False),
    "torch function mode": lambda: torch.device("cpu"),
    "torch function off": torch._C.DisableTorchFunctionSubclass,
    "all torch function off": torch._C.DisableTorchFunction,
    "dispatch mode": Mode,
}


@pytest.fixture(params=CONTEXTS)
def context(request):
    return CONTEXTS[request.param]


def outcome(leaf, *args):
    """The value of a helper, or the exception's type."""
    try:
        return leaf(*args)
    except Exception as error:
        return type(error)


@needs_native
def test_specs_and_checks_agree_in_every_context(context):
    native = leaves.native
    everything = [*described(), *NO_TENSORS]
    specs = {py_leaves.tensor_spec(tensor) for tensor in described()}
    with context():
        for value in everything:
            spec = outcome(py_leaves.tensor_spec, value)
            assert outcome(native.tensor_spec, value) == spec
            if type(spec) is tuple:
                specs.add(spec)
        for value, spec in itertools.product(everything, specs):
            verdict = py_leaves.check_tensors(value, *spec)
            assert native.check_tensors(value, *spec) is verdict
            assert native.leaf_check(spec, value) is verdict
            assert (py_leaves.tensor_mismatch(value, *spec) == "") is verdict


@needs_native
def test_specs_of_different_tensors_differ():
    specs = [leaves.native.tensor_spec(tensor) for tensor in described()]
    assert len(set(specs)) == len(specs) - 2  # two plain ones, and two that require grad, are alike


@pytest.mark.parametrize("module", [py_leaves, pytest.param(leaves.native, marks=needs_native)])
def test_tensors_without_plain_metadata_mismatch_and_cannot_be_described(module):
    spec = py_leaves.tensor_spec(torch.zeros(2))
    for tensor in indescribable():
        own_type = (id(type(tensor)), *spec[1:])
        assert module.check_tensors(tensor, *own_type) is False
        with pytest.raises(ValueError, match="guard its type and its parts instead"):
            module.tensor_spec(tensor)
    with pytest.raises(TypeError, match="needs a tensor, not int"):
        module.tensor_spec(1)


@needs_native
def test_a_wrapper_whose_sizes_are_asked_of_its_class_cannot_be_described():
    wrapper = Dispatching(torch.zeros(2), dispatch_sizes_strides_policy="sizes")
    spec = leaves.native.tensor_spec(Dispatching(torch.zeros(2)))
    assert leaves.native.check_tensors(wrapper, *spec) is False
    with pytest.raises(ValueError, match="__torch_dispatch__"):
        leaves.native.tensor_spec(wrapper)


@pytest.mark.parametrize("module", [py_leaves, pytest.param(leaves.native, marks=needs_native)])
def test_functorch_wrappers_mismatch(module):
    spec = module.tensor_spec(torch.zeros(2))
    verdicts = []

    def inside(x):
        verdicts.append(module.check_tensors(x, *spec))
        with pytest.raises(ValueError, match="functorch"):
            module.tensor_spec(x)
        return x.sum()

    torch.vmap(inside)(torch.zeros(3, 2))
    torch.func.grad(inside)(torch.zeros(2))
    assert verdicts == [False, False]


@pytest.mark.parametrize("module", [py_leaves, pytest.param(leaves.native, marks=needs_native)])
def test_free_dimensions_and_odd_literals(module):
    tensor = torch.zeros(4, 6)
    type_id, *middle, sizes, strides = module.tensor_spec(tensor)
    assert module.check_tensors(tensor, type_id, *middle, (None, 6), (None, 1))
    assert not module.check_tensors(tensor, type_id, *middle, (None, 7), strides)
    assert not module.check_tensors(tensor, type_id, *middle, (None,), strides)
    assert not module.check_tensors(3, id(int), *middle, sizes, strides)
    assert not module.check_tensors(tensor, 2**80, *middle, sizes, strides)
    assert not module.check_tensors(tensor, -1, *middle, sizes, strides)


@pytest.mark.parametrize("module", [py_leaves, pytest.param(leaves.native, marks=needs_native)])
def test_a_torch_function_subclass_is_not_asked(module):
    tensor = torch.zeros(4, 6).as_subclass(Functional)
    Functional.calls = 0
    assert module.check_tensors(tensor, *module.tensor_spec(tensor))
    assert module.tensor_size(tensor, 1) == 6
    assert outcome(module.static_attr, tensor, "shape") is AttributeError
    assert Functional.calls == 0


@needs_native
def test_the_leaf_of_the_c_core_refuses_bad_specs():
    good = leaves.native.tensor_spec(torch.zeros(2))
    for spec in ((), good[:6], (*good[:2], "float31", *good[3:]), (*good[:3], "nowhere", *good[4:]), [*good]):
        with pytest.raises((TypeError, ValueError)):
            leaves.native.leaf_check(spec, torch.zeros(2))
    free = (*good[:5], (None,), (1,))
    assert leaves.native.leaf_check(free, torch.zeros(7)) and not leaves.native.leaf_check(
        free, torch.zeros(7, 1)
    )


@needs_native
def test_global_state_agrees_and_tells_contexts_apart():
    seen = {}
    for name, context in CONTEXTS.items():
        with context():
            state = leaves.native.global_state()
            assert state == py_leaves.global_state(), name
            assert leaves.native.check_global_state(*state) and py_leaves.check_global_state(*state)
        seen[name] = state
    here = leaves.native.global_state()
    for name, state in seen.items():
        assert leaves.native.check_global_state(*state) is (state == here)
        assert (py_leaves.global_state_mismatch(*state) == "") is (state == here), name
    assert len(set(seen.values())) == len(seen)


@contextlib.contextmanager
def restored(getter, setter, value):
    before = getter()
    setter(value)
    try:
        yield
    finally:
        setter(before)


@needs_native
@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            functools.partial(restored, torch.get_default_dtype, torch.set_default_dtype, torch.float64),
            "default dtype float32 -> float64",
        ),
        (
            functools.partial(
                restored,
                torch.are_deterministic_algorithms_enabled,
                torch.use_deterministic_algorithms,
                True,
            ),
            "deterministic algorithms off -> on",
        ),
        (torch.no_grad, "grad mode on -> off"),
        (lambda: torch.autocast("cpu"), "autocast cache off -> on; autocast on cpu off -> on"),
    ],
)
def test_global_state_changes_are_told(change, words):
    before = leaves.global_state()
    with change():
        assert not leaves.native.check_global_state(*before)
        assert leaves.native.global_state() == py_leaves.global_state()
        assert py_leaves.global_state_mismatch(*before) == words


@needs_native
def test_functorch_shows_in_the_state():
    before = leaves.global_state()
    states = []
    torch.vmap(lambda x: (states.append((leaves.native.global_state(), py_leaves.global_state())), x)[1])(
        torch.zeros(2)
    )
    assert states[0][0] == states[0][1] != before


def test_which_tensors_share_storages():
    """Both leaves agree on every arrangement of a few views and tensors."""
    base, other = torch.arange(6.0), torch.arange(6.0)
    made = [base, base[2:], base.view(torch.int32)[3:], other, other[1:], torch.zeros(0)]
    triples = [(a, b, c) for a in made for b in made for c in made]
    layouts = [py_leaves.storage_layout(triple) for triple in triples]
    for triple, layout in zip(triples, layouts):
        assert leaves.native.check_storages(triple, layout) and py_leaves.check_storages(triple, layout)
    for triple in triples[::7]:
        for layout in {*layouts}:
            found = leaves.native.check_storages(triple, layout)
            assert found is py_leaves.check_storages(triple, layout), (triple, layout)
    assert leaves.native.check_storages((base,), ()) is False
    for bad in (((3,), ((0, 0),)), ((base,), (0,)), (base, ((0, 0),)), ((base,), ((0,),))):
        with pytest.raises(TypeError):
            leaves.native.check_storages(*bad)


def test_hooks_on_saved_tensors_show_in_the_state():
    before = leaves.global_state()
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
        assert leaves.native.global_state() == py_leaves.global_state() != before
        assert py_leaves.global_state_mismatch(*before) == "hooks on saved tensors off -> on"
    assert leaves.global_state() == before


def test_autocast_dtypes_are_told():
    with torch.autocast("cpu"):
        bits, dtype = leaves.global_state()
    with torch.autocast("cpu", dtype=torch.float16):
        assert py_leaves.global_state_mismatch(bits, dtype) == "autocast dtype on cpu bfloat16 -> float16"


# ---------------------------------------------------------------------------------------- plain objects


class Meta(type):
    on_meta = 1

    @property
    def computed(cls):
        raise AssertionError("user code ran")

    shadowed = property(lambda cls: 1)


class Descriptor:
    def __get__(self, obj, cls):
        raise AssertionError("user code ran")


class DataDescriptor(Descriptor):
    def __set__(self, obj, value):
        raise AssertionError("user code ran")


class Base(metaclass=Meta):
    constant = 1
    plain = Descriptor()
    data = DataDescriptor()
    overridden = Descriptor()

    def method(self):
        raise AssertionError("user code ran")

    @property
    def prop(self):
        raise AssertionError("user code ran")

    @classmethod
    def make(cls):
        raise AssertionError("user code ran")

    @staticmethod
    def free():
        raise AssertionError("user code ran")

    def __getattr__(self, name):
        raise AssertionError("user code ran")


class Slots:
    __slots__ = ("filled", "empty")

    def __init__(self):
        self.filled = 5


class Named(collections.namedtuple("Named", "a b")):
    pass


def objects():
    made = Base()
    made.__dict__ |= {"own": 1, "overridden": 2, "data": 3, "constant": 4}
    yield from (
        made,
        Base(),
        Base,
        Slots(),
        Slots,
        Named(1, 2),
        torch,
        torch.nn.Linear(2, 2),
        torch.nn.Linear,
    )
    yield from (objects, len, "text", 5, None, type, functools.partial(len, "a"), made.method, torch.zeros(2))
    yield from (
        collections.OrderedDict(a=1),
        [1],
        {1: 2},
        {1},
        frozenset({1}),
        range(3),
        b"a",
        bytearray(b"ab"),
    )
    yield from (collections.deque([1, 2]), torch.Size([1, 2]), property(len), Meta, object())


NAMES = [
    "own",
    "overridden",
    "data",
    "plain",
    "constant",
    "method",
    "prop",
    "make",
    "free",
    "nothing",
    "filled",
    "empty",
]
NAMES += [
    "__dict__",
    "__class__",
    "__name__",
    "__module__",
    "__doc__",
    "__code__",
    "on_meta",
    "computed",
    "shadowed",
]
NAMES += [
    "weight",
    "_parameters",
    "forward",
    "a",
    "nn",
    "func",
    "__self__",
    "__mro__",
    "shape",
    "maxlen",
    "training",
]


@needs_native
def test_static_access_agrees():
    for obj in objects():
        assert outcome(leaves.native.static_len, obj) == outcome(py_leaves.static_len, obj)
        for name in NAMES:
            expected = outcome(py_leaves.static_attr, obj, name)
            found = outcome(leaves.native.static_attr, obj, name)
            same = found is expected or type(found) is type(expected) and found == expected
            assert same, (obj, name, found, expected)
            assert leaves.native.has_static_attr(obj, name) is py_leaves.has_static_attr(obj, name)


@needs_native
def test_tensor_numbers_agree():
    values = [*described(), *indescribable(), *NO_TENSORS]
    for value, index in itertools.product(values, (-3, -1, 0, 1, 5)):
        for name in ("tensor_size", "tensor_stride"):
            native, python = (outcome(getattr(m, name), value, index) for m in (leaves.native, py_leaves))
            failed = [isinstance(out, type) for out in (native, python)]
            assert native == python or all(failed), (value, index, name)
    for value in described():
        native, python = (outcome(m.tensor_storage_offset, value) for m in (leaves.native, py_leaves))
        assert native == python and isinstance(native, type) is (type(value) is Dispatching)


@needs_native
def test_identity_helpers_agree():
    ids = [id(int), id(objects), id(objects.__code__), id(None), 0, -1, 2**70]
    for obj in [5, int, objects, None, len, Base]:
        for name in ("check_type_id", "check_obj_id", "check_code_id"):
            native, python = getattr(leaves.native, name), getattr(py_leaves, name)
            assert [native(obj, i) for i in ids] == [python(obj, i) for i in ids]


@needs_native
def test_native_helpers_check_their_arguments():
    for name in (
        "check_type_id",
        "check_tensors",
        "check_global_state",
        "static_attr",
        "tensor_size",
        "leaf_check",
    ):
        with pytest.raises(TypeError, match=f"{name} takes"):
            getattr(leaves.native, name)()
    with pytest.raises(TypeError, match="an attribute name is a str"):
        leaves.native.static_attr(1, 2)


def test_helpers_are_native_where_possible():
    for name, helper in leaves.native_helpers.items():
        assert leaves.helpers()[name] is helper
        assert leaves.helpers(python=True)[name] is leaves.python_helpers[name] is not helper
    assert all(name.startswith("___") for name in leaves.helpers())
