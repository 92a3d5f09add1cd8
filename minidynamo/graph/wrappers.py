"""Wrappers of other tensors (classes with `__tensor_flatten__` and `__torch_dispatch__`): what the trace knows of one is a fake of it,
a wrapper of the same class around fake tensors. Operators on it run the class's own code on fakes, as torch.compile does; only code
that can be seen to compute and nothing else gets there (`dispatch_code.py`).
"""

from __future__ import annotations

from typing import Any

import torch

from ..literals import is_literal, literal
from ..static_access import instance_dict, is_subtype, type_lookup
from . import fake
from .meta_value import MetaError, MutatesMeta, NeedsData, Result, TensorMeta, Unknown

PLAIN_DISPATCH = type_lookup(torch.Tensor, "__torch_dispatch__")
METHODS = ("__tensor_flatten__", "__tensor_unflatten__")

_met = False


class NoWrapper(Exception):
    """Why a tensor is not followed as a wrapper."""


class WrapperMeta:
    """What is known of a wrapper: its fake. An operator in place changes the fake, as the real one. Compared by identity."""

    __slots__ = ("fake",)

    def __init__(self, made: torch.Tensor) -> None:
        global _met
        _met = True
        self.fake = made

    def __repr__(self) -> str:
        return f"{type(self.fake).__name__}{self.shape_text}"

    @property
    def cls(self) -> type:
        """Its class."""
        return type(self.fake)

    @property
    def outer(self) -> TensorMeta:
        """Its own metadata, as it is now."""
        with torch._C.DisableTorchFunctionSubclass():
            return TensorMeta.of(self.fake)

    @property
    def dtype(self) -> torch.dtype:
        """The type of its elements."""
        return self.outer.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """Its sizes."""
        return self.outer.shape

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.outer.shape)

    @property
    def requires_grad(self) -> bool:
        """Whether autograd records what is done with it."""
        return self.outer.requires_grad

    @property
    def is_parameter(self) -> bool:
        """Whether it says that it is a parameter."""
        return bool((instance_dict(self.fake) or {}).get("_is_param", False))

    @property
    def shape_text(self) -> str:
        """Its sizes for people: `(2, 3)`."""
        return str(self.shape)

    def guarded(self) -> tuple[Any, ...]:
        """What tells it from inputs that cannot be the same object."""
        meta = self.outer
        return self.cls, meta.dtype, meta.device, meta.shape, meta.stride, meta.requires_grad


def is_wrapper_class(cls: type) -> bool:
    """A class with `__torch_dispatch__` and the two methods of traceable wrappers; nothing of it is run."""
    return (
        is_subtype(cls, torch.Tensor)
        and type_lookup(cls, "__torch_dispatch__") is not PLAIN_DISPATCH
        and all(type_lookup(cls, name) is not None for name in METHODS)
    )


def parts(value: torch.Tensor) -> tuple[list[str], dict[str, Any]]:
    """The names of its inner tensors, and its other attributes, all constants. Raises NoWrapper where that is not all there is.

    The class's `__tensor_flatten__` says which are the inner tensors; what else it says follows from the attributes.
    """
    members = instance_dict(value)
    try:
        names, context = value.__tensor_flatten__()  # type: ignore[attr-defined]
        names = list(names)
    except Exception as error:
        raise NoWrapper(f"__tensor_flatten__ raises {type(error).__name__}") from error
    if members is None or not all(type(name) is str and name in members for name in names):
        raise NoWrapper("an inner tensor is no attribute of the instance")
    others = {name: item for name, item in members.items() if name not in names}
    for name, item in others.items():
        if not is_literal(item):
            raise NoWrapper(f"its attribute {name} is a {type(item).__name__}")
    for name in names:
        if not isinstance(members[name], torch.Tensor):
            raise NoWrapper(f"its attribute {name} is no tensor")
        if type(members[name]) in (torch.Tensor, torch.nn.Parameter) and instance_dict(members[name]):
            raise NoWrapper(f"its inner tensor {name} has attributes")  # (a fake has none of them)
    described(context)
    return names, others


def described(value: Any) -> str:
    """A context as text. Raises NoWrapper for one that holds other things than constants."""
    kind = type(value)
    if is_literal(value):
        return literal(value)
    if kind is dict:
        return str({described(key): described(item) for key, item in value.items()})
    if kind in (list, tuple, torch.Size):
        return f"{kind.__name__}{[described(item) for item in value]}"
    raise NoWrapper(f"its context holds a {kind.__name__}")


def shown(value: torch.Tensor) -> tuple[Any, ...]:
    """Everything about a tensor, wrapper or not, that does not depend on data. Raises NoWrapper."""
    with torch._C.DisableTorchFunctionSubclass():
        if not is_wrapper_class(type(value)):
            offset = value.storage_offset() if value.layout is torch.strided else 0
            return TensorMeta.of(value), offset
        names, others = parts(value)
        context = described(value.__tensor_flatten__()[1])  # type: ignore[attr-defined]
        inner = tuple((name, shown(instance_dict(value)[name])) for name in names)  # type: ignore[index]
        constants = tuple((name, literal(others[name])) for name in sorted(others))
        return type(value), TensorMeta.of(value), value.storage_offset(), context, constants, inner


