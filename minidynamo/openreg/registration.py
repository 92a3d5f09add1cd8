"""Making the loaded device known to torch by name, and to programs that look for `torch_openreg`."""

from __future__ import annotations

import atexit
import importlib.util
import sys
from types import ModuleType

import torch

from .load import NAME

ALIAS = "torch_openreg"
TENSOR_METHODS = {"for_tensor": True, "for_module": True, "for_packed_sequence": True, "for_storage": True}


def register(package: ModuleType) -> None:
    """Name the device, hang `package` on torch as its module, give tensors, modules and storages their methods (`.openreg()`)."""
    torch.utils.rename_privateuse1_backend(NAME)
    torch._register_device_module(NAME, package)
    atexit.register(package._C._finish_autograd)
    torch.utils.generate_methods_for_privateuse1_backend(**TENSOR_METHODS)
    if ALIAS not in sys.modules and importlib.util.find_spec(ALIAS) is None:
        add_alias(package)


def add_alias(package: ModuleType) -> None:
    """`torch_openreg`, `torch_openreg._C`, `torch_openreg.openreg` and its modules, as the very modules of `package`."""
    alias = ModuleType(ALIAS, f"The API of {package.__name__} under the name that programs know.")
    alias.__dict__.update(_C=package._C, openreg=package)
    sys.modules[ALIAS] = alias
    for name, module in list(sys.modules.items()):
        if name == package.__name__ or name.startswith(f"{package.__name__}."):
            sys.modules[f"{ALIAS}.{NAME}{name[len(package.__name__) :]}"] = module
    sys.modules[f"{ALIAS}._C"] = package._C
