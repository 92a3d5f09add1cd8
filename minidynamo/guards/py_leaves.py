"""The `___` helpers in Python: used where the native ones are not built, and the meaning that those must
have.

Every helper is total over any value or raises; a helper that raises counts as a failed guard. None runs user
code.
"""

from __future__ import annotations

import types
import weakref
from collections import OrderedDict
from typing import Any, TypeAlias

import torch

from minidynamo.literals import Ref, is_literal, same
from minidynamo.static_access import (
    dict_keys,
    has_static_attr,
    instance_dict,
    is_one_of,
    is_subtype,
    static_attr,
    static_len,
    tensor_size,
    tensor_storage_offset,
    tensor_stride,
    type_name,
    why_indescribable,
)

__all__ = [
    "has_static_attr",
    "static_attr",
    "static_len",
    "tensor_size",
    "tensor_storage_offset",
    "tensor_stride",
]  # leaves that are defined one layer below


def check_type_id(obj: object, type_id: int) -> bool:
    """type(obj) is exactly the type with this id."""
    return id(type(obj)) == type_id


def check_obj_id(obj: object, obj_id: int) -> bool:
    """obj is the object with this id (which is alive as long as the guard's entry is valid)."""
    return id(obj) == obj_id


def check_code_id(fn: object, code_id: int) -> bool:
    """fn is a plain Python function whose code object has this id."""
    return type(fn) is types.FunctionType and id(fn.__code__) == code_id


def check_name(obj: object, name: str) -> bool:
    """The `__name__` that obj keeps itself is this exact str."""
    value = static_attr(obj, "__name__")
    return type(value) is str and value == name


_ITERATORS: tuple[type, ...] = (type(iter(())), type(iter([])), type(iter(range(0))), type(iter("")))


def iterator_len(iterator: Any) -> int:
    """Elements left in an exact tuple, list, range or str iterator; -1 for anything else."""
    return iterator.__length_hint__() if is_one_of(type(iterator), _ITERATORS) else -1


def weakref_alive(ref: Any) -> bool:
    """ref is an exact weakref.ref whose object lives."""
    return type(ref) is weakref.ref and ref() is not None


def weakref_target(ref: Any) -> Any:
    """What an exact weakref.ref points to. Raises TypeError for anything else."""
    if type(ref) is not weakref.ref:
        raise TypeError("no weakref.ref")
    return ref()


def check_dict_keys(mapping: Any, expected: tuple[Any, ...]) -> bool:
    """mapping is a dict with exactly these keys in this order, compared as constants or by identity."""
    if dict.__len__(mapping) != len(expected):
        return False
    return all(map(same, dict_keys(mapping), expected))


_SETS = (set, frozenset)
_MRO = type.__dict__["__mro__"].__get__


def set_has(items: Any, element: object) -> bool:
    """items is an exact set or frozenset with this element."""
    return is_one_of(type(items), _SETS) and element in items


def check_subclass(cls: Any, base: int, expected: bool) -> bool:
    """cls is a class, and whether it has the class of that id among its bases is as expected; `__subclasscheck__` is not asked."""
    return is_subtype(type(cls), type) and any(id(each) == base for each in _MRO(cls)) is expected


def check_set_order(items: Any, expected: tuple[Any, ...]) -> bool:
    """items is an exact set or frozenset that iterates over exactly these elements in this order."""
    return is_one_of(type(items), _SETS) and len(items) == len(expected) and all(map(same, items, expected))


def check_set_items(items: Any, expected: tuple[Any, ...]) -> bool:
    """items is an exact set or frozenset of exactly these elements, whatever their order. Only elements that have a literal, or that
    are the object of a Ref, are looked up: no code of the user's runs.
    """
    if not is_one_of(type(items), _SETS) or len(items) != len(expected):
        return False
    wanted = {key: key for key in (x.resolve() if type(x) is Ref else x for x in expected)}
    ids = set(map(id, wanted))
    return all(
        id(element) in ids or is_literal(element) and element in wanted and same(element, wanted[element])
        for element in items
    )


# -------------------------------------------------------------------------------------------------- tensors

