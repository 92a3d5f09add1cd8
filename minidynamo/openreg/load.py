"""Loading the native side, which registers the device with torch: once in a process, and only where the key is free."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import Any

import torch

NAME = "openreg"
UNNAMED = "privateuseone"  # what torch calls the key until a backend names it
MARK = re.compile(rb"minidynamo\.openreg for torch ([^\x00]+)\x00")


def native() -> Any:
    """The extension module. Nothing is registered when it raises.

    Raises ImportError when it was not built, or for another torch; RuntimeError when another backend has the key.
    """
    spec = importlib.util.find_spec("minidynamo.openreg._C")
    if spec is None or spec.origin is None:
        raise ImportError(
            "minidynamo.openreg is not built for this Python: run `make openreg` (it needs torch and a C++ compiler)"
        )
    built_for = version_built_for(Path(spec.origin))
    if built_for != torch.__version__:
        raise ImportError(
            f"minidynamo.openreg was built for torch {built_for}, and this is {torch.__version__}: run `make openreg`"
        )
    check_free()
    from . import _C

    return _C


def version_built_for(library: Path) -> str:
    """The torch that `library` was built for, read without loading it: the wrong one can crash the process."""
    found = MARK.search(library.read_bytes())
    return found[1].decode() if found else "of an unknown version"


def check_free() -> None:
    """Raises RuntimeError if another device has torch's PrivateUse1 key: by name, by hooks and kernels without a name."""
    taken = torch._C._get_privateuse1_backend_name()
    kernels = torch._C._dispatch_has_kernel_for_dispatch_key("aten::empty.memory_format", "PrivateUse1")
    if taken == UNNAMED and not kernels:
        return
    who = f"the backend {taken!r}" if taken != UNNAMED else "a backend without a name"
    raise RuntimeError(
        f"minidynamo.openreg cannot be registered: a process has one PrivateUse1 device, and {who} is it; "
        "import minidynamo.openreg in a process of its own"
    )
