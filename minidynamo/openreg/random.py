"""Level 2 of the chain: seeds and states of the devices' random number generators.

A device's generator gives the numbers that the CPU's gives for the same seed. `torch.manual_seed` seeds every device too.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch

from . import _C
from .devices import DeviceLike, current_device, device_count, device_index
from .lazy import init, when_initialized


def manual_seed(seed: int) -> None:
    """Seed the generator of the current device. ValueError for a seed that does not fit into 64 bits."""
    seed = int(seed)
    init()
    idx = current_device()
    default_generator = _C._get_default_generator(idx)
    default_generator.manual_seed(seed)


def manual_seed_all(seed: int) -> None:
    """Seed the generator of every device, when the devices start if they have not yet."""
    seed = int(seed)

    def seed_devices() -> None:
        for index in range(device_count()):
            _C._get_default_generator(index).manual_seed(seed)

    when_initialized("seed", seed_devices)


def generator_of(device: DeviceLike = None) -> torch.Generator:
    """The generator that the device (None: the current one) was born with."""
    init()
    return _C._get_default_generator(device_index(device))


def seed() -> int:
    """Seed the current device's generator with a number that nobody knows beforehand, and return it."""
    return generator_of().seed()


def seed_all() -> int:
    """Seed every device's generator with one number that nobody knows beforehand, and return it."""
    number = generator_of(0).seed()
    manual_seed_all(number)
    return number


def initial_seed() -> int:
    """The seed of the current device's generator."""
    return generator_of().initial_seed()


def get_rng_state(device: DeviceLike = "openreg") -> torch.Tensor:
    """The state of a device's generator, a byte tensor on the CPU."""
    return generator_of(device).get_state()


def set_rng_state(new_state: torch.Tensor, device: DeviceLike = "openreg") -> None:
    """Give a device's generator a state that get_rng_state returned."""
    generator_of(device).set_state(new_state)


def get_rng_state_all() -> list[torch.Tensor]:
    """The states of all devices' generators, by index."""
    return [get_rng_state(index) for index in range(device_count())]


def set_rng_state_all(new_states: Iterable[torch.Tensor]) -> None:
    """Give every device's generator its state from get_rng_state_all."""
    for index, state in enumerate(new_states):
        set_rng_state(state, index)


def default_generators() -> tuple[Any, ...]:
    """The generators that the devices were born with, by index."""
    return tuple(generator_of(index) for index in range(device_count()))