TensorSpec = tuple[int, int, str, str, bool, tuple[int | None, ...], tuple[int | None, ...]]


def tensor_spec(tensor: Any) -> TensorSpec:
    """The literals of a TENSOR_MATCH for this tensor now: type id, dispatch keys after thread-local
    include/exclude, dtype, device, `grad mode and requires_grad`, sizes, strides.

    Raises TypeError for no tensor, ValueError for a tensor whose metadata a guard cannot state:
    no strides, symbolic sizes, or a functorch wrapper. Of a wrapper of other tensors it is the outer metadata.
    """
    if not is_subtype(type(tensor), torch.Tensor):
        raise TypeError(f"tensor_spec needs a tensor, not {type_name(type(tensor))}")
    with torch._C.DisableTorchFunctionSubclass():
        why = why_indescribable(tensor, wrappers=True)
        if why is not None:
            raise ValueError(f"the tensor is {why}; guard its type and its parts instead")
        return (
            id(type(tensor)),
            _keyset(tensor),
            str(tensor.dtype).removeprefix("torch."),
            str(tensor.device),
            torch.is_grad_enabled() and tensor.requires_grad,
            tuple(tensor.size()),
            tuple(tensor.stride()),
        )


def _keyset(tensor: torch.Tensor) -> int:
    included = torch._C._dispatch_tls_local_include_set().raw_repr()
    excluded = torch._C._dispatch_tls_local_exclude_set().raw_repr()
    # DispatchKeySet subtraction keeps the backend bits (the low ones) of the left side.
    keys = torch._C._dispatch_keys(tensor).raw_repr() | included
    return keys & ~(excluded & ~_BACKEND_BITS)


_BACKEND_BITS = (1 << 16) - 1

# Parts of a spec, in order, in the words of messages.
SPEC_PARTS = ("type", "dispatch keys", "dtype", "device", "requires_grad", "size", "stride")


def check_tensors(
    obj: object,
    type_id: int,
    keyset: int,
    dtype: str,
    device: str,
    requires_grad: bool,
    sizes: tuple[int | None, ...],
    strides: tuple[int | None, ...],
) -> bool:
    """The tensor has exactly this metadata; None in sizes or strides admits any. False for no tensor."""
    if id(type(obj)) != type_id:
        return False
    try:
        spec = tensor_spec(obj)
    except (TypeError, ValueError):
        return False
    return (
        spec[1:5] == (keyset, dtype, device, requires_grad)
        and _fits(spec[5], sizes)
        and _fits(spec[6], strides)
    )


def _fits(actual: tuple[int | None, ...], expected: tuple[int | None, ...]) -> bool:
    return len(actual) == len(expected) and all(
        want is None or have == want for have, want in zip(actual, expected, strict=True)
    )


def tensor_mismatch(obj: object, *expected: Any) -> str:
    """Why `check_tensors(obj, *expected)` is False: the first part that differs (dispatch keys, which follow from device and
    requires_grad, come last); '' when it is True."""
    if id(type(obj)) != expected[0]:
        return f"type id {expected[0]} -> {type_name(type(obj))}"
    try:
        spec = tensor_spec(obj)
    except (TypeError, ValueError) as error:
        return str(error)
    _, keys, *others = zip(SPEC_PARTS, spec, expected, strict=True)
    for part, have, want in (*others, keys):
        if isinstance(want, tuple):
            if not _fits(have, want):  # type: ignore[arg-type]
                return f"{part} {sizes_text(want)} -> {sizes_text(have)}"  # type: ignore[arg-type]
        elif have != want:
            return f"{part} {_part_text(part, want)} -> {_part_text(part, have)}"
    return ""


def sizes_text(sizes: tuple[int | None, ...]) -> str:
    """`(4, 8)`; an admitted dimension is `*`."""
    inner = ", ".join("*" if size is None else str(size) for size in sizes)
    return f"({inner}{',' if len(sizes) == 1 else ''})"


def _part_text(part: str, value: object) -> str:
    if part == "dispatch keys":
        return keyset_text(value)  # type: ignore[arg-type]
    return str(value)