def faked(value: torch.Tensor) -> WrapperMeta:
    """A new fake of a real wrapper. Raises NoWrapper where that is not what the real one is."""
    from torch._subclasses.fake_tensor import FakeTensorConverter

    try:
        with fake.undisturbed(torch.is_grad_enabled(), ()):
            made = FakeTensorConverter().from_real_tensor(fake.mode(), value)
            alike = type(made) is type(value) and shown(made) == shown(value)
    except NoWrapper:
        raise
    except Exception as error:  # whatever the class's code raises on fakes
        raise NoWrapper(f"no fake of it can be made: {type(error).__name__}") from error
    if not alike:
        raise NoWrapper("a fake of it differs from it")
    return WrapperMeta(made)


def holds_wrapper(tree: Any) -> bool:
    """Whether a wrapper is among the arguments (cheap until the first one is met)."""
    if not _met:
        return False
    found = False

    def look(value: Any) -> Any:
        nonlocal found
        found |= type(value) is WrapperMeta
        return value

    fake.rebuild(tree, look)
    return found


def infer(
    op: Any, args: tuple[Any, ...], kwargs: dict[str, Any], grad_mode: bool, for_compiler: bool
) -> Result:
    """What an operator gives on wrappers, and on plain tensors beside them: `meta.infer`. Raises NeedsData, MutatesMeta, Unknown."""
    inputs: list[tuple[Any, torch.Tensor]] = []

    def make(value: Any) -> Any:
        if type(value) is WrapperMeta:
            tensor = value.fake
        elif type(value) is TensorMeta:
            tensor = value.make_empty()
        elif type(value).__module__.startswith("minidynamo"):
            raise Unknown(f"{fake.name_of(op)} on a wrapper and on what depends on data")
        else:
            return value
        inputs.append((value, tensor))
        return tensor

    try:
        with fake.undisturbed(grad_mode, (args, kwargs)), fake.mode():
            given = fake.rebuild(args, make), fake.rebuild(kwargs, make)
            before = [shown(tensor) for _, tensor in inputs]
            found = fake.call(op, *given)
            result = _described(op, found, inputs)
            if for_compiler:
                _check_views(op, found, [tensor for _, tensor in inputs])
            after = [shown(tensor) for _, tensor in inputs]
    except MetaError:
        raise
    except Exception as error:
        raise _failure(error, op) from None
    for (value, _), old, new in zip(inputs, before, after, strict=True):
        if old != new and not (type(value) is WrapperMeta and _without_history(old) == _without_history(new)):
            raise MutatesMeta(f"{fake.name_of(op)} changes the metadata of its argument")
    return result


def _without_history(one: tuple[Any, ...]) -> tuple[Any, ...]:
    """What `shown` tells of a wrapper but for its gradient."""
    cls, meta, *rest = one
    return cls, meta.shape, meta.stride, meta.dtype, meta.device, meta.layout, *rest


def _described(op: Any, result: Any, inputs: list[tuple[Any, torch.Tensor]]) -> Result:
    """The result with metadata for tensors; an argument that is given back is that argument's."""

    def describe(value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return fake.described_constant(op, value)
        known = next((given for given, tensor in inputs if tensor is value), None)
        if known is not None and (type(known) is WrapperMeta or TensorMeta.of(value) == known):
            return known
        if is_wrapper_class(type(value)):
            parts(value)
            return WrapperMeta(value)
        if not fake.is_plain(value):
            raise Unknown(f"{fake.name_of(op)} gives a {type(value).__name__}")
        return TensorMeta.of(value)

    return fake.rebuild(result, describe)


def _check_views(op: Any, result: Any, inputs: list[torch.Tensor]) -> None:
    """Raises Unknown for a result over the memory of a wrapper that AOTAutograd would get wrong: it makes views of inputs again by
    `as_strided` on the input, which only some classes do right, and it does not see views that are none of the wrapper itself."""
    wrappers = [tensor for tensor in inputs if is_wrapper_class(type(tensor))]

    def look(value: Any) -> Any:
        if not isinstance(value, torch.Tensor) or any(value is tensor for tensor in inputs):
            return value
        for base in wrappers:
            if memory(value) & memory(base) and not _is_strided_view(value, base):
                raise Unknown(
                    f"{fake.name_of(op)} gives a view of a wrapper that compilers cannot make again"
                )
        return value

    fake.rebuild(result, look)


def memory(value: torch.Tensor) -> set[int]:
    """The storages of a tensor, and of those inside of it."""
    with torch._C.DisableTorchFunctionSubclass():
        found = {value.untyped_storage()._cdata}
    if is_wrapper_class(type(value)):
        for name in parts(value)[0]:
            found |= memory((instance_dict(value) or {})[name])
    return found


def _is_strided_view(value: torch.Tensor, base: torch.Tensor) -> bool:
    """Whether `as_strided` on the base gives what the value is."""
    with torch.no_grad():
        try:
            made = base.as_strided(value.size(), value.stride(), value.storage_offset())
        except Exception:  # the class does not know the operator, which is the answer
            return False
        return type(made) is type(value) and _without_history(shown(made)) == _without_history(shown(value))


def _failure(error: Exception, op: Any) -> MetaError:
    from torch._subclasses import fake_tensor

    if isinstance(error, (fake_tensor.DataDependentOutputException, fake_tensor.DynamicOutputShapeException)):
        return NeedsData(f"{fake.name_of(op)} depends on the data of a tensor")
    return Unknown(f"{fake.name_of(op)} cannot run on fakes of wrappers: {type(error).__name__}: {error}")


def member(meta: WrapperMeta, name: str) -> Any:
    """What the instance has under a name: a constant, metadata for an inner tensor. Raises KeyError."""
    value = (instance_dict(meta.fake) or {})[name]
    if not isinstance(value, torch.Tensor):
        return value
    return WrapperMeta(value) if is_wrapper_class(type(value)) else TensorMeta.of(value)
