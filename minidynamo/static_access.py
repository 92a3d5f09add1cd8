"""Attribute, item and key reads that run no code of the user.

These are the meanings of the static steps of a `Source` path (guards may not run user code). The native
leaves in `native/` implement the same functions; a property test compares the two. `torch` is imported on
first use only.
"""

from __future__ import annotations

import types
from collections import OrderedDict, deque
from collections.abc import Iterable, Iterator
from typing import Any

from minidynamo.cache import instance_dict, is_subtype, type_lookup

__all__ = [
    "dict_has",
    "dict_item",
    "dict_key",
    "dict_keys",
    "has_static_attr",
    "instance_dict",
    "is_one_of",
    "is_subtype",
    "is_users_class",
    "static_attr",
    "static_len",
    "tensor_size",
    "tensor_storage_offset",
    "tensor_stride",
    "type_lookup",
    "type_name",
    "why_indescribable",
]

_HEAP, _IMMUTABLE = 0x200, 0x100
_MRO = type.__dict__["__mro__"].__get__
_QUALNAME = type.__dict__["__qualname__"].__get__
_MISSING = object()
_SLOT_DESCRIPTORS = (types.MemberDescriptorType, types.GetSetDescriptorType)


def type_name(cls: type) -> str:
    """`__qualname__` of a class, its metaclass not asked."""
    return str(_QUALNAME(cls))


def is_users_class(cls: type) -> bool:
    """A class statement made it: it can be changed. (Classes written in C are moving to the heap, and stay as they are there.)"""
    return cls.__flags__ & (_HEAP | _IMMUTABLE) == _HEAP


def is_one_of(cls: type, classes: Iterable[type]) -> bool:
    """Identity with one of `classes`; `in` would ask a metaclass for `==` or a hash."""
    for each in classes:
        if cls is each:
            return True
    return False


def static_attr(obj: object, name: str) -> Any:
    """The value of attribute `name`, found as `object.__getattribute__`/`type.__getattribute__` find it,
    unbound.

    Slots and the getset attributes of C types are read (of types with `__torch_function__`, whose getters may dispatch to it,
    `__dict__` only). Any other descriptor (function, property, classmethod, user descriptor) is
    returned as it is and never run. `__getattr__` and overridden `__getattribute__` are not consulted.

    Raises AttributeError when nothing is found.
    """
    cls = type(obj)
    found = type_lookup(cls, name, _MISSING)
    if is_one_of(type(found), _SLOT_DESCRIPTORS):
        return _read_slot(found, obj, cls, name)
    if issubclass(cls, type):
        if found is not _MISSING and _is_data_descriptor(found):
            return found
        value = type_lookup(obj, name, _MISSING)  # type: ignore[arg-type]
        if value is not _MISSING:
            return value
    elif found is _MISSING or not _has_slot(found, "__get__"):
        if found is _MISSING or not _is_data_descriptor(found):
            return object.__getattribute__(obj, name)
    elif not _is_data_descriptor(found):
        namespace = instance_dict(obj)
        if namespace is not None and name in namespace:
            return namespace[name]
    if found is _MISSING:
        raise AttributeError(f"type object has no attribute {name!r}")
    return found


def _read_slot(descriptor: Any, obj: object, cls: type, name: str) -> Any:
    if type(descriptor) is types.GetSetDescriptorType and name != "__dict__":
        if type_lookup(cls, "__torch_function__") is not None:
            raise AttributeError("a getter that dispatches to __torch_function__ is no static attribute")
    return object.__getattribute__(obj, name)  # a data descriptor of the type, so this runs its C getter


def has_static_attr(obj: object, name: str) -> bool:
    """Whether `static_attr` finds something."""
    try:
        static_attr(obj, name)
    except AttributeError:
        return False
    return True


def _has_slot(value: object, name: str) -> bool:
    return type_lookup(type(value), name, _MISSING) is not _MISSING