def keyset_text(keyset: int) -> str:
    """`{CPU, AutogradCPU}`."""
    text = torch._C._dispatch_keyset_to_string(torch._C.DispatchKeySet.from_raw_repr(keyset))
    return text.removeprefix("DispatchKeySet").replace("(", "{").replace(")", "}")


def storage_layout(tensors: tuple[Any, ...]) -> tuple[tuple[int, int], ...]:
    """Per tensor (number of its storage, distance in bytes from the first tensor of that storage).

    With sizes and strides this determines which elements of which tensors overlap. Raises TypeError for no
    tensor, ValueError for one without strides.
    """
    for tensor in tensors:
        tensor_spec(tensor)
        tensor_storage_offset(tensor)
    return _layout(tensors)


def _layout(tensors: tuple[Any, ...]) -> tuple[tuple[int, int], ...]:
    storages: dict[int, tuple[int, int]] = {}
    out = []
    with torch._C.DisableTorchFunctionSubclass():
        for tensor in tensors:
            start = tensor.storage_offset() * tensor.element_size()
            number, first = storages.setdefault(tensor.untyped_storage()._cdata, (len(storages), start))
            out.append((number, start - first))
    return tuple(out)


def lacks_members(value: object, names: tuple[str, ...]) -> bool:
    """None of the names is in the object's own dictionary; False for an object without one."""
    own = instance_dict(value)
    return own is not None and not any(name in own for name in names)


def empty_members(value: object, names: tuple[str, ...]) -> bool:
    """Each of the attributes, found statically, is an exact OrderedDict without elements."""
    return first_filled(value, names) is None


def first_filled(value: object, names: tuple[str, ...]) -> str | None:
    """The first of the attributes that is not so."""
    for name in names:
        try:
            found = static_attr(value, name)
        except AttributeError:
            return name
        if type(found) is not OrderedDict or len(found):
            return name
    return None


def present(value: object) -> bool:
    """Whatever it is: its path has been followed."""
    return True


def has_own(value: object, name: str) -> bool:
    """The attribute is in the instance's own dictionary. No code of the value's class runs."""
    members = instance_dict(value)
    return members is not None and name in members


def distinct(own: tuple[Any, ...], others: tuple[Any, ...]) -> bool:
    """The objects of `own` are different from each other and from those of `others`, which may repeat."""
    return shared_with(own, others) is None


def shared_with(own: tuple[Any, ...], others: tuple[Any, ...]) -> tuple[int, int] | None:
    """The first object of `own` that is met twice: its position, and where it was met before, counting through
    `(*others, *own)`. None when all differ."""
    seen = {id(value): position for position, value in enumerate(others)}
    for position, value in enumerate(own):
        before = seen.setdefault(id(value), len(others) + position)
        if before != len(others) + position:
            return position, before
    return None


def check_storages(tensors: tuple[Any, ...], expected: tuple[tuple[int, int], ...]) -> bool:
    """The tensors (whose metadata is guarded before) share storages, at the same distances, exactly as recorded."""
    return _layout(tensors) == expected


# (offset in elements, storage size in bytes, base: None or (sizes, strides, offset, dtype, requires_grad)).
Place: TypeAlias = tuple[int, int, tuple[Any, ...] | None]


def storage_places(tensors: tuple[Any, ...]) -> tuple[Place, ...]:
    """Where each tensor lies. Raises TypeError for no tensor, ValueError for one without strides."""
    for tensor in tensors:
        tensor_spec(tensor)
    return _places(tensors)


def _places(tensors: tuple[Any, ...]) -> tuple[Place, ...]:
    out: list[Place] = []
    with torch._C.DisableTorchFunctionSubclass():
        for tensor in tensors:
            base = tensor._base
            out.append(
                (
                    tensor.storage_offset(),
                    tensor.untyped_storage().nbytes(),
                    None if base is None else _base(base),
                )
            )
    return tuple(out)


def _base(base: torch.Tensor) -> tuple[Any, ...]:
    dtype = str(base.dtype).removeprefix("torch.")
    return tuple(base.size()), tuple(base.stride()), base.storage_offset(), dtype, base.requires_grad


