"""Any Python value as a tree of plain data in which two values are equal exactly when a program could not tell them apart.

Objects with identity are numbered at the first visit, so the trees also compare aliasing: which places hold one object, and which
tensors share memory.
"""

from __future__ import annotations

import math
import struct
import types
from collections.abc import Callable
from typing import Any

import torch

from minidynamo.static_access import instance_dict

ATOMS = (
    type(None),
    bool,
    str,
    bytes,
    type(Ellipsis),
    torch.dtype,
    torch.device,
    torch.layout,
    torch.memory_format,
)


class Describer:
    """One numbering; values that are to be compared with respect to aliasing go through one describer in the same order."""

    def __init__(self) -> None:
        self._numbers: dict[int, int] = {}
        self._storages: dict[int, int] = {}
        self._alive: list[object] = []

    def __call__(self, value: Any) -> Any:
        describe = TABLE.get(type(value), _object)
        if describe is _atom:
            return type(value).__name__, repr(value)
        if issubclass(type(value), torch.Tensor):  # not isinstance: that may run the program's code
            describe = _tensor
        elif issubclass(type(value), type) or describe is _name:
            return type(value).__name__, value.__name__
        number = self._numbers.get(id(value))
        if number is not None:
            return "same", number
        if not is_constant(value):
            self._numbers[id(value)] = len(self._numbers)
            self._alive.append(value)
        return describe(self, value)

    def storage(self, tensor: torch.Tensor) -> int:
        """The number of the tensor's memory."""
        storage = tensor.untyped_storage()
        self._alive.append(storage)
        return self._storages.setdefault(storage._cdata, len(self._storages))


def is_constant(value: Any) -> bool:
    """Immutable through and through: the compiler may share it, so its identity says nothing."""
    if isinstance(value, (tuple, frozenset)):
        return all(is_constant(item) for item in value)
    return type(value) in (*ATOMS, int, float, complex, range, slice)


def _float(describer: Describer, value: float) -> Any:
    return "float", "nan" if math.isnan(value) else struct.pack("<d", value)


def _complex(describer: Describer, value: complex) -> Any:
    return "complex", _float(describer, value.real), _float(describer, value.imag)


def _items(describer: Describer, value: Any) -> Any:
    return type(value).__name__, [describer(item) for item in value]


def _dict(describer: Describer, value: dict[Any, Any]) -> Any:
    return type(value).__name__, [(describer(key), describer(item)) for key, item in value.items()]


def _set(describer: Describer, value: Any) -> Any:
    return type(value).__name__, sorted(repr(describer(item)) for item in value)


def _cell(describer: Describer, value: types.CellType) -> Any:
    try:
        return "cell", describer(value.cell_contents)
    except ValueError:
        return "cell", "empty"


def _function(describer: Describer, value: types.FunctionType) -> Any:
    parts = (value.__closure__ or (), value.__defaults__, value.__kwdefaults__)
    return "function", value.__qualname__, value.__code__.co_firstlineno, [describer(part) for part in parts]


def _method(describer: Describer, value: Any) -> Any:
    return "method", value.__name__, describer(value.__self__)


def _iterator(describer: Describer, value: Any) -> Any:
    kind, args, *state = value.__reduce__()
    return type(value).__name__, kind.__name__, describer(args), describer(tuple(state))


def _atom(describer: Describer, value: Any) -> Any:
    raise AssertionError


def _name(describer: Describer, value: Any) -> Any:
    raise AssertionError


def _object(describer: Describer, value: Any) -> Any:
    return type(value).__qualname__, describer(instance_dict(value))


def _tensor(describer: Describer, value: torch.Tensor) -> Any:
    """Everything but the address: the data bit for bit (nan is nan), the layout, autograd's view of it."""
    plain = value.detach()
    facts: list[Any] = [
        type(value).__name__,
        str(value.dtype),
        str(value.device),
        tuple(value.shape),
        str(value.layout),
    ]
    facts += [
        value.requires_grad,
        value.is_leaf,
        type(value.grad_fn).__name__,
        value.is_conj(),
        value.is_neg(),
    ]
    if hasattr(type(value), "__tensor_flatten__"):  # a wrapper: its data are those of the tensors in it
        facts += [
            value.stride(),
            value.storage_offset(),
            describer.storage(value),
            describer(instance_dict(value)),
        ]
    elif value.layout is torch.strided and value.device.type != "meta":
        facts += [value.stride(), value.storage_offset(), describer.storage(value)]
        facts.append([_number(x) for x in plain.resolve_conj().resolve_neg().reshape(-1).tolist()])
    if value.is_leaf and value.grad is not None:
        facts.append(("grad", describer(value.grad)))
    return facts


def _number(value: Any) -> Any:
    return repr(value)


TABLE: dict[type, Callable[[Describer, Any], Any]] = {
    **dict.fromkeys(ATOMS, _atom),
    **dict.fromkeys((types.BuiltinFunctionType, types.ModuleType), _name),
    int: lambda d, v: ("int", v if v.bit_length() < 64 else hex(v)),
    float: _float,
    complex: _complex,
    **dict.fromkeys((tuple, list, torch.Size, range), _items),
    slice: lambda d, v: ("slice", d(v.start), d(v.stop), d(v.step)),
    dict: _dict,
    set: _set,
    frozenset: _set,
    types.CellType: _cell,
    types.FunctionType: _function,
    types.MethodType: _method,
    types.CodeType: lambda d, v: ("code", v.co_qualname, v.co_firstlineno),
    **dict.fromkeys(
        map(type, (iter(()), iter([]), iter(range(0)), iter(""), reversed([]), enumerate(()), zip())),
        _iterator,
    ),
}


def describe(*values: Any) -> Any:
    """The description of values as one structure."""
    describer = Describer()
    return [describer(value) for value in values]
