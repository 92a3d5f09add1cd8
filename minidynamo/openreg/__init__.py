"""A simulated accelerator, `openreg`: two devices on torch's PrivateUse1 key, whose memory and kernels are the CPU's.

Importing this package registers the device, as `torch.openreg` and as `torch_openreg`, the name under which programs know its
API. A process can have one PrivateUse1 device: import it in a process of its own where another one may be.

    torch.openreg.manual_seed(42)
    torch.randn(3, device="openreg:1")

`python -m minidynamo.openreg` shows what happens. docs/accelerators.md explains how to make a real device of it.
"""

# ruff: noqa: E402, F401 (the API; it needs the native module)

from __future__ import annotations

import sys

from . import load

_C = load.native()

from . import registration
from .amp import get_amp_supported_dtype, is_bf16_supported
from .devices import (
    _exchange_device,
    _maybe_exchange_device,
    current_device,
    device,
    device_count,
    device_of,
    get_device_capability,
    get_device_name,
    get_device_properties,
    is_available,
    set_device,
    synchronize,
)
from .lazy import _is_in_bad_fork, _lazy_init, init, is_initialized
from .memory import (
    empty_cache,
    max_memory_allocated,
    max_memory_reserved,
    mem_get_info,
    memory_allocated,
    memory_reserved,
    memory_stats,
    reset_accumulated_memory_stats,
    reset_peak_memory_stats,
)
from .random import (
    default_generators,
    get_rng_state,
    get_rng_state_all,
    initial_seed,
    manual_seed,
    manual_seed_all,
    seed,
    seed_all,
    set_rng_state,
    set_rng_state_all,
)
from .streams import Event, Stream, current_stream, default_stream, set_stream, stream


def __getattr__(name: str) -> bool:
    if name == "_initialized":  # torch.utils.checkpoint reads it before it keeps a device's random state
        return is_initialized()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


registration.register(sys.modules[__name__])