def check_places(tensors: tuple[Any, ...], expected: tuple[Place, ...]) -> bool:
    """The tensors lie exactly where they were recorded."""
    return _places(tensors) == expected


# --------------------------------------------------------------------------------------------- global state

# Flags of the state word, lowest bit first, with their reading in the words of messages.
STATE_FLAGS = (
    "grad mode",
    "inference mode",
    "deterministic algorithms",
    "deterministic algorithms warn only",
    "deterministic fill of uninitialized memory",
    "__torch_function__ of subclasses",
    "all __torch_function__ switched off",
    "a __torch_function__ mode on the stack",
    "a __torch_dispatch__ mode on the stack",
    "a functorch transform",
    "hooks on saved tensors",
    "autocast cache",
    "autocast on cpu",
    "autocast on cuda",
    "autocast on the PrivateUse1 device",
)
# Autocast dtypes take four bits per device from here on: 1 + index in AUTOCAST_DTYPES, 0 where autocast is
# off.
AUTOCAST_SHIFT = 16
AUTOCAST_DTYPES = ("float16", "bfloat16", "float32", "float64")
_OTHER_DTYPE = 15


def _autocast_devices() -> tuple[str, str, str]:
    return "cpu", "cuda", torch._C._get_privateuse1_backend_name()


def global_state() -> tuple[int, str]:
    """The literals of a GLOBAL_STATE guard now: (flags and autocast dtypes, default dtype)."""
    included = torch._C._dispatch_tls_is_dispatch_key_included
    autocast = [torch.is_autocast_enabled(device) for device in _autocast_devices()]
    flags = (
        torch.is_grad_enabled(),
        torch.is_inference_mode_enabled(),
        torch.are_deterministic_algorithms_enabled(),
        torch.is_deterministic_algorithms_warn_only_enabled(),
        torch.utils.deterministic.fill_uninitialized_memory,  # type: ignore[attr-defined]
        torch._C._is_torch_function_enabled(),
        torch._C._is_torch_function_all_disabled(),
        torch._C._len_torch_function_stack() > 0,
        included(torch._C.DispatchKey.Python),
        included(torch._C.DispatchKey.FuncTorchDynamicLayerFrontMode),
        torch._C._autograd._top_saved_tensors_default_hooks(True) is not None,  # type: ignore[attr-defined]
        any(autocast) and torch.is_autocast_cache_enabled(),
        *autocast,
    )
    bits = sum(1 << i for i, flag in enumerate(flags) if flag)
    for i, device in enumerate(_autocast_devices()):
        if autocast[i]:
            bits |= _dtype_code(torch.get_autocast_dtype(device)) << (AUTOCAST_SHIFT + 4 * i)
    return bits, str(torch.get_default_dtype()).removeprefix("torch.")


def _dtype_code(dtype: torch.dtype) -> int:
    name = str(dtype).removeprefix("torch.")
    return 1 + AUTOCAST_DTYPES.index(name) if name in AUTOCAST_DTYPES else _OTHER_DTYPE


def check_global_state(bits: int, default_dtype: str) -> bool:
    """torch's global state is as recorded."""
    return global_state() == (bits, default_dtype)


def global_state_mismatch(bits: int, default_dtype: str) -> str:
    """What differs, in words: `grad mode on -> off`; '' when nothing does."""
    now, dtype = global_state()
    out = [
        f"{flag} {_on(bits >> i)} -> {_on(now >> i)}"
        for i, flag in enumerate(STATE_FLAGS)
        if (bits ^ now) >> i & 1
    ]
    for i, device in enumerate(_autocast_devices()):
        shift = AUTOCAST_SHIFT + 4 * i
        before, after = bits >> shift & 15, now >> shift & 15
        if before != after and before and after:
            out.append(f"autocast dtype on {device} {_dtype_name(before)} -> {_dtype_name(after)}")
    if dtype != default_dtype:
        out.append(f"default dtype {default_dtype} -> {dtype}")
    return "; ".join(out)


def _on(bit: int) -> str:
    return "on" if bit & 1 else "off"


def _dtype_name(code: int) -> str:
    return AUTOCAST_DTYPES[code - 1] if code <= len(AUTOCAST_DTYPES) else "another dtype"