def _is_data_descriptor(value: object) -> bool:
    return _has_slot(value, "__set__") or _has_slot(value, "__delete__")


def static_len(obj: Any) -> int:
    """The number of elements of a list, tuple, dict, set, frozenset, str, bytes, range or deque, subclasses
    included.

    `__len__` of a subclass is not run. Raises TypeError for anything else.
    """
    for cls in _MRO(type(obj)):
        length = _LENGTHS.get(id(cls))
        if length is not None:
            return int(length(obj))
    raise TypeError("no builtin length")


_LENGTHS: dict[int, Any] = {
    id(cls): cls.__len__  # type: ignore[attr-defined]
    for cls in (list, tuple, dict, set, frozenset, str, bytes, bytearray, range, deque)
}


def dict_item(mapping: Any, key: object) -> Any:
    """`dict.__getitem__` without `__missing__` and without overrides of a subclass; KeyError when absent."""
    value = dict.get(mapping, key, _MISSING)
    if value is _MISSING:
        raise KeyError(key)
    return value


def dict_has(mapping: Any, key: object) -> bool:
    """`dict.__contains__`, overrides of a subclass ignored. TypeError when `mapping` is no dict."""
    return dict.__contains__(mapping, key)


def dict_keys(mapping: Any) -> Iterator[Any]:
    """The keys in the dict's own order. (An OrderedDict keeps its own: `move_to_end` does not touch the
    dict's.)
    """
    return OrderedDict.__iter__(mapping) if is_subtype(type(mapping), OrderedDict) else dict.__iter__(mapping)


def dict_key(mapping: Any, index: int) -> Any:
    """The key at position `index` of the iteration order. Raises IndexError."""
    if index >= 0:
        for position, key in enumerate(dict_keys(mapping)):
            if position == index:
                return key
    raise IndexError(index)


# ------------------------------------------------------------------------------------- numbers of a tensor


def why_indescribable(tensor: Any, wrappers: bool = False) -> str | None:
    """Why sizes and strides of a tensor cannot be stated, in the words of messages; None when they can.

    wrappers: those of a class with `__torch_dispatch__` can, which have sizes of their own, and no memory

    Call it with `__torch_function__` of subclasses switched off.
    """
    import torch

    keys = torch._C._dispatch_keys(tensor)
    if not wrappers and keys.has(torch._C.DispatchKey.Python):
        return "a tensor subclass with __torch_dispatch__"
    if torch._C._functorch.is_functorch_wrapped_tensor(tensor) or torch._is_functional_tensor(tensor):
        return "a functorch wrapper"
    if tensor.is_nested:
        return "a nested tensor"
    if tensor.layout is not torch.strided:
        return f"layout {tensor.layout}, which has no strides"
    if not all(type(size) is int for size in tensor.size()):
        return "symbolic sizes"
    return None


def _layout(tensor: Any) -> tuple[tuple[int, ...], tuple[int, ...], int]:
    import torch

    if not is_subtype(type(tensor), torch.Tensor):
        raise TypeError(f"{type_name(type(tensor))} is no tensor")
    with torch._C.DisableTorchFunctionSubclass():
        why = why_indescribable(tensor)
        if why is not None:
            raise TypeError(f"the tensor is {why}")
        return tuple(tensor.size()), tuple(tensor.stride()), int(tensor.storage_offset())


def tensor_size(tensor: Any, dim: int) -> int:
    """Size of one dimension. Raises TypeError for no tensor and for one without plain sizes, IndexError."""
    return _layout(tensor)[0][dim]


def tensor_stride(tensor: Any, dim: int) -> int:
    """One stride in elements. Raises like `tensor_size`."""
    return _layout(tensor)[1][dim]


def tensor_storage_offset(tensor: Any) -> int:
    """Offset in the storage, in elements. Raises like `tensor_size`."""
    return _layout(tensor)[2]
