"""The namespace that guard text is evaluated in. Native helpers where `minidynamo._tensor_guards` is built,
else Python.

All names begin with `___`, which no guarded local can, so no user name hides a helper.
"""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import torch

from minidynamo import static_access
from minidynamo.guards import py_leaves
from minidynamo.guards.code_reads import check_dispatch_code
from minidynamo.guards.state_reads import check_state_read
from minidynamo.literals import CONSTRUCTORS, REFS, same


def _load_native() -> Any:
    """The native helpers, None where they are not built or were built for another torch."""
    try:
        from minidynamo import _tensor_guards
    except ImportError:
        return None
    return _tensor_guards if _tensor_guards.torch_version == torch.__version__ else None


native = _load_native()

# Name in the text -> attribute of both `native` and `py_leaves`.
_LEAVES = {
    "___check_type_id": "check_type_id",
    "___check_obj_id": "check_obj_id",
    "___check_code_id": "check_code_id",
    "___check_tensors": "check_tensors",
    "___check_global_state": "check_global_state",
    "___attr": "static_attr",
    "___hasattr": "has_static_attr",
    "___len": "static_len",
    "___size": "tensor_size",
    "___stride": "tensor_stride",
    "___storage_offset": "tensor_storage_offset",
    "___check_storages": "check_storages",
}
# Helpers that exist in Python only.
_PYTHON: dict[str, Any] = {
    "___tensor_mismatch": py_leaves.tensor_mismatch,
    "___check_name": py_leaves.check_name,
    "___check_dict_keys": py_leaves.check_dict_keys,
    "___set_has": py_leaves.set_has,
    "___check_subclass": py_leaves.check_subclass,
    "___check_set_items": py_leaves.check_set_items,
    "___check_set_order": py_leaves.check_set_order,
    "___modules": sys.modules,
    "___iterator_len": py_leaves.iterator_len,
    "___weakref_alive": py_leaves.weakref_alive,
    "___weakref_target": py_leaves.weakref_target,
    "___same": same,
    "___type": type,
    "___dict_item": static_access.dict_item,
    "___dict_has": static_access.dict_has,
    "___dict_key": static_access.dict_key,
    "___ref": REFS,
    "___holds": bool,
    "___max": max,
    "___min": min,
    "___check_places": py_leaves.check_places,
    "___distinct": py_leaves.distinct,
    "___present": py_leaves.present,
    "___has_own": py_leaves.has_own,
    "___check_state_read": check_state_read,
    "___check_dispatch_code": check_dispatch_code,
    "___lacks_members": py_leaves.lacks_members,
    "___empty_members": py_leaves.empty_members,
    **CONSTRUCTORS,
}
_TORCH_CONSTANTS = SimpleNamespace(
    **{
        name: value
        for name, value in vars(torch).items()
        if type(value) in (torch.dtype, torch.layout, torch.memory_format)
    }
)

native_helpers: dict[str, Any] = (
    {name: getattr(native, leaf) for name, leaf in _LEAVES.items()} if native else {}
)
python_helpers: dict[str, Any] = {name: getattr(py_leaves, leaf) for name, leaf in _LEAVES.items()}
_shared: dict[str, Any] = {**_PYTHON, "___torch": _TORCH_CONSTANTS, "___NotImplemented": NotImplemented}


def helpers(*, python: bool = False) -> dict[str, Any]:
    """A new namespace with every `___` helper. `python=True` leaves the native ones out."""
    return {**_shared, **python_helpers, **({} if python else native_helpers)}


def tensor_spec(tensor: Any) -> py_leaves.TensorSpec:
    """The literals of a TENSOR_MATCH (see `py_leaves.tensor_spec`)."""
    return native.tensor_spec(tensor) if native else py_leaves.tensor_spec(tensor)


def tensor_mismatch(tensor: object, *expected: Any) -> str:
    """The first difference from the expected metadata, '' for none (see `py_leaves.tensor_mismatch`)."""
    return py_leaves.tensor_mismatch(tensor, *expected)


def global_state() -> tuple[int, str]:
    """The literals of a GLOBAL_STATE guard now (see `py_leaves.global_state`)."""
    return native.global_state() if native else py_leaves.global_state()


iterator_len = py_leaves.iterator_len
has_own = py_leaves.has_own
check_subclass = py_leaves.check_subclass
storage_layout = py_leaves.storage_layout
storage_places = py_leaves.storage_places
sizes_text = py_leaves.sizes_text
