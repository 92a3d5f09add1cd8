"""Levels 3 to 5: the bridge, and every hook with the public call that reaches it."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest
import torch

D = "openreg"


@pytest.fixture
def native():
    return torch.openreg._C


@pytest.fixture
def hooks_reached(native):
    """hooks_reached(action): the names of the hooks that `action` called."""

    def run(action) -> list[str]:
        native._take_steps()
        native._record_steps(True)
        try:
            action()
        finally:
            native._record_steps(False)
        return [name for level, _, _, _, name, _ in native._take_steps() if level == 5]

    yield run
    native._record_steps(False)


KEPT: list[torch.Tensor] = []


@pytest.fixture(autouse=True)
def kept_memory():
    KEPT[:] = [torch.ones(2, device="openreg:1")]


def test_memory_of_a_device_becomes_a_tensor(native):
    x = native._wrap_memory(KEPT[0].data_ptr(), 2)
    assert x.device == torch.device("openreg:1") and x.tolist() == [1, 1]


# hook -> (a public call that torch answers by it, the hook's name as C++ has it)
REACHED_BY = {
    "getDefaultGenerator": lambda: torch.openreg.manual_seed(1),
    "getNewGenerator": lambda: torch.Generator(device=D),
    "getDeviceFromPtr": lambda: torch.openreg._C._wrap_memory(KEPT[0].data_ptr(), 2),
    "getPinnedMemoryAllocator": lambda: torch.ones(1).pin_memory(),
    "isPinnedPtr": lambda: torch.ones(1).is_pinned(),
    "hasPrimaryContext": lambda: torch.ones(2, device=D, requires_grad=True).sum().backward(),
    "resizePrivateUse1Bytes": lambda: torch.ones(1, device=D).untyped_storage().resize_(400),
}
DIRECT = {
    "isBuilt": (0, True),
    "isAvailable": (0, True),
    "deviceCount": (0, 2),
    "getCurrentDevice": (0, 0),
    "setCurrentDevice": (1, None),
    "exchangeDevice": (1, 0),
    "maybeExchangeDevice": (1, 0),
    "hasPrimaryContext": (1, True),
    "isPinnedPtr": (0, False),
}


@pytest.mark.parametrize("hook", REACHED_BY)
def test_the_hook_is_reached(hooks_reached, hook):
    assert hook in hooks_reached(REACHED_BY[hook])


@pytest.mark.parametrize("hook", DIRECT)
def test_the_hook_answers(native, hooks_reached, hook):
    torch.openreg.init()
    argument, expected = DIRECT[hook]
    answers = []
    assert hooks_reached(lambda: answers.append(native._call_hook(hook, argument))) == [hook]
    assert answers == [expected]


def test_every_hook_of_the_interface_has_a_test():
    documented = {
        *("init", "hasPrimaryContext", "getDefaultGenerator", "getNewGenerator", "getDeviceFromPtr"),
        *("getPinnedMemoryAllocator", "isPinnedPtr"),
        *("isBuilt", "isAvailable", "deviceCount", "setCurrentDevice", "getCurrentDevice", "exchangeDevice"),
        *("maybeExchangeDevice", "resizePrivateUse1Bytes"),
    }
    assert documented == {"init"} | REACHED_BY.keys() | DIRECT.keys()


@pytest.mark.slow
def test_init_is_reached_once_at_the_first_use():
    program = (
        "import minidynamo.openreg, torch; torch.ones(2, device='openreg'); torch.openreg.manual_seed(1)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | {"OPENREG_TRACE_HOOKS": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert len(re.findall(r"level 5\] +init ", done.stderr)) == 1
    assert re.search(r"level 6\] +getDefaultOpenRegGenerator\(0\)  generator.cpp:\d+", done.stderr)


def test_device_hooks_change_the_device(native):
    for hook in ("setCurrentDevice", "exchangeDevice", "maybeExchangeDevice"):
        native._call_hook(hook, 1)
        assert torch.openreg.current_device() == 1
        torch.openreg.set_device(0)
    assert native._call_hook("maybeExchangeDevice", 7) == 0
    assert torch.openreg.current_device() == 0


@pytest.mark.parametrize("hook", ["setCurrentDevice", "exchangeDevice", "hasPrimaryContext"])
def test_hooks_refuse_an_index_out_of_range(native, hook):
    with pytest.raises(RuntimeError, match=r"openreg:5 does not exist: the device index must be in \[0, 2\)"):
        native._call_hook(hook, 5)


def test_the_device_of_a_pointer(native):
    for index in range(2):
        tensor = torch.ones(4, device=f"openreg:{index}")
        assert native._call_hook("getDeviceFromPtr", tensor[2:].data_ptr()) == index
    with pytest.raises(RuntimeError, match="not in the memory of a device"):
        native._call_hook("getDeviceFromPtr", torch.ones(1).data_ptr())


def test_pinned_memory(native):
    pinned = torch.randn(10).pin_memory()
    assert pinned.is_pinned() and pinned[2:5].is_pinned() and pinned.is_cpu
    assert not torch.randn(3).is_pinned()
    assert native._memory_kind(pinned.data_ptr()) == ("pinned", -1)
    assert torch.equal(pinned.to(D, non_blocking=True).cpu(), pinned)
    assert torch.empty(3, pin_memory=True).is_pinned()


def test_resizing_storage_keeps_what_fits():
    x = torch.arange(4.0, device=D)
    x.untyped_storage().resize_(8)
    assert x.untyped_storage().nbytes() == 8
    x.untyped_storage().resize_(16)
    assert x.cpu().tolist()[:2] == [0, 1]


def test_the_bridge_has_the_seven_functions(native):
    names = ["_init", "_isInBadFork", "_get_default_generator", "_get_device", "_set_device"]
    for name in [*names, "_exchangeDevice", "_get_device_count"]:
        assert callable(getattr(native, name))
    assert native._get_device_count() == 2
    assert native._isInBadFork() is False
    assert native._exchangeDevice(1) == 0
    assert native._get_device() == 1
    assert native._exchangeDevice(-1) == -1
    native._set_device(0)
    torch.openreg.manual_seed_all(5)
    native._get_default_generator(-1).manual_seed(8)
    assert native._get_default_generator(0).initial_seed() == 8
    assert native._get_default_generator(1).device == torch.device("openreg:1")


@pytest.mark.parametrize("name", ["_get_default_generator", "_set_device", "_exchangeDevice"])
@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("x", "expects an int, but got str"),
        (None, "expects an int, but got NoneType"),
        (1.0, "expects an int, but got float"),
        (2, "openreg:2 does not exist"),
        (9, "openreg:9 does not exist"),
        (300, "device index 300 is out of range"),
        (-7, "device index -7 is out of range"),
        (10**30, "out of range"),
    ],
)
def test_the_bridge_refuses_bad_arguments(native, name, argument, message):
    with pytest.raises(RuntimeError, match=message):
        getattr(native, name)(argument)
    assert torch.openreg.current_device() == 0


def test_one_call_goes_down_the_chain(native):
    """torch.openreg.manual_seed(42): bridge, hook and device, each inside the one before."""
    torch.openreg.init()
    native._take_steps()
    native._record_steps(True)
    torch.openreg.set_device(1)
    torch.openreg.manual_seed(42)
    native._record_steps(False)
    rows = [(level, depth, name, device) for level, depth, _, _, name, device in native._take_steps()]
    chain = [
        (3, 0, "_getDefaultGenerator", 1),
        (5, 1, "getDefaultGenerator", 1),
        (6, 2, "getDefaultOpenRegGenerator", 1),
        (6, 0, "OpenRegGeneratorImpl::set_current_seed", 1),
    ]
    assert [row for row in rows if row in chain] == chain
